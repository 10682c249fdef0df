"""Images of listed files as one array: decoded once into a memory map, in parallel and resumable, or on access.

The rows of a memory map are written to `KEY.partial/` in the cache until they are complete. Every few seconds the
finished chunks are logged in `chunks.jsonl` next to them. The training images determine the number of channels of both
splits.

Images that do not fit on the disk are decoded batch by batch. Their rows and pixels equal those of the memory map, so a
training gets the same views. No file is decoded in advance: an unreadable file becomes a black image and is named in
the run's status, while the memory map leaves such files out.

simplejpeg is only 1.2 to 1.3 times as fast as Pillow, in images per CPU second (500×375 to 64 and 224 pixels:
743 and 384 against 574 and 323; torchvision's ImageFolder 373 and 333), too little for a dependency."""

import contextlib
import json
import math
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from contrastive_core.base import storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import message, printable
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.storage import data_home
from contrastive_core.data import image_decoding
from contrastive_core.data.dataset import SMALL, DatasetArrays, ImageForm
from contrastive_core.data.image_decoding import HEADER, DecodedChunk, DecodingPool, Form, read_header
from contrastive_core.data.image_listings import ImageFile, Listing

CHUNK = 32  # files per call of a process
FEW, LITTLE = (512, 16 << 20)  # number and bytes of files up to which one process decodes them
TOLD = 200  # headers between two reports of progress
HEADS = 2000  # maximum files for the median
MARGIN = 64 << 20  # bytes of the disk to leave free
FLUSH = 5.0  # maximum seconds of decoding that a power failure loses
FEW_AT_ONCE = 8  # maximum images on access for one process
PARTS = 2  # of a batch per worker, to balance the load
MEMORY = Path("/dev/shm")  # for the workers' pixels, if several batches fit
ROOM = 4  # batches
LIMIT = "CONTRASTIVE_LAB_CACHE_GB"  # variable with the disk space for decoded images
USUAL_PART = 0.5  # of the free disk space


@dataclass(frozen=True)
class Partial:
    """The partly decoded images of `files`, stored in `folder`."""

    files: list[ImageFile]
    folder: Path
    form: ImageForm
    channels: int

    @property
    def side(self) -> int:
        assert self.form.size
        return self.form.size

    @property
    def path(self) -> Path:
        return self.folder / "images.npy"

    @property
    def log(self) -> Path:
        """The file that lists the chunks whose rows are on the disk, one per line."""
        return self.folder / "chunks.jsonl"

    @property
    def size(self) -> int:
        """Size of the complete file in bytes."""
        return space_of(len(self.files), self.side, self.channels)

    @property
    def written(self) -> int | None:
        """Bytes on the disk; None without a file of the right size."""
        status = self.path.stat() if self.path.exists() else None
        if status is None or status.st_size != self.size:
            return None
        return int(getattr(status, "st_blocks", 0)) * 512


def median_side(files: list[ImageFile]) -> int:
    """Return the median of the shorter sides of some files in pixels; SMALL if none can be read."""
    sides = []
    for i in np.unique(np.linspace(0, len(files) - 1, min(HEADS, len(files))).astype(int)):
        with contextlib.suppress(Exception):  # unreadable; decoding reports it
            sides.append(min(read_header(files[i].path)[:2]))
    return int(np.median(sides)) if sides else SMALL


def common_channels(files: list[ImageFile], on_progress: OnProgress = ignore_progress) -> int:
    """Return 1 if all readable images are gray, the number of channels that all arrays have, else 3."""
    stage, found = message("checking the colors of {files} images", files=f"{len(files):,}"), set[int]()
    for number, file in enumerate(files):
        if number % TOLD == TOLD - 1:
            on_progress(stage, number / len(files))
        with contextlib.suppress(Exception):
            found.add(read_header(file.path).channels)
        if 3 in found or (len(found) > 1 and max(found) > 3):
            return 3
    if len(found) == 1:
        return found.pop()
    return 1 if found else 3


def space_of(n: int, side: int, channels: int = 3) -> int:
    """Return the bytes on the disk of n images."""
    return HEADER + n * channels * side * side


def decode(listing: Listing, partial: Partial, on_progress: OnProgress, later: list[Partial]) -> DatasetArrays:
    """Decode images into the file of `partial.folder`, or resume it; list unreadable ones with the reason. `later`:
    other splits that need space on the same disk, checked first so that a training does not fail days later for its
    test set.
    Raises: BadSetting if they do not fit on the disk; ValueError if none can be read."""
    _reserve_space(partial, later)
    decoded: dict[int, DecodedChunk] = {}  # by their first row
    for line in partial.log.read_text(encoding="utf-8").splitlines() if partial.log.exists() else ():
        with contextlib.suppress(ValueError):  # an incomplete line
            chunk = json.loads(line)
            decoded[chunk["start"]] = chunk
    starts = range(0, len(partial.files), CHUNK)
    values = {"files": f"{len(partial.files):,}", "text": partial.form.text, "size": _bytes(partial.size)}
    stage = message("decoding {files} images to {text} ({size} on disk)", **values)
    on_progress(stage, None)
    waiting, flushed = list(decoded.values()), time.monotonic()
    left = [start for start in starts if start not in decoded]
    size = sum(file.size for start in left for file in partial.files[start : start + CHUNK])
    are_few = len(left) * CHUNK <= FEW and size <= LITTLE
    pool = DecodingPool(1 if are_few else image_decoding.processes())
    here, form = os.getcwd(), (partial.side, partial.channels, partial.form.resize)
    paths = [os.path.join(here, file.filename) for file in partial.files]  # processes have another working folder
    with contextlib.closing(pool), partial.path.open("r+b") as rows, partial.log.open("w", encoding="utf-8") as log:
        try:
            _flush(waiting, rows, log)
            for chunk in pool.decode(os.path.join(here, partial.path), paths, form, left, CHUNK):
                waiting.append(chunk)
                decoded[chunk["start"]] = chunk
                if time.monotonic() - flushed >= FLUSH:
                    _flush(waiting, rows, log)
                    flushed = time.monotonic()
                on_progress(stage, len(decoded) / len(starts))
        finally:
            _flush(waiting, rows, log)
    return _arrays(listing, partial, list(decoded.values()))


def _flush(chunks: list[DecodedChunk], rows: IO[bytes], log: IO[str]) -> None:
    """Log chunks after their rows are on the disk. After a kill, unlogged chunks are decoded again."""
    if chunks:
        storage.sync_file(rows)
        log.writelines(json.dumps(chunk) + "\n" for chunk in chunks)
        log.flush()
        chunks.clear()


def _reserve_space(partial: Partial, later: list[Partial]) -> None:
    """Extend the file to its full length if all splits fit on the disk. Raises BadSetting otherwise."""
    storage.make_folder(partial.folder)
    if (written := partial.written) is None:
        partial.log.unlink(missing_ok=True)
    parts = [partial, *later]
    size = sum(p.size for p in parts)
    free = shutil.disk_usage(partial.folder).free
    if size - sum(p.written or 0 for p in parts) > free - MARGIN:
        if not written:  # otherwise it continues once there is space
            shutil.rmtree(partial.folder, ignore_errors=True)
        raise BadSetting(
            "{parts} images of {side} × {side} pixels need {size} in {parent}, but only {free} is free; "
            "choose a smaller image_size, or set CONTRASTIVE_LAB_HOME to another folder",
            parts=f"{sum(len(p.files) for p in parts):,}",
            side=partial.side,
            size=_bytes(size),
            parent=partial.folder.parent,
            free=_bytes(free),
        )
    with partial.path.open("ab") as file:
        file.truncate(partial.size)


def _arrays(listing: Listing, partial: Partial, chunks: list[DecodedChunk]) -> DatasetArrays:
    failed = {int(row): why for c in chunks for row, why in c["failed"].items()}
    notes = {int(row): note for c in chunks for row, note in c["notes"].items()}
    files = [f for row, f in enumerate(partial.files) if row not in failed]
    skipped = [(partial.files[row].id, why) for row, why in sorted(failed.items())]
    if not files:
        shutil.rmtree(partial.folder, ignore_errors=True)
        name, reason = skipped[-1]
        values = {"failed": len(failed), "name": name, "reason": reason}
        raise BadSetting("all {failed} images are unreadable; the last: {name}: {reason}", **values)
    # remove the rows of unreadable images, and write the array's header
    n, row_shape = len(files), (partial.channels, partial.side, partial.side)
    if failed:
        partial.log.unlink()  # rows move from here on, so the log is invalid
        images = np.memmap(partial.path, np.uint8, "r+", HEADER, (len(partial.files), *row_shape))
        keep = np.delete(np.arange(len(partial.files)), sorted(failed))
        for row in range(min(failed), n):
            images[row] = images[keep[row]]
        images.flush()
        del images
    with partial.path.open("r+b") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (n, *row_shape)})
        assert file.tell() == HEADER
        file.truncate(space_of(n, partial.side, partial.channels))
        storage.sync_file(file)
    return {
        "images": np.load(partial.path, mmap_mode="r", allow_pickle=False),
        "file": partial.path,
        "labels": [f.label for f in files],
        "classes": listing.classes,
        "ids": [f.id for f in files],
        "skipped": [*listing.skipped, *skipped],
        "notes": [(partial.files[row].id, note) for row, note in sorted(notes.items())],
        "factors": listing.columns(files),
    }


def _bytes(size: int) -> str:
    if size >= 1e9:
        return message("{size} GB", size=f"{size / 1e9:.1f}")
    return message("{value} MB", value=f"{max(1, round(size / 1e6)):,}")


def fits_on_disk(form: ImageForm, files: list[ImageFile]) -> bool:
    """Return whether all images, assumed to be in color, take at most the disk space allowed for decoded ones: the
    environment's limit, else a part of the free space."""
    home = data_home()
    free = shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free - MARGIN
    allowed, limit = USUAL_PART * free, os.environ.get(LIMIT, "")
    if limit:
        try:
            allowed = float(limit) * 1e9
        except ValueError:
            allowed = math.nan
        if not allowed >= 0:
            raise BadSetting("{name} must be a number of GB, at least 0; got {value}", name=LIMIT, value=repr(limit))
    return space_of(len(files), form.size or median_side(files)) <= min(allowed, free)


# --- images that are decoded on access ---


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
        parts = 1 if len(paths) <= FEW_AT_ONCE else PARTS * self.pool.count
        size = max(1, min(CHUNK, math.ceil(len(paths) / parts)))
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
