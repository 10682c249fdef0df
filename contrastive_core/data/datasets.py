"""Data sets by name: images as one uint8 array, labels, stable ids, and a fingerprint. Images are decoded or generated
once and then read as a memory map. The cache of a split is a folder with `images.npy`, `labels.npz` and, written last,
`about.json`."""

import contextlib
import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadSetting, Damaged, NotDownloaded, UnknownName
from contrastive_core.base.lock import lock
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.storage import IMAGES, data_home
from contrastive_core.data import image_sets, named_sets
from contrastive_core.data.dataset import USUAL, DatasetArrays, ImageForm, form_of
from contrastive_core.data.dataset import Dataset as Dataset
from contrastive_core.data.image_sets import load_streamed
from contrastive_core.data.named_sets import GENERATED

SPLITS = ("train", "test")
CHUNK = 1000  # images hashed at a time
PATIENCE = 3600.0  # seconds to wait for another process that creates the same split
UNUSABLE = (FileNotFoundError, Damaged, ValueError, KeyError)  # errors of an incomplete cache


def dataset_names() -> list[str]:
    """Return the names that `load` accepts, besides `folder:PATH` and `csv:PATH`."""
    return [*GENERATED, *named_sets.SIZES]


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
        form: size of the images of a folder; other data sets have a fixed size.
        on_progress: progress of the decoding.
        afresh: list a folder again, even if this process has listed it.
    Raises: UnknownName; NotDownloaded; ValueError for an empty folder; BadSetting for an image size that is
        impossible or does not fit on the disk."""
    _check_arguments(name, split, form)
    if is_files(name):
        if not afresh and (before := image_sets.known(name, split, form)):
            with contextlib.suppress(*UNUSABLE):
                dataset = _load_cached(name, split, before.key)
                return dataclasses.replace(dataset, form=before.form, remarks=before.remarks)
        return load_files(name, split, form, on_progress)
    if name in GENERATED:
        return _load_or_create(name, split, f"{name}-{split}-v1", partial(GENERATED[name], split))
    if not named_sets.is_there(name, root) and not download:
        raise NotDownloaded(named_sets.how_to_get(name))
    create = partial(named_sets.make, name, split, root, download)
    return _load_or_create(name, split, f"{name}-{split}-v1", create)


def _check_arguments(name: str, split: str, form: ImageForm) -> None:
    if split not in SPLITS:
        raise BadSetting("split must be train or test; got {split}", split=f"{split!r}")
    if name.strip() in image_sets.PREFIXES:
        raise BadSetting("{name} needs a path after the colon", name=name.strip())
    if form.size and not is_files(name):
        raise BadSetting(
            "image_size is for folders and lists of images; {name} has a fixed size. Use --set encoder.pixels={size} "
            "to resize at the encoder",
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
    """Load a split of a folder or list of images. `listings`: its files, if they were listed already."""
    found, create = image_sets.plan(name, split, form, on_progress, listings)
    dataset = _load_or_create(name, split, found.key, create)
    return dataclasses.replace(dataset, form=found.form, remarks=found.remarks)


def of_config(
    config: Mapping[str, Any],
    split: str = "train",
    download: bool = False,
    on_progress: OnProgress = ignore_progress,
    afresh: bool = True,
) -> Dataset:
    """Load the data set and image size given by a run's settings. Raises the errors of `load`."""
    name, root = str(config.get("dataset")), config.get("root")
    if is_streamed(config):
        _check_arguments(name, split, form_of(config))
        return load_streamed(name, split, form_of(config), on_progress)
    return load(name, split, root, download, form_of(config), on_progress, afresh)


def is_streamed(config: Mapping[str, Any]) -> bool:
    """Return whether a run decodes its images during training."""
    return config.get("cache") == "stream" and is_files(str(config.get("dataset")))


def is_files(name: str) -> bool:
    """Return whether a data set consists of image files, which have no fixed size."""
    return name.startswith(image_sets.PREFIXES)


def check_name(name: str) -> None:
    """Raise UnknownName for a name that no data set can have, without reading files."""
    if (is_files(name) and name.partition(":")[2].strip()) or name in dataset_names():
        return
    values = {"name": f"{name!r}", "dataset_names": ", ".join(dataset_names())}
    text = message("unknown data set {name}; known: {dataset_names}, folder:PATH, csv:PATH", **values)
    if "/" in name or "\\" in name:
        text += message(" (for a folder of images, use folder:{name})", name=name)
    raise UnknownName(text)


def is_made(name: str, split: str, form: ImageForm = USUAL, listings: image_sets.Listings | None = None) -> bool:
    """Return whether `load` only has to read the cache. `listings`: of a folder, if it was listed already."""
    try:
        return made_path(name, split, form, listings).exists()
    except ValueError:
        return True  # `load` reports the error


def made_path(name: str, split: str, form: ImageForm = USUAL, listings: image_sets.Listings | None = None) -> Path:
    """Return the file of a split's cache that is written last. Raises ValueError for an unusable folder."""
    key = f"{name}-{split}-v1"
    if is_files(name):
        known = None if listings else image_sets.known(name, split, form)
        key = (known or image_sets.plan(name, split, form, listings=listings)[0]).key
    shipped = IMAGES / key / "about.json"
    return shipped if shipped.exists() else _folder(key) / "about.json"


def _load_or_create(name: str, split: str, key: str, create: Callable[[], DatasetArrays]) -> Dataset:
    """Read a split from the cache; if it is missing or damaged, create it or wait for the process that creates it."""
    with contextlib.suppress(*UNUSABLE):
        return _load_cached(name, split, key)
    folder = _folder(key)
    with lock(folder.with_name(f"{key}.lock"), wait=PATIENCE):
        with contextlib.suppress(*UNUSABLE):
            return _read(name, split, folder)
        _write(folder, create())
    return _read(name, split, folder)


def _load_cached(name: str, split: str, key: str) -> Dataset:
    """Read a shipped split, or else a cached one. Raises one of UNUSABLE."""
    with contextlib.suppress(*UNUSABLE):
        return _read(name, split, IMAGES / key)
    return _read(name, split, _folder(key))


def _folder(key: str) -> Path:
    return data_home() / "data" / key


def _write(folder: Path, arrays: DatasetArrays) -> None:
    images, labels, path = arrays["images"], np.asarray(arrays["labels"], np.int64), folder / "images.npy"
    digest = hashlib.sha256(repr((images.shape, tuple(arrays["classes"]))).encode())
    for i in range(0, len(images), CHUNK):
        digest.update(np.ascontiguousarray(images[i : i + CHUNK]).tobytes())
    digest.update(labels.tobytes())
    if "file" in arrays:
        storage.make_folder(folder)
        arrays["file"].replace(path)
        shutil.rmtree(arrays["file"].parent, ignore_errors=True)
    else:
        with storage.writing(path) as file:
            np.save(file, images, allow_pickle=False)
    ids = {"ids": np.array(arrays["ids"])} if arrays.get("ids") else {}
    write_npz(folder / "labels.npz", labels=labels, **ids, **arrays.get("factors", {}))
    about = {
        "classes": list(arrays["classes"]),
        "fingerprint": digest.hexdigest(),
        "skipped": arrays.get("skipped", []),
        "notes": arrays.get("notes", []),
        "n": len(labels),
        "bytes": path.stat().st_size,
    }
    json_files.write_json(folder / "about.json", about)  # last: it marks the folder as complete


def _read(name: str, split: str, folder: Path) -> Dataset:
    about = json_files.read_json(folder / "about.json")
    path = folder / "images.npy"
    if path.stat().st_size != about["bytes"]:
        raise Damaged("{path} is damaged: its size differs from what was written", path=path)
    images = np.load(path, mmap_mode="r", allow_pickle=False)
    arrays = read_npz(folder / "labels.npz")
    labels, names, n = arrays.pop("labels"), arrays.pop("ids", None), about["n"]
    if len(images) != n or len(labels) != n:
        raise Damaged("{folder} is damaged: its files do not match each other", folder=folder)
    ids = [f"{split}/{i:06d}" for i in range(n)] if names is None else names.tolist()
    skipped, notes = ([(str(file), str(text)) for file, text in about[kind]] for kind in ("skipped", "notes"))
    classes = tuple(about["classes"])
    return Dataset(
        name=name,
        split=split,
        images=images,
        labels=labels,
        classes=classes,
        ids=ids,
        fingerprint=about["fingerprint"],
        factors=arrays,
        skipped=skipped,
        notes=notes,
    )
