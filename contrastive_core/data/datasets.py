"""Data sets by name: images as one uint8 array, labels, stable ids, and a fingerprint. Images are decoded or generated
once and then read as a memory map, or decoded on access. The cache of a split is a folder with `images.npy`,
`labels.npz` and, written last, `about.json`.

Listing a folder of a million files takes seconds, so the result, without the files, is cached for pages (`known`) until
a folder changes, for at most a hundred times the duration of the listing. `plan`, which decodes, always lists again."""

import contextlib
import dataclasses
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadSetting, Damaged, NotDownloaded, UnknownName
from contrastive_core.base.lock import lock
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import message, printable
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.storage import FRESH, IMAGES, FileStamp, data_home, file_stamp, follow_links
from contrastive_core.data import image_cache, image_listings, named_sets
from contrastive_core.data.dataset import USUAL, DatasetArrays, ImageForm, form_of, usual_side
from contrastive_core.data.dataset import Dataset as Dataset
from contrastive_core.data.image_listings import Listing
from contrastive_core.data.named_sets import GENERATED

SPLITS = ("train", "test")
PREFIXES = FOLDER, LIST = "folder:", "csv:"  # prefixes of data sets of image files
CHUNK = 1000  # images hashed at a time
PATIENCE = 3600.0  # seconds to wait for another process that creates the same split
UNUSABLE = (FileNotFoundError, Damaged, ValueError, KeyError)  # errors of an incomplete cache
TIMES = 100  # a listing is cached for at most this many times its duration
MOST = 32  # cached listings
FOLDERS = 10_000  # folders of a listing that are checked for changes
Listings = dict[str, Listing]  # by split


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
        if not afresh and (before := known(name, split, form)):
            with contextlib.suppress(*UNUSABLE):
                dataset = _load_cached(name, split, before.key)
                return dataclasses.replace(dataset, form=before.form, remarks=before.remarks)
        return _load_files(name, split, form, on_progress)
    if name in GENERATED:
        return _load_or_create(name, split, f"{name}-{split}-v1", partial(GENERATED[name], split))
    if not named_sets.is_there(name, root) and not download:
        raise NotDownloaded(
            "{name} is not on this machine: the download is {size} MB. Add --download (or tick the box on the Train "
            "page), or give its folder with --root FOLDER",
            name=name,
            size=f"{named_sets.SIZES[name]:,}",
        )
    create = partial(named_sets.make, name, split, root, download)
    return _load_or_create(name, split, f"{name}-{split}-v1", create)


def _check_arguments(name: str, split: str, form: ImageForm) -> None:
    if split not in SPLITS:
        raise BadSetting("split must be train or test; got {split}", split=f"{split!r}")
    if name.strip() in PREFIXES:
        raise BadSetting("{name} needs a path after the colon", name=name.strip())
    if form.size and not is_files(name):
        raise BadSetting(
            "image_size is for folders and lists of images; {name} has a fixed size. Use --set encoder.pixels={size} "
            "to resize at the encoder",
            name=name,
            size=form.size,
        )
    check_name(name)


def of_config(
    config: Mapping[str, Any],
    split: str = "train",
    download: bool = False,
    on_progress: OnProgress = ignore_progress,
    afresh: bool = True,
    listings: Listings | None = None,
) -> Dataset:
    """Load the data set and image size given by a run's settings. `listings`: of a folder, if it was listed already.
    Raises the errors of `load`."""
    name, form = str(config.get("dataset")), form_of(config)
    if is_streamed(config):
        _check_arguments(name, split, form)
        return load_streamed(name, split, form, on_progress, listings)
    if listings:
        return _load_files(name, split, form, on_progress, listings)
    return load(name, split, config.get("root"), download, form, on_progress, afresh)


def _load_files(
    name: str, split: str, form: ImageForm, on_progress: OnProgress, listings: Listings | None = None
) -> Dataset:
    found, create = plan(name, split, form, on_progress, listings)
    dataset = _load_or_create(name, split, found.key, create)
    return dataclasses.replace(dataset, form=found.form, remarks=found.remarks)


def load_streamed(
    name: str, split: str, form: ImageForm, on_progress: OnProgress = ignore_progress, listings: Listings | None = None
) -> Dataset:
    """Load a split of a folder or list of images that is decoded on access. Raises the errors of `load`."""
    listings = listings or listings_of(name)
    found, _ = plan(name, split, form, on_progress, listings)
    listing, here = listings[split], os.getcwd()
    channels = image_cache.common_channels(listings["train"].files or listing.files, on_progress)
    assert found.form.size
    paths = [os.path.join(here, f.filename) for f in listing.files]
    images = image_cache.StreamedImages(paths, (found.form.size, channels, form.resize))
    digest = hashlib.sha256(repr(("streamed", images.shape, form.resize, listing.classes)).encode())
    for file in listing.files:
        digest.update(f"{file.id}\0{file.size}\0{file.label}\n".encode())
    return Dataset(
        name=name,
        split=split,
        images=images,
        labels=np.array([f.label for f in listing.files], np.int64),
        classes=tuple(listing.classes),
        ids=[f.id for f in listing.files],
        fingerprint=digest.hexdigest(),
        factors=listing.columns(listing.files),
        skipped=listing.skipped,
        form=found.form,
        remarks=found.remarks,
    )


def is_streamed(config: Mapping[str, Any]) -> bool:
    """Return whether a run decodes its images during training."""
    return config.get("cache") == "stream" and is_files(str(config.get("dataset")))


def is_files(name: str) -> bool:
    """Return whether a data set consists of image files, which have no fixed size."""
    return name.startswith(PREFIXES)


def check_name(name: str) -> None:
    """Raise UnknownName for a name that no data set can have, without reading files."""
    if (is_files(name) and name.partition(":")[2].strip()) or name in dataset_names():
        return
    values = {"name": f"{name!r}", "dataset_names": ", ".join(dataset_names())}
    text = message("unknown data set {name}; known: {dataset_names}, folder:PATH, csv:PATH", **values)
    if "/" in name or "\\" in name:
        text += message(" (for a folder of images, use folder:{name})", name=name)
    raise UnknownName(text)


def is_made(name: str, split: str, form: ImageForm = USUAL, listings: Listings | None = None) -> bool:
    """Return whether `load` only has to read the cache. `listings`: of a folder, if it was listed already."""
    try:
        return made_path(name, split, form, listings).exists()
    except ValueError:
        return True  # `load` reports the error


def made_path(name: str, split: str, form: ImageForm = USUAL, listings: Listings | None = None) -> Path:
    """Return the file of a split's cache that is written last. Raises ValueError for an unusable folder."""
    key = f"{name}-{split}-v1"
    if is_files(name):
        earlier = None if listings else known(name, split, form)
        key = (earlier or plan(name, split, form, listings=listings)[0]).key
    shipped = IMAGES / key / "about.json"
    return shipped if shipped.exists() else _folder(key) / "about.json"


# --- files of a folder or a list ---


class Split(NamedTuple):
    """The cache key of a split, its form with a definite size, and remarks on the folder."""

    key: str
    form: ImageForm
    remarks: tuple[str, ...]


class _Found(NamedTuple):
    """A cached listing: its splits, the folders' stamps before it, and its expiry time."""

    splits: dict[str, Split]
    seen: dict[str, FileStamp | None]
    until: float


Request = tuple[str, ImageForm, str, bool]  # name, form, working folder, whether links are followed
_found: dict[Request, _Found] = {}
_lock = threading.Lock()


def listings_of(name: str) -> Listings:
    """List the files of `folder:PATH` or `csv:PATH`. Raises ValueError for unusable paths."""
    if name.startswith(LIST):
        return image_listings.listings_of_list(name.removeprefix(LIST))
    return image_listings.listings_of_folder(name.removeprefix(FOLDER))


def plan(
    name: str,
    split: str,
    form: ImageForm = USUAL,
    on_progress: OnProgress = ignore_progress,
    listings: Listings | None = None,
) -> tuple[Split, Callable[[], DatasetArrays]]:
    """Return the current state of a split, and a function that decodes it below the data home. `listings`: of the data
    set, if it was listed already. Raises: ValueError for an unknown data set or one without images."""
    begun, request = time.monotonic(), _request(name, form)
    listings = listings_of(name) if listings is None else listings
    check_not_empty(name, listings[split], split)
    training = listings["train"].files or listings[split].files
    if form.size is None:
        form = ImageForm(usual_side(image_cache.median_side(training)), form.resize)
    if name.startswith(LIST):
        path, column = image_listings.list_and_column(name.removeprefix(LIST))
        where = f"{path.resolve()}#{column}"
    else:
        where = str(Path(name.removeprefix(FOLDER)).expanduser().resolve())
    digest = hashlib.sha256(os.fsencode(where))  # of the files of both splits
    for part, listing in listings.items():
        for file in listing.files:
            digest.update(f"{part}\0{file.id}\0{file.stamp}\0{file.label}\0{file.columns}\n".encode())
        digest.update(repr(listing.skipped).encode())
    files = digest.hexdigest()[:24]
    keys = {s: f"folder-{files}-{s}-{form.size}-{form.resize}-v5" for s in listings}
    remarks = tuple(image_listings.remarks(*listings.values()))  # on the whole folder, for each split
    splits = {s: Split(keys[s], form, remarks) for s, listing in listings.items() if listing.files}
    seen = [item for listing in listings.values() for item in listing.seen.items()]
    latest, took = max((stamp[2] / 1e9 for _, stamp in seen if stamp), default=0.0), time.monotonic() - begun
    if time.time() - took - latest >= FRESH:  # else a file may change again within a clock tick
        with _lock:
            _found.pop(request, None)
            _found[request] = _Found(splits, dict(seen[:: len(seen) // FOLDERS + 1]), time.monotonic() + TIMES * took)
            while len(_found) > MOST:
                del _found[next(iter(_found))]

    def create() -> DatasetArrays:
        home, channels = data_home() / "data", 0
        with contextlib.suppress(OSError, ValueError, IndexError):  # those of the training images, if they are decoded
            channels = int(np.load(home / keys["train"] / "images.npy", mmap_mode="r").shape[1])
        channels = channels or image_cache.common_channels(training, on_progress)
        partials = {
            s: image_cache.Partial(listings[s].files, home / f"{keys[s]}.partial", form, channels) for s in splits
        }
        later = [p for s, p in partials.items() if s != split and not (home / keys[s] / "about.json").exists()]
        return image_cache.decode(listings[split], partials[split], on_progress, later)

    return splits[split], create


def _request(name: str, form: ImageForm) -> Request:
    return name, form, os.getcwd(), follow_links()


def known(name: str, split: str, form: ImageForm = USUAL) -> Split | None:
    """Return the result of `plan` in this process, unless a folder has changed since. Added and removed
    files are noticed at once, overwritten ones only after the listing expires."""
    found = _found.get(_request(name, form))
    if found is None or time.monotonic() > found.until:
        return None
    is_same = all(file_stamp(Path(folder)) == stamp for folder, stamp in found.seen.items())
    return found.splits.get(split) if is_same else None


def count(name: str, split: str, root: str | None = None) -> int:
    """Return the number of images of a split; those of a folder or list are not decoded. Raises ValueError for none."""
    if not is_files(name):
        return len(load(name, split, root))
    check_not_empty(name, listing := listings_of(name)[split], split)
    return len(listing.files)


def check_not_empty(name: str, listing: Listing, split: str) -> None:
    """Raise ValueError for a split without images."""
    if listing.files:
        return
    if not name.startswith(LIST):
        raise ValueError(image_listings.why_empty(name.removeprefix(FOLDER), listing, split))
    text = message("{name} lists no existing images for {split}", name=printable(name), split=split)
    if listing.skipped:
        first, reason = listing.skipped[0]
        values = {"text": text, "skipped": f"{len(listing.skipped):,}", "first": first, "reason": reason}
        text = message("{text}; {skipped} were left out, the first {first}: {reason}", **values)
    raise ValueError(text)


# --- the cache ---


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
