"""Data sets by name: images as one uint8 array, labels, stable ids, and a fingerprint.

Images are decoded or generated once into `.npy` files (dataset_cache.py) and read as memory maps.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from contrastive_core.data import image_sets, torchvision_sets
from contrastive_core.data.dataset import Dataset as Dataset
from contrastive_core.data.dataset_cache import UNUSABLE, cached_path, load_cached, load_or_create
from contrastive_core.data.generated_sets import GENERATED
from contrastive_core.errors import BadSetting, NotDownloaded, UnknownName
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records.image_form import USUAL, ImageForm, form_of

SPLITS = ("train", "test")
FILES = ("folder:", "csv:")  # begin the names of data sets that are files of images


def dataset_names() -> list[str]:
    """Return the names that `load` takes, besides `folder:PATH` and `csv:PATH`."""
    return [*GENERATED, *torchvision_sets.SIZES]


def load(
    name: str,
    split: str = "train",
    root: str | None = None,
    download: bool = False,
    form: ImageForm = USUAL,
    on_progress: OnProgress = ignore_progress,
    afresh: bool = True,
) -> Dataset:
    """Load a split of a data set.

    Args:
        name: one of `dataset_names()`, or `folder:PATH` with a folder per class, or images only,
            or `train/` and `test/` (or `val/`) with either, or `csv:PATH` with a list of images.
        root: folder of torchvision's files; default `data_home()/torchvision`.
        download: download missing files.
        form: size of the images of a folder; others have a size of their own.
        on_progress: of decoding.
        afresh: list a folder again, even if this process has listed it.
    Raises: UnknownName; NotDownloaded; ValueError for an empty folder; BadSetting for a size that
        the images cannot have, or that does not fit on the disk.
    """
    _check_arguments(name, split, form)
    if is_files(name):
        if not afresh and (before := image_sets.known(name, split, form)):
            with contextlib.suppress(*UNUSABLE):
                dataset = load_cached(name, split, before.key)
                return dataclasses.replace(dataset, form=before.form, remarks=before.remarks)
        return load_files(name, split, form, on_progress)
    if name in GENERATED:
        return load_or_create(name, split, f"{name}-{split}-v1", partial(GENERATED[name], split))
    if not torchvision_sets.is_there(name, root) and not download:
        raise NotDownloaded(torchvision_sets.how_to_get(name))
    create = partial(torchvision_sets.make, name, split, root, download)
    return load_or_create(name, split, f"{name}-{split}-v1", create)


def _check_arguments(name: str, split: str, form: ImageForm) -> None:
    if split not in SPLITS:
        raise BadSetting("split must be train or test; got {split}", split=f"{split!r}")
    if name.strip() in FILES:
        what = N_("a folder with images") if name.strip() == "folder:" else N_("a list of images")
        raise BadSetting("{name} needs the path of {what} behind the colon", name=name.strip(), what=what)
    if form.size and not is_files(name):
        raise BadSetting(
            "image_size is for folders and lists of images; those of {name} have a size of their "
            "own, which --set encoder.pixels={size} changes at the encoder",
            name=name,
            size=form.size,
        )
    check_name(name)


def load_files(
    name: str,
    split: str,
    form: ImageForm,
    on_progress: OnProgress = ignore_progress,
    listings: image_sets.Listings | None = None,
) -> Dataset:
    """A split of a folder or list of images. `listings`: its files, if it was listed already."""
    found, create = image_sets.plan(name, split, form, on_progress, listings)
    dataset = load_or_create(name, split, found.key, create)
    return dataclasses.replace(dataset, form=found.form, remarks=found.remarks)


def of_config(
    config: Mapping[str, Any],
    split: str = "train",
    download: bool = False,
    on_progress: OnProgress = ignore_progress,
    afresh: bool = True,
) -> Dataset:
    """The data set that a run's settings name, in the form that they name. Raises as `load`."""
    name, root = str(config.get("dataset")), config.get("root")
    return load(name, split, root, download, form_of(config), on_progress, afresh)


def is_files(name: str) -> bool:
    """Whether a data set is made of files of images, which have no size of their own."""
    return name.startswith(FILES)


def check_name(name: str) -> None:
    """Raises UnknownName for what no data set can be called; reads no file."""
    if (is_files(name) and name.partition(":")[2].strip()) or name in dataset_names():
        return
    text = message(
        "unknown data set {name}; known: {dataset_names}, folder:PATH, csv:PATH",
        name=f"{name!r}",
        dataset_names=", ".join(dataset_names()),
    )
    if "/" in name or "\\" in name:
        text += message(" (a folder of images is written folder:{name})", name=name)
    raise UnknownName(text)


def is_made(name: str, split: str, form: ImageForm = USUAL) -> bool:
    """Return whether `load` only has to read the cache."""
    try:
        return made_path(name, split, form).exists()
    except ValueError:
        return True  # `load` reports the error


def made_path(name: str, split: str, form: ImageForm = USUAL) -> Path:
    """Return the file that is written last when a split is decoded. Raises ValueError for a folder
    that cannot be used."""
    if not is_files(name):
        return cached_path(f"{name}-{split}-v1")
    found = image_sets.known(name, split, form) or image_sets.plan(name, split, form)[0]
    return cached_path(found.key)
