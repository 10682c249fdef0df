"""JSON files of this project: documents and lines. A kill at any moment leaves the old file or the new one
(storage.py). Weights and states have a checksum (runs/checkpoints.py); memory.py stores arrays.

Users may edit JSON files, so their values are checked against a schema. Schemas nest: `fields({"epoch": whole()},
others=optional(number()))` is an object with an integer `epoch` whose other values are numbers or null."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from contrastive_core.base.errors import Damaged, NotRegular, explained
from contrastive_core.base.memory import most_memory
from contrastive_core.base.messages import N_, Message, decode, encode, message, sentence
from contrastive_core.base.storage import NO_WAIT, check_links, open_regular, read_regular, sync_file, write_bytes

JsonObject = dict[str, Any]
MAX_JSON = 64 << 20  # bytes of one document
MAX_RECORD = 4 << 20  # bytes of one that is read often, such as a run's
MAX_LINES = 4 << 30
HELD = 128  # bytes of memory for each value of a line
TAIL = 1 << 16  # bytes read first to find the last line
DEPTH = 32  # levels of lists and objects; pages display them recursively
LARGEST = 2**63
NAMES = {dict: N_("an object"), list: N_("a list"), str: "text", bool: N_("true or false"), type(None): "null"}
NAMES |= {int: N_("a whole number"), float: N_("a number")}


@dataclass(frozen=True)
class Schema:
    """The allowed values. Without `types`: any JSON that can be displayed and written again, with finite numbers, valid
    Unicode and limited nesting."""

    types: tuple[type, ...] = ()
    optional: bool = False
    low: float = -1e300
    high: float = 1e300
    choices: tuple[str, ...] = ()
    length: int | None = None
    required: tuple[str, ...] = ()
    keys: Mapping[str, Schema] = field(default_factory=dict)
    others: Schema | None = None  # of a list's members, and of values whose keys are not in `keys`
    identifiers: bool = False  # whether keys are names of settings


plain = Schema()
text = Schema((str,))


def number(low: float = -1e300, high: float = 1e300) -> Schema:
    """Return the schema of a finite number from `low` to `high`."""
    return Schema((int, float), low=low, high=high)


def whole(low: int = 0, high: int = LARGEST) -> Schema:
    """Return the schema of an integer from `low` to `high`."""
    return Schema((int,), low=low, high=high)


def one_of(*values: str) -> Schema:
    """Return the schema of a text from a fixed list."""
    return Schema((str,), choices=values)


def optional(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    return replace(schema, optional=True)


def list_of(schema: Schema, length: int | None = None) -> Schema:
    """Return the schema of a list with members of a schema, and of `length` members if given."""
    return Schema((list,), others=schema, length=length)


def fields(
    required: Mapping[str, Schema] | None = None, allowed: Mapping[str, Schema] | None = None, others: Schema = plain
) -> Schema:
    """Return the schema of an object by key: required keys, allowed keys, and the schema of all other values."""
    required = required or {}
    return Schema((dict,), required=tuple(required), keys={**required, **(allowed or {})}, others=others)


def schema_of(kind: Any) -> Schema:
    """Return the schema of a type. An `int` is an integer from 0 on, unless `Annotated[int, whole(1)]` overrides it.
    The keys of a TypedDict are optional; the fields of a dataclass without a default are required."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        schema: Schema = arguments[1]
        return schema
    if origin in (Union, types.UnionType):
        return optional(schema_of(arguments[0]))
    if origin is NotRequired:
        return schema_of(arguments[0])
    if origin is list:
        return list_of(schema_of(arguments[0]))
    if origin is dict:
        return Schema((dict,), others=schema_of(arguments[1]))
    if is_typeddict(kind) or is_dataclass(kind):
        keys = {name: schema_of(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
        members = dataclass_fields(kind) if is_dataclass(kind) else ()
        required = (f.name for f in members if f.default is MISSING and f.default_factory is MISSING)
        return Schema((dict,), required=tuple(required), keys=keys)
    return {int: whole(), float: number(), str: text, bool: Schema((bool,)), Any: plain}[kind]


def problem(value: Any, schema: Schema) -> str:
    """Describe the first mismatch between a value and a schema, with its place; "" for a valid value."""
    waiting: list[tuple[str, Any, Schema, int]] = [("", value, schema, 0)]
    while waiting:  # not recursive: a value may be nested endlessly
        where, value, schema, depth = waiting.pop()
        kind = _kind(value)
        if not schema.types or kind in schema.types:  # most values are accepted here
            if kind is str and value.isascii() and not schema.choices:
                continue
            if kind in (int, float) and schema.low <= value <= schema.high:
                continue
        if why := _wrong(value, schema, depth):
            return f"{where or 'it'} {why}"
        inner = schema.others or plain
        if kind is list:
            waiting += [(f"{where}[{i}]", v, inner, depth + 1) for i, v in enumerate(value)]
        elif kind is dict:
            for key, item in value.items():
                name = ascii(key)[1:-1][:40]
                why = "" if _is_unicode(key) else N_("contains a lone surrogate character")
                if schema.identifiers and not key.isidentifier():
                    why = why or N_("is not the name of a setting")
                if why:
                    return message("{where} has a key {name} that {why}", where=where or "it", name=repr(name), why=why)
                place = f"{where}.{name}" if where else name
                waiting.append((place, item, schema.keys.get(key, inner), depth + 1))
    return ""


def _kind(value: Any) -> type:
    """Return the type for schema checks: a message counts as a text, a tuple as a list."""
    if isinstance(value, str):
        return str
    return list if isinstance(value, tuple) else type(value)


def _wrong(value: Any, schema: Schema, depth: int) -> str:
    """Describe the mismatch of a value itself, without its members."""
    if value is None and (schema.optional or not schema.types):
        return ""
    kind = _kind(value)
    if schema.types and kind not in schema.types:
        expected = " or ".join(NAMES[t] for t in schema.types if t is not int or len(schema.types) == 1)
        return message("is {kind}, not {expected}", kind=NAMES.get(kind, kind.__name__), expected=expected)
    if kind is str:
        if schema.choices and value not in schema.choices:
            return message("must be one of {choices}", choices=", ".join(schema.choices))
        return "" if _is_unicode(value) else N_("contains a lone surrogate character")
    if kind in (int, float):
        return "" if schema.low <= value <= schema.high else N_("is too large, too small or not a number")
    if kind in (list, dict) and depth > DEPTH:
        return message("is nested more than {depth} deep", depth=DEPTH)
    if kind is list and schema.length not in (None, len(value)):
        return message("has {value} members, not {length}", value=len(value), length=schema.length)
    if kind is dict and (missing := [key for key in schema.required if key not in value]):
        return message("has no {key}", key=f"{missing[0]!r}")
    return ""


def _is_unicode(value: str) -> bool:
    """Return whether text can be encoded as UTF-8; lone surrogates cannot."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


# --- documents ---

OBJECT = fields()


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
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(vars(value))
    return str(value) if isinstance(value, Path) else value
