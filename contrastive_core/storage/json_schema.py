"""Schemas of JSON values, checked once, where a file is read.

Schemas nest: `fields({"epoch": whole()}, others=optional(number()))` is an object with a whole
number `epoch` whose other values are numbers or null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from contrastive_core.messages import N_, message

__all__ = [
    "Schema",
    "fields",
    "flag",
    "list_of",
    "mapping_of",
    "number",
    "one_of",
    "optional",
    "plain",
    "problem",
    "text",
    "whole",
]

DEPTH = 32  # levels of lists and objects; a page that shows them recurses
LARGEST = 2**63
KINDS = {dict: N_("an object"), list: N_("a list"), str: "text", bool: N_("true or false"), int: N_("a number")}
NAMES = {**KINDS, int: N_("a whole number"), float: N_("a number"), type(None): "null"}


@dataclass(frozen=True)
class Schema:
    """The values that are allowed. Without `types`, any JSON that can be shown and written again: finite
    numbers, whole characters, no endless nesting."""

    types: tuple[type, ...] = ()
    optional: bool = False
    low: float = -1e300
    high: float = 1e300
    choices: tuple[str, ...] = ()
    length: int | None = None
    required: tuple[str, ...] = ()
    keys: Mapping[str, Schema] = field(default_factory=dict)
    others: Schema | None = None  # of a list's members, and of values whose keys are not in `keys`
    any_of: tuple[str, ...] = ()  # of these keys, one is required
    identifiers: bool = False  # whether keys are names of settings


plain = Schema()
text = Schema((str,))
flag = Schema((bool,))


def number(low: float = -1e300, high: float = 1e300) -> Schema:
    """A finite number in `low..high`."""
    return Schema((int, float), low=low, high=high)


def whole(low: int = 0, high: int = LARGEST) -> Schema:
    """A whole number in `low..high`."""
    return Schema((int,), low=low, high=high)


def one_of(*values: str) -> Schema:
    """One of some words."""
    return Schema((str,), choices=values)


def optional(schema: Schema) -> Schema:
    """null, or that schema."""
    return replace(schema, optional=True)


def list_of(schema: Schema, length: int | None = None) -> Schema:
    """A list, of `length` if given, whose members have that schema."""
    return Schema((list,), others=schema, length=length)


def mapping_of(schema: Schema) -> Schema:
    """An object whose values all have that schema."""
    return Schema((dict,), others=schema)


def fields(
    required: Mapping[str, Schema] | None = None, allowed: Mapping[str, Schema] | None = None, others: Schema = plain
) -> Schema:
    """An object that has the required keys, may have the allowed ones, and whose other values
    have the schema `others`."""
    keys = {**(required or {}), **(allowed or {})}
    return Schema((dict,), required=tuple(required or ()), keys=keys, others=others)


def problem(value: Any, schema: Schema) -> str:
    """Return what is wrong with a value, and where; "" for a valid one."""
    waiting: list[tuple[str, Any, Schema, int]] = [("", value, schema, 0)]
    while waiting:  # not recursive: a value may be nested endlessly
        where, value, schema, depth = waiting.pop()
        kind = str if isinstance(value, str) else type(value)  # a message is a text too
        if not schema.types or kind in schema.types:  # most values are passed here
            if kind is str and value.isascii() and not schema.choices:
                continue
            if kind in (int, float) and schema.low <= value <= schema.high:
                continue
        if why := _wrong(value, schema, depth):
            return f"{where or 'it'} {why}"
        inner = schema.others or plain
        if isinstance(value, list):
            waiting += [(f"{where}[{i}]", v, inner, depth + 1) for i, v in enumerate(value)]
        elif isinstance(value, dict):
            for key, item in value.items():
                name = ascii(key)[1:-1][:40]
                plain_key = key.isascii() and not schema.identifiers
                if why := "" if plain_key else _wrong_key(key, schema):
                    return message(
                        "{where} has a key {name} that {why}", where=where or "it", name=f"{name!r}", why=why
                    )
                place = f"{where}.{name}" if where else name
                waiting.append((place, item, schema.keys.get(key, inner), depth + 1))
    return ""


def _wrong(value: Any, schema: Schema, depth: int) -> str:
    """Return what is wrong with a value itself, without its members."""
    if value is None and (schema.optional or not schema.types):
        return ""
    kind = str if isinstance(value, str) else type(value)
    if schema.types and kind not in schema.types:
        expected = " or ".join(NAMES[t] for t in schema.types if t is not int or len(schema.types) == 1)
        return message("is {kind}, not {expected}", kind=KINDS.get(kind, NAMES[kind]), expected=expected)
    if kind is str:
        if schema.choices and value not in schema.choices:
            return message("is none of {choices}", choices=", ".join(schema.choices))
        return "" if _is_unicode(value) else N_("holds half a character")
    if kind in (int, float):
        return "" if schema.low <= value <= schema.high else N_("is too large, too small or no number")
    if kind in (list, dict) and depth > DEPTH:
        return message("is nested more than {depth} deep", depth=DEPTH)
    if kind is list and schema.length not in (None, len(value)):
        return message("has {value} members, not {length}", value=len(value), length=schema.length)
    if kind is dict:
        missing = [message("no {key}", key=f"{key!r}") for key in schema.required if key not in value]
        if schema.any_of and not value.keys() & schema.any_of:
            missing.append(message("none of {any_of}", any_of=", ".join(schema.any_of)))
        return message("has {missing}", missing=missing[0]) if missing else ""
    return ""


def _wrong_key(key: str, schema: Schema) -> str:
    if not _is_unicode(key):
        return N_("holds half a character")
    return N_("is no name of a setting") if schema.identifiers and not key.isidentifier() else ""


def _is_unicode(value: str) -> bool:
    """Whether text can be written as UTF-8: half a surrogate pair cannot."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False
