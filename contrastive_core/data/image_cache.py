"""Images of a listing, decoded once: in parallel, with the disk looked at beforehand, and so that
what was stopped goes on where it was. Torch-free.

The rows lie in `KEY.partial/` of the cache until all are there; `chunks.jsonl` beside them names
those that are on the disk, every few seconds. How many channels all have is told by the training
images, for both splits.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from contrastive_core.data.decode_worker import HEADER, Chunk, Worker, decode_chunk
from contrastive_core.data.decoding import channels_of, shape_of
from contrastive_core.data.image_folder import ImageFile, Listing
from contrastive_core.data.image_form import SMALL, ImageForm
from contrastive_core.errors import BadSetting
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.storage import atomic

__all__ = [
    "cache_keys",
    "common_channels",
    "decode",
    "made_channels",
    "median_side",
    "processes",
    "space_of",
]

CHUNK = 32  # files that a process decodes at a time
FEW, LITTLE = (
    512,
    16 << 20,
)  # files, and bytes of them, up to which this process decodes them itself
TOLD = 200  # heads that are read before it is said
HEADS = 2000  # files at most whose size counts for the median
MARGIN = 64 << 20  # bytes of the disk that stay free
FLUSH = 5.0  # seconds of decoding that a machine that goes down loses at most


@dataclass(frozen=True)
class Partial:
    """The rows of `files` that are being decoded, in `folder`."""

    files: list[ImageFile]
    folder: Path
    side: int
    channels: int
    resize: str

    @property
    def path(self) -> Path:
        return self.folder / "images.npy"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (len(self.files), self.channels, self.side, self.side)

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return space_of(len(self.files), self.side, self.channels)

    @property
    def held(self) -> int | None:
        """Bytes of it that lie on the disk already; None where there is no such file."""
        had = self.path.stat() if self.path.exists() else None
        if had is None or had.st_size != self.size:
            return None
        return int(getattr(had, "st_blocks", 0)) * 512

    def chunk(self, start: int) -> Chunk:
        here = os.getcwd()  # a process that decodes has another
        paths = [os.path.join(here, f.filename) for f in self.files[start : start + CHUNK]]
        rows = os.path.join(here, self.path)
        return Chunk(rows, start, paths, self.side, self.channels, self.resize)


def cache_keys(where: str, listings: dict[str, Listing], form: ImageForm) -> dict[str, str]:
    """Of each split; both change with the files of either, and with the form."""
    digest, has_arrays = hashlib.sha256(os.fsencode(where)), False
    for name, listing in listings.items():
        for file in listing.files:
            digest.update(f"{name}\0{file.id}\0{file.stamp}\0{file.label}\n".encode())
            digest.update(repr(file.columns).encode() if file.columns else b"")
            has_arrays = has_arrays or file.filename.lower().endswith(".npy")
        digest.update(repr(listing.skipped).encode())
    files = digest.hexdigest()[:24]
    version = "v4" if has_arrays else "v3"  # before, arrays kept three channels at most
    return {s: f"folder-{files}-{s}-{form.size}-{form.resize}-{version}" for s in listings}


def median_side(files: list[ImageFile]) -> int:
    """The median of the shorter sides in pixels, of some of the files; SMALL where none can be
    read."""
    sides = []
    for i in np.unique(np.linspace(0, len(files) - 1, min(HEADS, len(files))).astype(int)):
        try:
            sides.append(min(shape_of(files[i].path)))
        except Exception:  # whatever Pillow raises; decoding it says so
            continue
    return int(np.median(sides)) if sides else SMALL


def common_channels(files: list[ImageFile], on_progress: OnProgress = ignore_progress) -> int:
    """1 where none has colors; those of an array where every array has as many; else 3. Files that
    cannot be read do not count."""
    found: set[int] = set()
    for number, file in enumerate(files):
        if number % TOLD == TOLD - 1:
            on_progress(f"looking at the colors of {len(files):,} images", number / len(files))
        try:
            found.add(channels_of(file.path))
        except Exception:
            continue
        if 3 in found or (len(found) > 1 and max(found) > 3):
            return 3
    if len(found) == 1:
        return found.pop()
    return 1 if found else 3


def made_channels(folder: Path) -> int | None:
    """How many channels decoded images have; None where there are none."""
    if not (folder / "about.json").exists():
        return None
    try:
        return int(np.load(folder / "images.npy", mmap_mode="r").shape[1])
    except (OSError, ValueError, IndexError):
        return None


def space_of(n: int, side: int, channels: int = 3) -> int:
    """Bytes on the disk of n images."""
    return HEADER + n * channels * side * side


# --- decoding ------------------------------------------------------------------------------------


def decode(
    listing: Listing,
    channels: int,
    form: ImageForm,
    folder: Path,
    on_progress: OnProgress = ignore_progress,
    later: Partial | None = None,
) -> dict[str, Any]:
    """Arrays of the images that can be read, in the file `images.npy` of `folder` (which is made,
    or gone on with); the others are listed with the reason.

    Args: later: what else will be decoded to the same disk, the other split: a training of days
        should not end before a test that does not fit.
    Raises: BadSetting where they do not fit on the disk; ValueError where none can be read.
    """
    assert form.size
    partial = Partial(listing.files, folder, form.size, channels, form.resize)
    _room(partial, later)
    known = {a["start"]: a for a in _known(partial)}
    stage = (
        f"decoding {len(partial.files):,} images to {form.text} ({_bytes(partial.size)} on disk)"
    )
    on_progress(stage, None)
    starts = range(0, len(partial.files), CHUNK)
    with _Log(partial, list(known.values())) as log:
        for answer in _answers(partial, [s for s in starts if s not in known]):
            log.add(answer)
            known[answer["start"]] = answer
            on_progress(stage, len(known) / len(starts))
    return _arrays(listing, partial, list(known.values()))


def _room(partial: Partial, later: Partial | None) -> None:
    """Make the file in its full length, if it fits on the disk, and what is decoded later too."""
    atomic.make_folder(partial.folder)
    if (held := partial.held) is None:
        (partial.folder / "chunks.jsonl").unlink(missing_ok=True)
    both = [partial, *([later] if later and later.files else [])]
    size = sum(p.size for p in both)
    free = shutil.disk_usage(partial.folder).free
    if size - sum(p.held or 0 for p in both) > free - MARGIN:
        if not held:  # else it goes on once there is room
            shutil.rmtree(partial.folder, ignore_errors=True)
        raise BadSetting(
            f"{sum(len(p.files) for p in both):,} images of {partial.side} × {partial.side} pixels "
            f"need {_bytes(size)} in {partial.folder.parent}, where {_bytes(free)} are free; "
            "choose a smaller image_size, or another folder by CONTRASTIVE_LAB_HOME"
        )
    with partial.path.open("ab") as file:
        file.truncate(partial.size)


class _Log:
    """Names chunks as decoded, once their rows are on the disk. What it has not named when its
    process is killed is decoded again."""

    def __init__(self, partial: Partial, known: list[dict[str, Any]]) -> None:
        self._rows = partial.path.open("r+b")
        self._lines = (partial.folder / "chunks.jsonl").open("w", encoding="utf-8")
        self._waiting = known
        self._flush()

    def __enter__(self) -> _Log:
        return self

    def add(self, answer: dict[str, Any]) -> None:
        self._waiting.append(answer)
        if time.monotonic() - self._flushed >= FLUSH:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            atomic.sync_file(self._rows)
            self._lines.writelines(json.dumps(a) + "\n" for a in self._waiting)
            self._lines.flush()
        self._waiting, self._flushed = [], time.monotonic()

    def __exit__(self, *error: object) -> None:
        with self._rows, self._lines:
            self._flush()


def _known(partial: Partial) -> Iterator[dict[str, Any]]:
    """Chunks that were decoded before; a line that was cut off counts for nothing."""
    path = partial.folder / "chunks.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            answer = json.loads(line)
            yield {k: answer[k] for k in ("start", "failed", "notes")}
        except (ValueError, KeyError, TypeError):
            continue


def _answers(partial: Partial, starts: list[int]) -> Iterator[dict[str, Any]]:
    """What became of each chunk, in the order in which they are done."""
    count = min(processes(), len(starts))
    size = sum(f.size for s in starts for f in partial.files[s : s + CHUNK])
    if count < 2 or (len(starts) * CHUNK <= FEW and size <= LITTLE):
        yield from (decode_chunk(partial.chunk(s)) for s in starts)
        return
    workers: SimpleQueue[Worker] = SimpleQueue()
    every = [Worker() for _ in range(count)]
    for worker in every:
        workers.put(worker)

    def work(start: int) -> dict[str, Any]:
        worker = workers.get()
        try:
            return worker.decode(partial.chunk(start))
        finally:
            workers.put(worker)

    with ThreadPoolExecutor(count) as pool:
        try:
            for future in as_completed([pool.submit(work, s) for s in starts]):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for worker in every:
                worker.close()


def processes() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _arrays(listing: Listing, partial: Partial, answers: list[dict[str, Any]]) -> dict[str, Any]:
    failed = {int(row): why for a in answers for row, why in a["failed"].items()}
    notes = {int(row): note for a in answers for row, note in a["notes"].items()}
    files = [f for row, f in enumerate(partial.files) if row not in failed]
    skipped = [(partial.files[row].id, why) for row, why in sorted(failed.items())]
    if not files:
        shutil.rmtree(partial.folder, ignore_errors=True)
        name, reason = skipped[-1]
        raise ValueError(
            f"none of the {len(failed)} images can be read; the last: {name}: {reason}"
        )
    _finish(partial, np.array(sorted(failed), np.int64))
    columns = {
        name: _column([f.columns[i] for f in files]) for i, name in enumerate(listing.column_names)
    }
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


def _column(values: list[str]) -> np.ndarray:
    """Numbers where all are (NaN where nothing stands), else text."""
    try:
        return np.array([v.strip() or "nan" for v in values], np.float64)
    except ValueError:
        return np.array(values)


def _finish(partial: Partial, failed: np.ndarray) -> None:
    """Close the gaps of what could not be read, and write the head of the array."""
    n = len(partial.files) - len(failed)
    if len(failed):
        (partial.folder / "chunks.jsonl").unlink()  # from here on rows lie elsewhere
        images = np.memmap(partial.path, np.uint8, "r+", HEADER, partial.shape)
        keep = np.delete(np.arange(len(partial.files)), failed)
        for start in range(int(failed[0]), n, CHUNK):
            rows = keep[start : start + CHUNK]
            images[start : start + len(rows)] = images[rows]
        images.flush()
        del images
    head = io.BytesIO()
    shape = (n, *partial.shape[1:])
    np.lib.format.write_array_header_1_0(
        head, {"descr": "|u1", "fortran_order": False, "shape": shape}
    )
    assert head.tell() == HEADER
    with partial.path.open("r+b") as file:
        file.write(head.getvalue())
        file.truncate(HEADER + n * int(np.prod(shape[1:])))
        atomic.sync_file(file)


def _bytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6)):,} MB"
