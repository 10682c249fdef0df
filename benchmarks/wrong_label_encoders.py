"""Encoders that `benchmarks.label_errors` looks for wrong labels with, and their features."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from benchmarks._training import trained
from contrastive_core import runs
from contrastive_core.base.storage import ROOT, data_home
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset

__all__ = ["ARCHIVE", "cifar_folder", "trained_on", "without_labels"]

ARCHIVE = ROOT.parent / "shared" / "data" / "cifar10-jpeg.tar.xz"
SIZES = {"train": 300, "test": 100}  # images of each class
SHIPPED = ("digits", "shapes")
EPOCHS = 10  # of SimCLR on a folder
COLUMNS = 128  # of raw pixels, as principal components: a classifier of 3,072 takes minutes
# Trained on the wrong labels, for few and for many epochs; a folder takes long.
PLANS = (("sup_con", 4), ("sup_con", 15), ("metric", 15))
PLANS_OF_FOLDERS = (("sup_con", 10),)


def cifar_folder(archive: Path = ARCHIVE) -> str:
    """A data set `folder:…` of the first CIFAR-10 images of each class. Raises FileNotFoundError
    where the archive is not there."""
    home = data_home() / "cifar-subset"
    if not (home / "test").exists():
        with tarfile.open(archive) as images:
            for member in images:
                path = Path(member.name)  # train/cat/0123.jpg
                if member.isfile() and int(path.stem) < SIZES[path.parts[0]]:
                    images.extract(member, home, filter="data")
    return f"folder:{home}"


def without_labels(name: str, dataset: Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Encoders that saw no label, and their h (n, d) of the training split."""
    if name in SHIPPED:
        run = runs.load(f"moco_v2-{name}")
        yield "moco_v2", embed.embed_run(run, "train", "h", "cpu").features
        run = runs.load(f"simclr-{name}")
    else:
        run = trained("label-errors-simclr", "--method", "simclr", "--dataset", name, "--epochs", str(EPOCHS))
    yield "simclr", embed.embed_run(run, "train", "h", "cpu").features
    if name == "digits":
        yield "random", embed.random_encoder(run, dataset, "cpu")[0].features
    if name != "shapes":
        pixels = np.asarray(embed.raw_pixels(dataset).features)
        is_wide = pixels.shape[1] > COLUMNS
        yield "pixels", PCA(COLUMNS, random_state=0).fit_transform(pixels) if is_wide else pixels


def trained_on(name: str, dataset: Dataset, given: np.ndarray, key: str) -> Iterator[tuple[str, np.ndarray]]:
    """h (n, d) of encoders that were trained on the given labels, for few and for many epochs."""
    wrong = np.flatnonzero(given != dataset.labels)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "relabel.json"
        file.write_text(json.dumps({dataset.ids[i]: dataset.classes[given[i]] for i in wrong}))
        for method, epochs in PLANS if name in SHIPPED else PLANS_OF_FOLDERS:
            argv = ["--method", method, "--dataset", name, "--epochs", str(epochs)]
            run = trained(f"label-errors-{key}-{method}-{epochs}", *argv, "--relabel", str(file))
            yield f"{method} {epochs}", embed.embed_run(run, "train", "h", "cpu").features


def load(name: str) -> Dataset:
    """The training split."""
    return datasets.load(name, "train")
