"""`.npz` archives of any size: written as a stream, large arrays read as a memory map.

NumPy's own format: a zip of `.npy` members, not compressed. Data begin at multiples of 64 bytes in
the file (the zip's extra field holds the padding, as in Android's zipalign), so that a map of them
is as fast as memory. `numpy.load` reads these files, and files of `numpy.savez` are read here.

`numpy.load(mmap_mode="r")` was tried: it ignores the mode for archives, and opens a million rows of
128 numbers in 5.6 s and 512 MB, this reader in 0.09 s and 24 MB. safetensors holds no texts (ids).
"""

import io
import math
import os
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from contrastive_core.base.memory_limits import most_memory
from contrastive_core.base.messages import N_, message
from contrastive_core.base.regular_files import expands, thousands

MAPPED = 256 << 20  # bytes of an array, from which on it is mapped and not read
ALIGNED = 64
LOCAL = struct.Struct("<26xHH")  # of a member's header in the file: lengths of its name and extra
ZIP64 = 20  # bytes that zipfile adds to the extra field of a member written with force_zip64
PADDING = 0xD935  # the extra field's kind for padding


def write(file: BinaryIO | io.BytesIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays at the start of a file. Raises ValueError for arrays of objects; OSError."""
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            start = file.tell() + LOCAL.size + len(entry.filename.encode()) + ZIP64 + 4
            padding = -start % ALIGNED
            entry.extra = struct.pack("<HH", PADDING, padding) + bytes(padding)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read(file: BinaryIO, limit: int, mapped: int | None = None) -> dict[str, np.ndarray]:
    """Arrays of a file; those of `mapped` bytes (default: MAPPED) and more, where not compressed, as read-only maps.
    Raises: ValueError where the others would unpack to more than `limit` bytes, or for arrays of objects; what
    zipfile and numpy raise for damage; OSError."""
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
                message("it would unpack to {total} bytes from {stored}", **thousands(total=total, stored=stored))
            )
        for name, entry in entries.items():
            if name in large:
                arrays[name] = _mapped(file, entry)
            else:
                with archive.open(entry) as member:
                    shape, _, dtype = _header(member)
                    if math.prod(shape) * dtype.itemsize > entry.file_size:
                        raise ValueError(N_("it declares other arrays than it holds"))
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
    """Shape, whether in Fortran's order, and dtype, as a `.npy` says them."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(message("version {version} of .npy is not read", version=version))
