"""Schemas for JSON values, checked when a file is read. Schemas nest: `fields({"epoch": whole()},
others=optional(number()))` is an object with an integer `epoch` whose other values are numbers or null."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from contrastive_core.base.messages import N_, message

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


def mapping_of(schema: Schema) -> Schema:
    """Return the schema of an object whose values all have one schema."""
    return Schema((dict,), others=schema)


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
        return mapping_of(schema_of(arguments[1]))
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
