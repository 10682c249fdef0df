"""Images that are decoded on access, batch by batch, for sets whose decoded images do not fit on the disk.

Rows and pixels equal those of the memory-mapped cache (image_cache.py), so a training gets the same views. No file is
decoded in advance: an unreadable file becomes a black image and is named in the run's status, while the cache leaves
such files out."""

import hashlib
import math
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base import safe_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import message
from contrastive_core.base.paths import data_home
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.safe_files import printable
from contrastive_core.data import image_cache, image_decoding, image_sets
from contrastive_core.data.dataset import Dataset, ImageForm
from contrastive_core.data.image_decoding import HEADER, DecodingPool, Form

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
            safe_files.make_folder(place)
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
    name: str,
    split: str,
    form: ImageForm,
    on_progress: OnProgress = ignore_progress,
    listings: image_sets.Listings | None = None,
) -> Dataset:
    """Load a split of a folder or list of images that is decoded on access. Raises the errors of `datasets.load`."""
    listings = listings or image_sets.listings_of(name)
    found, _ = image_sets.plan(name, split, form, on_progress, listings)
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


def choose_cache(cache: str, form: ImageForm, listings: image_sets.Listings, is_made: Callable[[], bool]) -> str:
    """Choose `memory-map` or `stream`. For `auto`: the cache if it exists or fits into the allowed disk space."""
    if cache != "auto":
        return cache
    return "memory-map" if is_made() or needed_space(form, listings) <= allowed_space(data_home()) else "stream"


def needed_space(form: ImageForm, listings: image_sets.Listings) -> int:
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
