"""Data sets of image files by name: a folder or a list, decoded to one size, once or on access.

Listing a million files takes seconds, so the result, without the files, is cached for pages (`known`) until a folder
changes, for at most a hundred times the duration of the listing. `plan`, which decodes, always lists the files again.

Images that do not fit on the disk are decoded on access, batch by batch. Their rows and pixels equal those of the
memory-mapped cache (image_cache.py), so a training gets the same views. No file is decoded in advance: an unreadable
file becomes a black image and is named in the run's status, while the cache leaves such files out."""

import hashlib
import math
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrastive_core.base import storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import message, printable
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.storage import FRESH, FileStamp, data_home, file_stamp, follow_links
from contrastive_core.data import image_cache, image_decoding, image_listings
from contrastive_core.data.dataset import SMALL, USUAL, Dataset, DatasetArrays, ImageForm
from contrastive_core.data.image_decoding import HEADER, DecodingPool, Form
from contrastive_core.data.image_listings import Listing

PREFIXES = FOLDER, LIST = "folder:", "csv:"  # prefixes of data sets of image files
TIMES = 100  # a listing is cached for at most this many times its duration
MOST = 32  # cached listings
FOLDERS = 10_000  # folders of a listing that are checked for changes


class Split(NamedTuple):
    """The cache key of a split, its form with a definite size, and remarks on the folder."""

    key: str
    form: ImageForm
    remarks: tuple[str, ...]


Listings = dict[str, Listing]  # by split


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
    begun = time.monotonic()
    listings = listings_of(name) if listings is None else listings
    if not listings[split].files:
        raise ValueError(why_empty(name, listings[split], split))
    training = listings["train"].files or listings[split].files
    request = _request(name, form)
    if form.size is None:
        form = ImageForm(usual_side(image_cache.median_side(training)), form.resize)
    if name.startswith(LIST):
        path, column = image_listings.list_and_column(name.removeprefix(LIST))
        where = f"{path.resolve()}#{column}"
    else:
        where = str(Path(name.removeprefix(FOLDER)).expanduser().resolve())
    keys = image_cache.cache_keys(where, listings, form)
    remarks = tuple(image_listings.remarks(*listings.values()))  # on the whole folder, for each split
    splits = {s: Split(keys[s], form, remarks) for s, listing in listings.items() if listing.files}
    _keep(request, splits, listings, time.monotonic() - begun)

    def create() -> DatasetArrays:
        home = data_home() / "data"
        channels = image_cache.made_channels(home / keys["train"])
        if channels is None:
            channels = image_cache.common_channels(training, on_progress)
        partials = {
            s: image_cache.Partial(listings[s].files, home / f"{keys[s]}.partial", form, channels) for s in splits
        }
        later = [p for s, p in partials.items() if s != split and not (home / keys[s] / "about.json").exists()]
        return image_cache.decode(listings[split], partials[split], on_progress, later)

    return splits[split], create


class _Found(NamedTuple):
    """A cached listing: its splits, the folders' stamps before it, and its expiry time."""

    splits: dict[str, Split]
    seen: dict[str, FileStamp | None]
    until: float


Request = tuple[str, ImageForm, str, bool]  # name, form, working folder, whether links are followed
_found: dict[Request, _Found] = {}
_lock = threading.Lock()


def known(name: str, split: str, form: ImageForm = USUAL) -> Split | None:
    """Return the result of `plan` in this process, unless a folder has changed since. Added and removed
    files are noticed at once, overwritten ones only after the listing expires."""
    found = _found.get(_request(name, form))
    if found is None or time.monotonic() > found.until:
        return None
    is_same = all(file_stamp(Path(folder)) == stamp for folder, stamp in found.seen.items())
    return found.splits.get(split) if is_same else None


def _request(name: str, form: ImageForm) -> Request:
    return name, form, os.getcwd(), follow_links()


def _keep(request: Request, splits: dict[str, Split], listings: Listings, took: float) -> None:
    seen = [item for listing in listings.values() for item in listing.seen.items()]
    latest = max((stamp[2] / 1e9 for _, stamp in seen if stamp), default=0.0)
    if time.time() - took - latest < FRESH:
        return  # a file just written may change again within a clock tick
    some = dict(seen[:: len(seen) // FOLDERS + 1])
    with _lock:
        _found.pop(request, None)
        _found[request] = _Found(splits, some, time.monotonic() + TIMES * took)
        while len(_found) > MOST:
            del _found[next(iter(_found))]


def why_empty(name: str, listing: Listing, split: str) -> str:
    """Return the error text for a split without images."""
    if not name.startswith(LIST):
        return image_listings.why_empty(name.removeprefix(FOLDER), listing, split)
    text = message("{name} lists no existing images for {split}", name=printable(name), split=split)
    if not listing.skipped:
        return text
    first, reason = listing.skipped[0]
    values = {"text": text, "skipped": f"{len(listing.skipped):,}", "first": first, "reason": reason}
    return message("{text}; {skipped} were left out, the first {first}: {reason}", **values)


def usual_side(median: int) -> int:
    """Return the default image side: the median of the shorter sides, at least 4 and at most SMALL."""
    return max(4, min(SMALL, median))


# --- images that are decoded on access ---


FEW = 8  # maximum images for one process
PARTS = 2  # of a batch per worker, to balance the load
MEMORY = Path("/dev/shm")  # for the workers' pixels, if several batches fit
ROOM = 4  # batches
LIMIT = "CONTRASTIVE_LAB_CACHE_GB"  # variable with the disk space for decoded images
USUAL_PART = 0.5  # of the free disk space


class StreamedImages:
    """Images (n, c, h, w) from files, decoded by worker processes when indexed."""

    def __init__(self, paths: Sequence[str], form: Form) -> None:
        side, channels, _ = form
        self.paths, self.form = paths, form
        self.shape, self.dtype, self.ndim = (len(paths), channels, side, side), np.dtype(np.uint8), 4
        self.size = math.prod(self.shape)
        self.failed: dict[str, str] = {}  # files that could not be read, and why
        self.lock = threading.Lock()  # pages and the loader's thread may read at the same time
        self.pool = DecodingPool(max(1, image_decoding.processes() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
        weakref.finalize(self, self.pool.close)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Any) -> np.ndarray:
        first, *further = rows if isinstance(rows, tuple) else (rows,)
        chosen = np.arange(len(self))[first]
        images = self._decode([self.paths[i] for i in np.atleast_1d(chosen).tolist()])
        images = images if chosen.ndim else images[0]
        return images[(slice(None), *further)] if further and chosen.ndim else images[tuple(further)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def _decode(self, paths: list[str]) -> np.ndarray:
        """Decode files to images (k, c, h, w); unreadable ones are black and added to `failed`."""
        shape = (len(paths), *self.shape[1:])
        parts = 1 if len(paths) <= FEW else PARTS * self.pool.count
        size = max(1, min(image_cache.CHUNK, math.ceil(len(paths) / parts)))
        place, needed = MEMORY, ROOM * math.prod(shape)
        if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > needed):
            place = data_home() / "data"
            storage.make_folder(place)
        with self.lock, tempfile.TemporaryDirectory(dir=place, prefix="contrastive-") as folder:
            file = os.path.join(folder, "images")
            with open(file, "wb") as out:
                out.truncate(HEADER + math.prod(shape))
            for chunk in self.pool.decode(file, paths, self.form, range(0, len(paths), size), size):
                self.failed |= {paths[int(row)]: why for row, why in chunk["failed"].items()}
            return np.fromfile(file, np.uint8, offset=HEADER).reshape(shape)


def unread_files(images: Any) -> str:
    """Return a sentence about files that could not be decoded during training; "" for none."""
    failed: dict[str, str] = getattr(getattr(images, "images", images), "failed", {})  # of some rows, or of all
    if not failed:
        return ""
    path, reason = min(failed.items())
    return message(
        "files that cannot be read are black images in training: {n}, for example {first} ({reason})",
        n=f"{len(failed):,}",
        first=printable(Path(path).name),
        reason=reason,
    )


def load_streamed(
    name: str, split: str, form: ImageForm, on_progress: OnProgress = ignore_progress, listings: Listings | None = None
) -> Dataset:
    """Load a split of a folder or list of images that is decoded on access. Raises the errors of `datasets.load`."""
    listings = listings or listings_of(name)
    found, _ = plan(name, split, form, on_progress, listings)
    listing, here = listings[split], os.getcwd()
    channels = image_cache.common_channels(listings["train"].files or listing.files, on_progress)
    assert found.form.size
    images = StreamedImages(
        [os.path.join(here, f.filename) for f in listing.files], (found.form.size, channels, form.resize)
    )
    digest = hashlib.sha256(repr(("streamed", images.shape, form.resize, listing.classes)).encode())
    for file in listing.files:
        digest.update(f"{file.id}\0{file.size}\0{file.label}\n".encode())
    columns = {n: image_cache.column([f.columns[i] for f in listing.files]) for i, n in enumerate(listing.column_names)}
    return Dataset(
        name=name,
        split=split,
        images=images,
        labels=np.array([f.label for f in listing.files], np.int64),
        classes=tuple(listing.classes),
        ids=[f.id for f in listing.files],
        fingerprint=digest.hexdigest(),
        factors=columns,
        skipped=listing.skipped,
        form=found.form,
        remarks=found.remarks,
    )


def choose_cache(cache: str, form: ImageForm, listings: Listings, is_made: Callable[[], bool]) -> str:
    """Choose `memory-map` or `stream`. For `auto`: the cache if it exists or fits into the allowed disk space."""
    if cache != "auto":
        return cache
    return "memory-map" if is_made() or needed_space(form, listings) <= allowed_space(data_home()) else "stream"


def needed_space(form: ImageForm, listings: Listings) -> int:
    """Return the bytes of all decoded images, assumed to be in color."""
    files = [file for listing in listings.values() for file in listing.files]
    return image_cache.space_of(len(files), form.size or image_cache.median_side(files))


def allowed_space(home: Path) -> float:
    """Return the bytes of disk that decoded images may use: the environment's limit, else a part of the free space."""
    free = shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free - image_cache.MARGIN
    limit = os.environ.get(LIMIT, "")
    if not limit:
        return USUAL_PART * free
    try:
        allowed = float(limit) * 1e9
    except ValueError:
        allowed = math.nan
    if not allowed >= 0:
        raise BadSetting("{name} must be a number of GB, at least 0; got {value}", name=LIMIT, value=repr(limit))
    return min(allowed, free)
