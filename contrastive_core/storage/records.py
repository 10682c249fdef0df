"""What this project keeps, and how it tells damage: JSON, lines of JSON, arrays. Torch-free.

A kill at any moment leaves the old file or the new (files.py); locks.py keeps two processes from
one folder. Every object and every line carries a hash of the rest under the key "seal": a flipped
bit is told from what was written. Who changes such a file by hand takes the seal out (of a file of
lines, all of them): what has none is read as it stands, as are files of before there were seals.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.errors import Damaged, Locked
from contrastive_core.storage.atomic import sha256_file, sync_folder, tidy, write_bytes, writing
from contrastive_core.storage.lock import is_process, lock, lock_holder, process_start
from contrastive_core.storage.regular import open_regular, read_regular

__all__ = [
    "Locked",
    "append_lines",
    "damaged_lines",
    "is_process",
    "lock",
    "lock_holder",
    "process_start",
    "read_json",
    "read_lines",
    "read_npz",
    "sha256_file",
    "sync_folder",
    "tidy",
    "write_bytes",
    "write_json",
    "write_lines",
    "write_npz",
    "writing",
]

MAX_JSON = 256 << 20  # bytes of one object
MAX_LINES = 4 << 30
MAX_NPZ = 4 << 30  # bytes an archive may unpack to
SEAL = "seal"  # key of an object's own hash
LINE_SEAL = re.compile(rb', "seal": "[0-9a-f]{8}"}')
LINE_SEAL_BYTES = len(', "seal": "01234567"}')
BY_HAND = 'if you changed it by hand, take its "seal" out'


# --- objects -----------------------------------------------------------------------------------


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON, whole or not at all. NaN becomes null. An object gets its seal."""
    plain = _plain(value)
    if isinstance(plain, dict):
        plain = {k: v for k, v in plain.items() if k != SEAL}
        plain[SEAL] = _hash(plain)
    text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode() + b"\n")


def read_json(path: str | Path) -> Any:
    """What `write_json` wrote. Raises Damaged naming the file; FileNotFoundError."""
    data = read_regular(path, MAX_JSON)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    if isinstance(value, dict) and not _is_whole(value):
        raise Damaged(f"{path} is damaged: its content is not what was written ({BY_HAND})")
    return value


def _is_whole(value: dict[str, Any]) -> bool:
    """Whether an object is what was written, as far as its seal tells; takes the seal out."""
    if SEAL in value:
        return bool(value.pop(SEAL) == _hash(value))
    hashes = [k for k, v in value.items() if isinstance(v, str) and len(v) == 32]
    return not any(value[k] == _hash(value, k) for k in hashes)  # the damage hit the word "seal"


def _hash(value: dict[str, Any], but: str = SEAL) -> str:
    rest = {k: v for k, v in value.items() if k != but}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:32]


# --- lines -------------------------------------------------------------------------------------


def append_lines(path: str | Path, values: Iterable[dict[str, Any]]) -> None:
    """Add a line of JSON per object. A torn last line is cut off first."""
    with Path(path).open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - LINE_SEAL_BYTES - 1))
        tail = file.read()
        old = False
        if end and not (tail.endswith(b"\n") and LINE_SEAL.search(tail)):
            file.seek(0)
            whole = file.read()
            old = bool(whole.strip()) and not LINE_SEAL.search(whole)
            torn = whole[whole.rfind(b"\n") + 1 :]
            if torn and _object(torn, sealed=not old):  # only its end is missing
                file.write(b"\n")
            else:
                file.truncate(len(whole) - len(torn))
        file.write(_lines(values, seal=not old))
        file.flush()
        os.fsync(file.fileno())


def write_lines(path: str | Path, values: Iterable[dict[str, Any]]) -> None:
    """Put these lines in place of all others, whole or not at all."""
    write_bytes(path, _lines(values))


def read_lines(path: str | Path) -> list[Any]:
    """All whole lines of a file of JSON lines; [] where there is none. Damaged lines, and a torn
    last one, are left out; `damaged_lines` names them."""
    return [value for _, value in _read(path) if value is not None]


def damaged_lines(path: str | Path) -> list[int]:
    """Numbers, from 1, of lines that are not what was written. A last line that a kill has torn is
    none of them."""
    return [number for number, value in _read(path) if value is None]


def _lines(values: Iterable[dict[str, Any]], seal: bool = True) -> bytes:
    made = [json.dumps(_plain(v), allow_nan=False).encode() for v in values]
    if seal:
        made = [line[:-1] + _seal_of(line[:-1]) for line in made]
    return b"".join(line + b"\n" for line in made)


def _seal_of(body: bytes) -> bytes:
    """A line's end, with the checksum of what is before it: quicker than the hash of an object."""
    return b', "seal": "%08x"}' % zlib.crc32(body)


def _read(path: str | Path) -> list[tuple[int, dict[str, Any] | None]]:
    """Each line's number and object; None where it is damaged."""
    try:
        data = read_regular(path, MAX_LINES)
    except FileNotFoundError:
        return []
    lines, sealed = data.split(b"\n"), bool(LINE_SEAL.search(data))
    found = [(n, _object(line, sealed)) for n, line in enumerate(lines, 1) if line.strip()]
    torn = found and found[-1] == (len(lines), None) and not LINE_SEAL.search(lines[-1])
    return found[:-1] if torn else found


def _object(line: bytes, sealed: bool) -> dict[str, Any] | None:
    """The object of a line; None if it is not what was written. All lines are sealed, or none."""
    body = line[:-LINE_SEAL_BYTES]
    if sealed and line != body + _seal_of(body):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    value.pop(SEAL, None)
    return value


# --- arrays ------------------------------------------------------------------------------------


def write_npz(path: str | Path, **arrays: np.ndarray) -> None:
    """Write arrays, whole or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_bytes(path, buffer.getbuffer())


def read_npz(path: str | Path, limit: int = MAX_NPZ) -> dict[str, np.ndarray]:
    """Arrays of an `.npz`, without pickle. Raises Damaged, also where it would unpack to more
    than `limit` bytes."""
    try:
        with open_regular(path) as file:
            with zipfile.ZipFile(file) as archive:
                total = sum(entry.file_size for entry in archive.infolist())
                if total > limit:
                    raise Damaged(f"{path} would unpack to {total:,} bytes; at most {limit:,}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise
    except Damaged:
        raise
    except Exception as error:
        raise Damaged(f"{path} is damaged: {error}") from None


def _plain(value: Any) -> Any:
    """Numbers, lists and words only; what is not finite becomes None."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
