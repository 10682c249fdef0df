"""Memory: how much a process may use, arrays of many rows, and arrays in files. Torch-free.

A process may use half of the memory of the machine or container. On Linux the system refuses more, and a reader gets a
MemoryError: RLIMIT_AS in a sandbox, RLIMIT_DATA in the worker. macOS and Windows have no such limits, and the driver of
a GPU maps more memory than it uses. There, the parent process checks the resident memory of the child and kills it.

A large array is mapped from an unnamed file, or only a reproducible sample of its rows is used; the neighbors of many
rows are compared in blocks.

Arrays are stored in uncompressed `.npz` archives, which are written as a stream. Each array starts at a multiple of 64
bytes in the file (padded in the zip's extra field, like Android's zipalign), so a memory map is as fast as memory.
`numpy.load(mmap_mode="r")` ignores the mode for archives: it opens a million rows of 128 numbers in 5.6 s with 512 MB,
this reader in 0.09 s with 24 MB. safetensors cannot store texts (ids)."""

import contextlib
import io
import math
import os
import struct
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import psutil

from contrastive_core.base import storage
from contrastive_core.base.errors import Damaged
from contrastive_core.base.messages import N_, message, thousands
from contrastive_core.base.storage import data_home, expands, open_regular, writing

DRIVERS = ("/dev/nvidiactl", "/dev/kfd")  # of GPUs
HAS_LIMITS = sys.platform == "linux"
INTERVAL = 0.1  # seconds between two checks of another process
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")
MAPPED = 1 << 29  # bytes from which on an array is in a file: eight smaller ones fit in 4 GB
MAPPED_ROWS = 1 << 28  # the same for the rows of an encoder
ZEROS = 1 << 24  # bytes per write if the system cannot reserve space
BLOCK = 1024  # rows whose neighbors are compared at a time
MAX_NPZ = 4 << 30  # bytes of an archive's arrays in memory
MAPPED_WHEN_READ = 256 << 20  # bytes of an array from which on it is mapped instead of read
ALIGNED = 64
LOCAL = struct.Struct("<26xHH")  # of a member's header in the file: lengths of its name and extra
ZIP64 = 20  # bytes that zipfile adds to the extra field of a member written with force_zip64
PADDING = 0xD935  # the extra field's kind for padding


# --- the limit of a process ---


@cache
def most_memory() -> int:
    """Return the memory in bytes that one process may use: half of this machine's, or of the limit of the container's
    control groups if that is lower."""
    total = int(psutil.virtual_memory().total)
    group = Path()
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = [line.split(":", 2) for line in OWN_GROUP.read_text().splitlines()]
        group = Path(next(path for number, _, path in lines if number == "0").lstrip("/"))
    files = [GROUPS / folder / "memory.max" for folder in (group, *group.parents)]
    for file in (*files, GROUPS / "memory" / "memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            total = min(total, int(file.read_text()))
    return total // 2


def has_data_limit() -> bool:
    """Return whether a worker process can limit its own memory."""
    return HAS_LIMITS and not any(Path(driver).exists() for driver in DRIVERS)


def limit_own_data(limit: int) -> None:
    """Limit this process to `limit` bytes of allocated memory, if the system supports it."""
    if has_data_limit():
        import resource

        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


class MemoryWatch:
    """Watchdog that kills a child process with too much resident memory. `is_needed`: False if the system limits it."""

    def __init__(self, process: subprocess.Popen[Any], limit: int, is_needed: bool) -> None:
        self.is_exceeded = False
        self._process, self._limit = process, limit
        if is_needed:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        with contextlib.suppress(psutil.Error):  # it has ended
            child = psutil.Process(self._process.pid)
            while self._process.poll() is None:
                if child.memory_info().rss > self._limit:
                    self.is_exceeded = True
                    self._process.kill()
                try:
                    self._process.wait(INTERVAL)
                except subprocess.TimeoutExpired:
                    continue


# --- arrays of many rows ---


def mapped_zeros(
    shape: tuple[int, ...], dtype: np.dtype | type = np.float32, folder: Path | None = None, least: int | None = None
) -> np.ndarray:
    """Return an array of zeros; from `least` bytes (default: `MAPPED`) on it is mapped from a file in `folder`.

    The system loads only the used parts of the file. The file has no name, so it disappears with the array, even if the
    process is killed. `folder` defaults to `data_home()`, because the system's temporary folder is often in memory.
    Raises OSError if the disk is too full."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < (MAPPED if least is None else least):
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=storage.make_folder(folder or data_home())) as file:
        # reserve the space on the disk first: writing to a map on a full disk would kill the process
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for start in range(0, size, ZEROS):
                os.write(file.fileno(), bytes(min(ZEROS, size - start)))
        return np.memmap(file, dtype, "r+", shape=shape)


class RowBuffer:
    """Buffer for n rows (n, d) float32, added in chunks. With a folder, many rows are mapped from a file there."""

    def __init__(self, n: int, folder: Path | None = None) -> None:
        self.n, self.folder, self.filled = n, folder, 0
        self.rows: np.ndarray | None = None

    def add(self, chunk: np.ndarray) -> None:
        """Append rows (r, d). Raises OSError if the disk is too full."""
        if self.rows is None:
            shape = (self.n, chunk.shape[1])
            least = MAPPED_ROWS if self.folder else sys.maxsize
            self.rows = mapped_zeros(shape, folder=self.folder, least=least)
        self.rows[self.filled : self.filled + len(chunk)] = chunk
        self.filled += len(chunk)

    def full(self) -> np.ndarray:
        """Return all rows (n, d)."""
        assert self.rows is not None
        assert self.filled == self.n
        return self.rows


def part_of(n: int, part: tuple[int, int]) -> slice:
    """Cut n rows into k contiguous parts of nearly equal size and return the slice of part i; `part` is (i, k)."""
    i, of = part
    return slice(n * i // of, n * (i + 1) // of)


def rows_of_sample(n: int, most: int, seed: int = 0) -> np.ndarray:
    """Return the sorted indices (m) of at most `most` of n rows: all, or a random sample without replacement."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def sample_text(count: int, n: int, what: str = "rows") -> str:
    """Return the size of a sample as text, "1,000 of 50,000 rows"; "" if nothing is left out."""
    return f"{count:,} of {n:,} {what}" if count < n else ""


def lowest_recall(recalls: Iterable[float | None]) -> float | None:
    """Return the lowest recall of several searches; None if all of them are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the share of the k neighbors (n, k) that two spaces have in common, per sample (n)."""
    return in_common(a, b).mean(1)


def in_common(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return whether each neighbor in a (n, k) is also among the neighbors in b (n, k), as booleans (n, k)."""
    parts = (slice(start, start + BLOCK) for start in range(0, len(a), BLOCK))
    return np.concatenate([(a[part, :, None] == b[part, None]).any(2) for part in parts])  # of (r, k, k)


# --- arrays in files ---


def write_arrays(file: BinaryIO | io.BytesIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as an `.npz` archive into an empty file. Raises ValueError for arrays of objects; OSError."""
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            start = file.tell() + LOCAL.size + len(entry.filename.encode()) + ZIP64 + 4
            padding = -start % ALIGNED
            entry.extra = struct.pack("<HH", PADDING, padding) + bytes(padding)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_arrays(file: BinaryIO, limit: int, mapped: int | None = None) -> dict[str, np.ndarray]:
    """Read the arrays of a file. Uncompressed ones of at least `mapped` bytes (default: MAPPED_WHEN_READ) become
    read-only maps. Raises: ValueError if the others would unpack to more than `limit` bytes, or for arrays of objects;
    the errors of zipfile and numpy for damaged files; OSError."""
    arrays: dict[str, np.ndarray] = {}
    least = MAPPED_WHEN_READ if mapped is None else mapped
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        large = {e.filename for e in entries if e.compress_type == zipfile.ZIP_STORED and e.file_size >= least}
        total = sum(e.file_size for e in entries if e.filename not in large)
        stored = os.fstat(file.fileno()).st_size
        if total > (most := min(limit, most_memory() // 2)) or expands(total, stored):
            values = thousands(total=total, stored=stored, most=most)
            raise ValueError(message("it would unpack from {stored} to {total} bytes; at most {most}", **values))
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if entry.filename in large:
                arrays[name] = _mapped(file, entry)
                continue
            with archive.open(entry) as member:
                shape, _, dtype = _header(member)
                if math.prod(shape) * dtype.itemsize > entry.file_size:
                    raise ValueError(N_("its header declares other arrays than it contains"))
                member.seek(0)
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    return arrays


def _mapped(file: BinaryIO, entry: zipfile.ZipInfo) -> np.ndarray:
    file.seek(entry.header_offset)
    begin = entry.header_offset + LOCAL.size + sum(LOCAL.unpack(file.read(LOCAL.size)))
    file.seek(begin)
    shape, fortran, dtype = _header(file)
    offset, end = file.tell(), begin + entry.file_size
    size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or offset + size != end or end > os.fstat(file.fileno()).st_size:
        raise ValueError(N_("its header declares other arrays than it contains"))
    return np.memmap(file, dtype, "r", offset, shape, "F" if fortran else "C")


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, Fortran order and dtype from the header of a `.npy` file."""
    if np.lib.format.read_magic(file) == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


def write_npz(path: str | Path, **arrays: np.ndarray) -> None:
    """Write arrays into an `.npz` file atomically."""
    with writing(path) as file:
        write_arrays(file, arrays)


def npz_bytes(**arrays: np.ndarray) -> memoryview:
    """Return the content of an `.npz` file with these arrays."""
    buffer = io.BytesIO()
    write_arrays(buffer, arrays)
    return buffer.getbuffer()


def read_npz(
    path: str | Path,
    limit: int = MAX_NPZ,
    mapped: int | None = None,
    shapes: Mapping[str, tuple[str, int]] | None = None,
) -> dict[str, np.ndarray]:
    """Read the arrays of an `.npz` file, without pickle; large ones (from `mapped` bytes on) become read-only maps.
    Args: shapes: by name, the dtype kinds (NumPy's letters) and the number of dimensions that an array must have.
    Raises: Damaged, also if the arrays in memory would unpack to more than `limit` bytes; FileNotFoundError."""
    try:
        with open_regular(path) as file:
            arrays = read_arrays(file, limit, mapped)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise Damaged("{path} is damaged: {error}", path=path, error=error) from None
    for name, (kinds, ndim) in (shapes or {}).items():
        array = arrays.get(name)
        if array is None or array.dtype.kind not in kinds or array.ndim != ndim:
            why = message("it has no {missing}", missing=repr(name))
            if array is not None:
                values = {"dtype": array.dtype, "shape": array.shape}
                why = message("{name} has type {dtype} and shape {shape}", name=repr(name), **values)
            raise Damaged("{path} is damaged: {why}", path=path, why=why)
    return arrays
