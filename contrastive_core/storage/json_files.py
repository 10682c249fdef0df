"""What this project keeps: JSON for people and programs, lines of JSON, arrays. A kill at any moment leaves the old
file or the new (atomic.py). JSON files may be edited by hand: their values are checked against a schema
(json_schema.py), not a checksum, which weights and states have (runs/checkpoints.py)."""

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.errors import Damaged, NotRegular
from contrastive_core.messages import Message, decode, encode, message, sentence
from contrastive_core.storage import npz
from contrastive_core.storage.atomic import sync_file, write_bytes, writing
from contrastive_core.storage.json_schema import Schema, fields, plain, problem
from contrastive_core.storage.regular_files import open_regular, read_regular

JsonObject = dict[str, Any]
Shapes = Mapping[str, tuple[str, int]]
OBJECT = fields()
MAX_JSON = 64 << 20  # bytes of one document
MAX_LINES = 4 << 30
MAX_NPZ = 4 << 30  # bytes of an archive that are held in memory
TAIL = 1 << 16  # bytes looked through for a last line, at first


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON, whole or not at all. NaN becomes null."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """The text of a JSON file. NaN becomes null."""
    text = json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def read_json(path: str | Path, schema: Schema = plain) -> Any:
    """A JSON file's value. Raises Damaged naming the file, also where it does not fit the schema; OSError."""
    data = read_bytes(path, MAX_JSON)
    try:
        value = json.loads(data, object_hook=_hook(data))
    except (ValueError, RecursionError) as error:
        raise Damaged("{path} is damaged: {error}", path=path, error=error) from None
    if why := problem(value, schema):
        raise Damaged("{path} is damaged: {why}", path=path, why=why)
    return value


def read_object(path: str | Path, schema: Schema = OBJECT) -> JsonObject:
    """A JSON file's object. Raises as `read_json` does."""
    value: JsonObject = read_json(path, schema)
    return value


def read_bytes(path: str | Path, limit: int) -> bytes:
    """An ordinary file's bytes. Raises Damaged for another, or too large a one; OSError."""
    try:
        return read_regular(path, limit)
    except (NotRegular, IsADirectoryError) as error:
        raise Damaged(sentence(error)) from None


def append_lines(path: str | Path, values: Iterable[JsonObject]) -> None:
    """Add a line of JSON per object. A torn last line is cut off first."""
    with open(path, "ab+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        end = file.seek(0, os.SEEK_END)
        torn = _last_line(file, end)
        if torn and object_of(torn) is not None:  # only its end is missing
            file.write(b"\n")
        elif torn:
            file.truncate(end - len(torn))
        file.write(lines_bytes(values))
        sync_file(file)


def _last_line(file: Any, end: int) -> bytes:
    """Return the text after the last line break."""
    length = TAIL
    while True:
        file.seek(max(0, end - length))
        tail: bytes = file.read()
        if b"\n" in tail or length >= end:
            return tail[tail.rfind(b"\n") + 1 :]
        length *= 16


def read_lines(path: str | Path, schema: Schema = plain) -> list[JsonObject]:
    """The objects of a file of JSON lines; [] where there is none. Damaged lines, those of another
    schema, and a torn last one are left out; `damaged_lines` names them. Raises OSError."""
    return [value for _, value in _numbered(path, schema) if value is not None]


def damaged_lines(path: str | Path, schema: Schema = plain) -> list[int]:
    """Numbers, from 1, of lines that cannot be used. A last line that a kill has torn is none."""
    return [number for number, value in _numbered(path, schema) if value is None]


def lines_bytes(values: Iterable[JsonObject]) -> bytes:
    """The text of a file of JSON lines. NaN becomes null."""
    return b"".join(json.dumps(_plain(v), allow_nan=False).encode() + b"\n" for v in values)


def _numbered(path: str | Path, schema: Schema) -> Iterator[tuple[int, JsonObject | None]]:
    try:
        lines = read_bytes(path, MAX_LINES).split(b"\n")
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = object_of(line, schema)
        if value is None and number == len(lines) and object_of(line) is None:  # torn
            return
        yield number, value


def object_of(line: bytes, schema: Schema = plain) -> JsonObject | None:
    """The object of a line; None if it holds none of that schema."""
    try:
        value = json.loads(line, object_hook=_hook(line))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not problem(value, schema) else None


def write_npz(path: str | Path, **arrays: np.ndarray) -> None:
    """Write arrays, whole or not at all."""
    with writing(path) as file:
        npz.write(file, arrays)


def npz_bytes(**arrays: np.ndarray) -> memoryview:
    """The content of an `.npz` of these arrays."""
    buffer = io.BytesIO()
    npz.write(buffer, arrays)
    return buffer.getbuffer()


def read_npz(
    path: str | Path,
    limit: int = MAX_NPZ,
    mapped: int | None = None,
    shapes: Mapping[str, tuple[str, int]] | None = None,
) -> dict[str, np.ndarray]:
    """Arrays of an `.npz`, without pickle; large ones (of `mapped` bytes, if given) are read-only maps.
    Args: shapes: the kinds (NumPy's letters) and dimensions that arrays must have, by name. Raises: Damaged, also
    where those in memory would unpack to more than `limit` bytes; FileNotFoundError."""
    try:
        with open_regular(path) as file:
            arrays = npz.read(file, limit, mapped)
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


def _hook(data: bytes) -> Callable[[JsonObject], Any] | None:
    """What reads messages again, where there are any: a hook slows down long lists of objects."""
    return decode if b'"message"' in data else None


def _plain(value: Any) -> Any:
    """Numbers, lists and words only, messages with their templates; what is not finite becomes None."""
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
