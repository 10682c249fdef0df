"""Decoding of listed images into one memory-mapped array, in parallel and resumable.

The rows are written to `KEY.partial/` in the cache until they are complete. Every few seconds the finished chunks are
logged in `chunks.jsonl` next to them. The training images determine the number of channels of both splits.

simplejpeg is only 1.2 to 1.3 times as fast as Pillow, in images per CPU second (500×375 to 64 and 224 pixels:
743 and 384 against 574 and 323; torchvision's ImageFolder 373 and 333), too little for a dependency."""

import contextlib
import hashlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from contrastive_core.base import storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.data import image_decoding
from contrastive_core.data.dataset import SMALL, DatasetArrays, ImageForm
from contrastive_core.data.image_decoding import HEADER, DecodedChunk, DecodingPool, read_header
from contrastive_core.data.image_listings import ImageFile, Listing

CHUNK = 32  # files per call of a process
FEW, LITTLE = (512, 16 << 20)  # number and bytes of files up to which one process decodes them
TOLD = 200  # headers between two reports of progress
HEADS = 2000  # maximum files for the median
MARGIN = 64 << 20  # bytes of the disk to leave free
FLUSH = 5.0  # maximum seconds of decoding that a power failure loses


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


def cache_keys(where: str, listings: dict[str, Listing], form: ImageForm) -> dict[str, str]:
    """Return the cache key of each split. It depends on the files of both splits and on the form."""
    digest, has_arrays = hashlib.sha256(os.fsencode(where)), False
    for name, listing in listings.items():
        for file in listing.files:
            digest.update(f"{name}\0{file.id}\0{file.stamp}\0{file.label}\n".encode())
            digest.update(repr(file.columns).encode() if file.columns else b"")
            has_arrays = has_arrays or file.filename.lower().endswith(".npy")
        digest.update(repr(listing.skipped).encode())
    files = digest.hexdigest()[:24]
    version = "v4" if has_arrays else "v3"  # in v3, arrays have at most three channels
    return {s: f"folder-{files}-{s}-{form.size}-{form.resize}-{version}" for s in listings}


def median_side(files: list[ImageFile]) -> int:
    """Return the median of the shorter sides of some files in pixels; SMALL if none can be read."""
    sides = []
    for i in np.unique(np.linspace(0, len(files) - 1, min(HEADS, len(files))).astype(int)):
        with contextlib.suppress(Exception):  # unreadable; decoding reports it
            sides.append(min(read_header(files[i].path)[:2]))
    return int(np.median(sides)) if sides else SMALL


def common_channels(files: list[ImageFile], on_progress: OnProgress = ignore_progress) -> int:
    """Return 1 for gray images only, the common channel number of arrays, else 3; unreadable files are skipped."""
    stage = message("checking the colors of {files} images", files=f"{len(files):,}")
    found: set[int] = set()
    for number, file in enumerate(files):
        if number % TOLD == TOLD - 1:
            on_progress(stage, number / len(files))
        with contextlib.suppress(Exception):
            found.add(read_header(file.path).channels)
        if 3 in found or (len(found) > 1 and max(found) > 3):
            return 3
    return found.pop() if len(found) == 1 else 1 if found else 3


def made_channels(folder: Path) -> int | None:
    """Return the number of channels of decoded images; None if there are none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(np.load(folder / "images.npy", mmap_mode="r").shape[1])
    return None


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
    _finish(partial, np.array(sorted(failed), np.int64))
    columns = {name: column([f.columns[i] for f in files]) for i, name in enumerate(listing.column_names)}
    return {
        "images": np.load(partial.path, mmap_mode="r", allow_pickle=False),
        "file": partial.path,
        "labels": [f.label for f in files],
        "classes": listing.classes,
        "ids": [f.id for f in files],
        "skipped": [*listing.skipped, *skipped],
        "notes": [(partial.files[row].id, note) for row, note in sorted(notes.items())],
        "factors": columns,
    }


def column(values: list[str]) -> np.ndarray:
    """Convert texts to numbers if all are numeric (NaN for empty ones); else return them as text."""
    try:
        return np.array([v.strip() or "nan" for v in values], np.float64)
    except ValueError:
        return np.array(values)


def _finish(partial: Partial, failed: np.ndarray) -> None:
    """Remove the rows of unreadable images and write the array's header."""
    n, row_shape = len(partial.files) - len(failed), (partial.channels, partial.side, partial.side)
    if len(failed):
        partial.log.unlink()  # rows move from here on, so the log is invalid
        images = np.memmap(partial.path, np.uint8, "r+", HEADER, (len(partial.files), *row_shape))
        keep = np.delete(np.arange(len(partial.files)), failed)
        for row in range(int(failed[0]), n):
            images[row] = images[keep[row]]
        images.flush()
        del images
    with partial.path.open("r+b") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (n, *row_shape)})
        assert file.tell() == HEADER
        file.truncate(space_of(n, partial.side, partial.channels))
        storage.sync_file(file)


def _bytes(size: int) -> str:
    if size >= 1e9:
        return message("{size} GB", size=f"{size / 1e9:.1f}")
    return message("{value} MB", value=f"{max(1, round(size / 1e6)):,}")
