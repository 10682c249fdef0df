"""Files of this project: JSON documents, lines of JSON, arrays. A kill at any moment leaves the old file or the new one
(safe_files.py). Users may edit JSON files, so their values are checked against a schema (json_schema.py). Weights and
states have a checksum instead (runs/checkpoints.py).

Arrays are stored in uncompressed `.npz` archives, which are written as a stream. Each array starts at a multiple of 64
bytes in the file (padded in the zip's extra field, like Android's zipalign), so a memory map is as fast as memory.
`numpy.load(mmap_mode="r")` ignores the mode for archives: it opens a million rows of 128 numbers in 5.6 s with 512 MB,
this reader in 0.09 s with 24 MB. safetensors cannot store texts (ids)."""

import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.base.errors import Damaged, NotRegular, explained
from contrastive_core.base.json_schema import Schema, fields, plain, problem
from contrastive_core.base.memory_limits import most_memory
from contrastive_core.base.messages import N_, Message, decode, encode, message, sentence
from contrastive_core.base.safe_files import (
    NO_WAIT,
    check_links,
    expands,
    open_regular,
    read_regular,
    sync_file,
    thousands,
    write_bytes,
    writing,
)

JsonObject = dict[str, Any]
Shapes = Mapping[str, tuple[str, int]]
OBJECT = fields()
MAX_JSON = 64 << 20  # bytes of one document
MAX_RECORD = 4 << 20  # bytes of one that is read often, such as a run's
MAX_LINES = 4 << 30
MAX_NPZ = 4 << 30  # bytes of an archive's arrays in memory
HELD = 128  # bytes of memory for each value of a line
TAIL = 1 << 16  # bytes read first to find the last line


MAPPED = 256 << 20  # bytes of an array from which on it is mapped instead of read
ALIGNED = 64
LOCAL = struct.Struct("<26xHH")  # of a member's header in the file: lengths of its name and extra
ZIP64 = 20  # bytes that zipfile adds to the extra field of a member written with force_zip64
PADDING = 0xD935  # the extra field's kind for padding


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
    """Read the arrays of a file. Uncompressed ones of at least `mapped` bytes (default: MAPPED) become read-only maps.
    Raises: ValueError if the others would unpack to more than `limit` bytes, or for arrays of objects; the errors
    of zipfile and numpy for damaged files; OSError."""
    arrays: dict[str, np.ndarray] = {}
    least = MAPPED if mapped is None else mapped
    with zipfile.ZipFile(file) as archive:
        entries = {e.filename.removesuffix(".npy"): e for e in archive.infolist()}
        large = {name: e for name, e in entries.items() if _is_large(e, least)}
        total = sum(e.file_size for name, e in entries.items() if name not in large)
        if total > min(limit, most_memory() // 2):
            raise ValueError(
                message("it would unpack to {total} bytes; at most {limit}", total=f"{total:,}", limit=f"{limit:,}")
            )
        stored = os.fstat(file.fileno()).st_size
        if expands(total, stored):
            raise ValueError(
                message("it would unpack from {stored} to {total} bytes", **thousands(total=total, stored=stored))
            )
        for name, entry in entries.items():
            if name in large:
                arrays[name] = _mapped(file, entry)
            else:
                with archive.open(entry) as member:
                    shape, _, dtype = _header(member)
                    if math.prod(shape) * dtype.itemsize > entry.file_size:
                        raise ValueError(N_("its header declares other arrays than it contains"))
                    member.seek(0)
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
    return arrays


def _is_large(entry: zipfile.ZipInfo, least: int) -> bool:
    return entry.compress_type == zipfile.ZIP_STORED and entry.file_size >= least


def _mapped(file: BinaryIO, entry: zipfile.ZipInfo) -> np.ndarray:
    file.seek(entry.header_offset)
    name, extra = LOCAL.unpack(file.read(LOCAL.size))
    begin = entry.header_offset + LOCAL.size + name + extra
    file.seek(begin)
    shape, fortran, dtype = _header(file)
    offset = file.tell()
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError(message("{filename} holds objects", filename=entry.filename))
    end = begin + entry.file_size
    if offset + size != end or end > os.fstat(file.fileno()).st_size:
        values = {"filename": entry.filename, "end": f"{end - offset:,}", "size": f"{size:,}"}
        raise ValueError(message("{filename} has {end} bytes instead of {size}", **values))
    return np.memmap(file, dtype, "r", offset, shape, "F" if fortran else "C")


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, Fortran order and dtype from the header of a `.npy` file."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(message(".npy version {version} is not supported", version=version))


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file atomically. NaN becomes null."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return the content of a JSON file. NaN becomes null."""
    text = json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def read_json(path: str | Path, schema: Schema = plain, limit: int | None = None) -> Any:
    """Read the value of a JSON file. Raises Damaged, with the file's name, above `limit` bytes (default: MAX_JSON) and
    for values that do not match the schema; OSError."""
    data = read_bytes(path, MAX_JSON if limit is None else limit)
    try:
        value = json.loads(data, object_hook=_hook(data))
        why = problem(value, schema)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Damaged("{path} is damaged: {error}", path=path, error=explained(error)) from None
    if why:
        raise Damaged("{path} is damaged: {why}", path=path, why=why)
    return value


def read_object(path: str | Path, schema: Schema = OBJECT, limit: int | None = None) -> JsonObject:
    """Read the object in a JSON file. Raises the errors of `read_json`."""
    return dict(read_json(path, schema, limit))


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Read the bytes of a regular file. Raises Damaged for other files and above `limit` bytes; OSError."""
    try:
        return read_regular(path, limit)
    except (NotRegular, IsADirectoryError) as error:
        raise Damaged(sentence(error)) from None


def append_lines(path: str | Path, values: Iterable[Mapping[str, object]]) -> None:
    """Append a line of JSON per object, all or none. An incomplete last line is removed first. Raises OSError on a full
    disk; NotRegular for a symbolic link in a folder of runs."""
    check_links(Path(path))
    with open(path, "ab+", 0, opener=lambda name, flags: os.open(name, flags | NO_WAIT, 0o600)) as file:
        end = file.seek(0, os.SEEK_END)
        start, length = b"", TAIL
        while True:  # read back until a line break is found
            file.seek(max(0, end - length))
            tail: bytes = file.read()
            if b"\n" in tail or length >= end:
                break
            length *= 16
        torn = tail[tail.rfind(b"\n") + 1 :]
        if torn and object_of(torn) is not None:  # only its line break is missing
            start = b"\n"
        elif torn:
            end = file.truncate(end - len(torn))
        data = memoryview(start + lines_bytes(values))
        try:
            while data:
                data = data[file.write(data) :]
            sync_file(file)
        except OSError:
            file.truncate(end)
            raise


def read_lines(path: str | Path, schema: Schema = plain, limit: int = MAX_LINES) -> list[JsonObject]:
    """Read the objects of a JSON lines file; [] if there is no file. Lines that are damaged, incomplete or do not match
    the schema are left out; `damaged_lines` lists them. Raises Damaged, also above `limit` bytes; OSError."""
    return [value for _, value in _numbered(path, schema, limit) if value is not None]


def damaged_lines(path: str | Path, schema: Schema = plain) -> list[int]:
    """Return the numbers of damaged lines, counted from 1. An incomplete last line is not counted."""
    return [number for number, value in _numbered(path, schema) if value is None]


def lines_bytes(values: Iterable[Mapping[str, object]]) -> bytes:
    """Return the content of a JSON lines file. NaN becomes null."""
    return b"".join(json.dumps(_plain(v), allow_nan=False).encode() + b"\n" for v in values)


def _numbered(path: str | Path, schema: Schema, limit: int = MAX_LINES) -> Iterator[tuple[int, JsonObject | None]]:
    try:
        file = open_regular(path, limit)
    except FileNotFoundError:
        return
    except (NotRegular, IsADirectoryError) as error:
        raise Damaged(sentence(error)) from None
    with file:
        number, held = 0, 0
        while line := file.readline(MAX_RECORD):
            number += 1
            is_cut = not line.endswith(b"\n")
            if len(line) == MAX_RECORD and is_cut:  # not a line that this library wrote
                while (rest := file.readline(MAX_RECORD)) and not rest.endswith(b"\n"):
                    continue
                yield number, None
                continue
            if not line.strip():
                continue
            value = object_of(line, schema)
            if value is None and is_cut and object_of(line) is None:  # incomplete
                return
            held += HELD * (2 + len(value or ()))
            if held > most_memory() // 2:
                raise Damaged("{path} is damaged: {why}", path=path, why=N_("its lines take too much memory"))
            yield number, value


def object_of(line: bytes, schema: Schema = plain) -> JsonObject | None:
    """Parse the object in a line; None if there is none or it does not match the schema."""
    try:
        value = json.loads(line, object_hook=_hook(line))
    except (ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) and not problem(value, schema) else None


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


def _hook(data: bytes) -> Callable[[dict[str, object]], Any] | None:
    """Return the decoder of stored messages, or None if `data` has none: a hook slows down json on long lists."""
    return decode if b'"message"' in data else None


def _plain(value: Any) -> Any:
    """Convert a value to plain JSON types. Messages keep their templates; infinities and NaN become None."""
    if isinstance(value, Message):
        return encode(value)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
