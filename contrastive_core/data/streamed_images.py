"""Images that are decoded when they are read, batch by batch, for sets whose decoded images do not fit on the disk.

The rows and their pixels are those of the memory-mapped cache (image_cache.py), so that a training sees the same views.
Nothing is decoded before: a file that turns out unreadable is a black image, and is named in the run's status; the
cache leaves such files out.
"""

import hashlib
import math
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.data import image_cache, image_sets
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.image_decoding import HEADER, DecodedChunk, Form, decode_chunk, decode_sandboxed
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.paths import data_home
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records.train_config import ImageForm
from contrastive_core.storage import atomic
from contrastive_core.storage.regular_files import printable
from contrastive_core.storage.sandbox import Sandbox

FEW = 8  # images that this process decodes itself
PARTS = 2  # of a batch for each worker: the last to finish is not waited for long
MEMORY = Path("/dev/shm")  # where workers leave pixels, if there is room for several batches
ROOM = 4  # batches
LIMIT = "CONTRASTIVE_LAB_CACHE_GB"  # the disk that decoded images may take, by the environment
USUAL_PART = 0.5  # of the free disk


class StreamedImages:
    """Images (n, c, h, w) of files, decoded by worker processes when they are indexed."""

    def __init__(self, paths: Sequence[str], form: Form) -> None:
        side, channels, _ = form
        self.paths, self.form = paths, form
        self.shape, self.dtype, self.ndim = (len(paths), channels, side, side), np.dtype(np.uint8), 4
        self.size = math.prod(self.shape)
        self.failed: dict[str, str] = {}  # files that could not be read, and why
        self._workers = _Workers(max(1, image_cache.processes() // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
        weakref.finalize(self, self._workers.close)

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
        images, failed = self._workers.decode(paths, self.form)
        self.failed |= failed
        return images


def unread_files(images: Any) -> str:
    """A sentence on files that could not be decoded in training; "" for none."""
    failed: dict[str, str] = getattr(getattr(images, "images", images), "failed", {})  # of some rows, or of all
    if not failed:
        return ""
    path, reason = min(failed.items())
    template = N_("{n} files could not be read and are black images in training, for example {first}: {reason}")
    if len(failed) == 1:
        template = N_("1 file could not be read and is a black image in training, {first}: {reason}")
    return message(template, n=f"{len(failed):,}", first=printable(Path(path).name), reason=reason)


class _Workers:
    """Processes that decode files; made when they are needed, and kept."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.lock = threading.Lock()  # pages and the batch ahead may read at once
        self.sandboxes: list[Sandbox] = []

    def decode(self, paths: list[str], form: Form) -> tuple[np.ndarray, dict[str, str]]:
        """The images (k, c, h, w) of files, and why some could not be read."""
        side, channels, _ = form
        shape = (len(paths), channels, side, side)
        with self.lock, tempfile.TemporaryDirectory(dir=_room_for(math.prod(shape)), prefix="contrastive-") as folder:
            file = os.path.join(folder, "images")
            with open(file, "wb") as out:
                out.truncate(HEADER + math.prod(shape))
            chunks = self._chunks(file, paths, form)
            images = np.fromfile(file, np.uint8, offset=HEADER).reshape(shape)
        return images, {paths[int(row)]: why for chunk in chunks for row, why in chunk["failed"].items()}

    def _chunks(self, file: str, paths: list[str], form: Form) -> list[DecodedChunk]:
        size = max(1, min(image_cache.CHUNK, math.ceil(len(paths) / (PARTS * self.count))))
        starts = range(0, len(paths), size)
        if self.count < 2 or len(paths) <= FEW:
            return [decode_chunk(file, start, paths[start : start + size], form) for start in starts]
        self.sandboxes = self.sandboxes or [Sandbox(decode_chunk) for _ in range(self.count)]
        idle = list(self.sandboxes)

        def work(start: int) -> DecodedChunk:
            sandbox = idle.pop()  # there are as many as threads
            try:
                return decode_sandboxed(sandbox, file, start, paths[start : start + size], form)
            finally:
                idle.append(sandbox)

        with ThreadPoolExecutor(self.count) as pool:
            return list(pool.map(work, starts))

    def close(self) -> None:
        for sandbox in self.sandboxes:
            sandbox.close()


def _room_for(size: int) -> Path:
    """A folder for the pixels of a batch: memory where it has room."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM * size:
        return MEMORY
    folder = data_home() / "data"
    atomic.make_folder(folder)
    return folder


def load_streamed(
    name: str,
    split: str,
    form: ImageForm,
    on_progress: OnProgress = ignore_progress,
    listings: image_sets.Listings | None = None,
) -> Dataset:
    """A split of a folder or list of images, decoded when it is read. Raises as `datasets.load`."""
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
    labels, ids = np.array([f.label for f in listing.files], np.int64), [f.id for f in listing.files]
    facts = (tuple(listing.classes), ids, digest.hexdigest(), columns, listing.skipped)
    return Dataset(name, split, images, labels, *facts, form=found.form, remarks=found.remarks)


def choose_cache(
    cache: str, form: ImageForm, listings: image_sets.Listings, is_made: Callable[[], bool], home: Path | None = None
) -> str:
    """`memory-map` or `stream`. `auto`: the cache if it is there already, or takes no more of the disk than allowed."""
    if cache != "auto":
        return cache
    return "memory-map" if is_made() or needed_space(form, listings) <= allowed_space(home or data_home()) else "stream"


def needed_space(form: ImageForm, listings: image_sets.Listings) -> int:
    """Bytes of all decoded images, taken to be in color."""
    files = [file for listing in listings.values() for file in listing.files]
    return image_cache.space_of(len(files), form.size or image_cache.median_side(files))


def allowed_space(home: Path) -> float:
    """Bytes of the disk that decoded images may take: what the environment says, else a part of what is free."""
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
