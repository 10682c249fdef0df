"""What a JSON value must look like to be used: checked once, where the file is read. Torch-free.

Shapes nest: `fields({"epoch": whole()}, others=optional(number()))` is an object that has a whole
number as `epoch`, and otherwise numbers or nulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = [
    "Shape", "fields", "flag", "list_of", "mapping_of", "number", "one_of", "optional", "plain",
    "problem", "text", "whole",
]  # fmt: skip

DEPTH = 32  # levels of lists and objects; a page that shows them recurses
LARGEST = 2**63
KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number"}
NAMES = {**KINDS, int: "a whole number", float: "a number", type(None): "null"}


@dataclass(frozen=True)
class Shape:
    """What a value may be. Without `types`, any JSON that can be shown and written again: finite
    numbers, whole characters, no endless nesting."""

    types: tuple[type, ...] = ()
    optional: bool = False
    low: float = -1e300
    high: float = 1e300
    choices: tuple[str, ...] = ()
    length: int | None = None
    required: tuple[str, ...] = ()
    keys: Mapping[str, Shape] = field(default_factory=dict)
    others: Shape | None = None  # of a list's members, and of values whose keys are not in `keys`
    any_of: tuple[str, ...] = ()  # of these keys, one is required
    identifiers: bool = False  # whether keys are names of settings


plain = Shape()
text = Shape((str,))
flag = Shape((bool,))


def number(low: float = -1e300, high: float = 1e300) -> Shape:
    """A finite number in `low..high`."""
    return Shape((int, float), low=low, high=high)


def whole(low: int = 0, high: int = LARGEST) -> Shape:
    """A whole number in `low..high`."""
    return Shape((int,), low=low, high=high)


def one_of(*values: str) -> Shape:
    """One of some words."""
    return Shape((str,), choices=values)


def optional(shape: Shape) -> Shape:
    """null, or of that shape."""
    return replace(shape, optional=True)


def list_of(shape: Shape, length: int | None = None) -> Shape:
    """A list, of `length` if given, whose members are of that shape."""
    return Shape((list,), others=shape, length=length)


def mapping_of(shape: Shape) -> Shape:
    """An object whose values are all of that shape."""
    return Shape((dict,), others=shape)


def fields(
    required: Mapping[str, Shape] | None = None,
    allowed: Mapping[str, Shape] | None = None,
    others: Shape = plain,
) -> Shape:
    """An object that has the required keys, may have the allowed ones, and whose other values are
    of the shape `others`."""
    keys = {**(required or {}), **(allowed or {})}
    return Shape((dict,), required=tuple(required or ()), keys=keys, others=others)


def problem(value: Any, shape: Shape) -> str:
    """What is wrong with a value, and where in it; "" for nothing."""
    waiting: list[tuple[str, Any, Shape, int]] = [("", value, shape, 0)]
    while waiting:  # a loop: what is nested without end must not end this
        where, value, shape, depth = waiting.pop()
        kind = type(value)
        if not shape.types or kind in shape.types:  # most values are passed here
            if kind is str and value.isascii() and not shape.choices:
                continue
            if kind in (int, float) and shape.low <= value <= shape.high:
                continue
        if why := _wrong(value, shape, depth):
            return f"{where or 'it'} {why}"
        inner = shape.others or plain
        if isinstance(value, list):
            waiting += [(f"{where}[{i}]", v, inner, depth + 1) for i, v in enumerate(value)]
        elif isinstance(value, dict):
            for key, item in value.items():
                name = ascii(key)[1:-1][:40]
                plain_key = key.isascii() and not shape.identifiers
                if why := "" if plain_key else _wrong_key(key, shape):
                    return f"{where or 'it'} has a key {name!r} that {why}"
                place = f"{where}.{name}" if where else name
                waiting.append((place, item, shape.keys.get(key, inner), depth + 1))
    return ""


def _wrong(value: Any, shape: Shape, depth: int) -> str:
    """What is wrong with a value, but for what is inside it."""
    if value is None and (shape.optional or not shape.types):
        return ""
    kind = type(value)
    if shape.types and kind not in shape.types:
        expected = " or ".join(
            NAMES[t] for t in shape.types if t is not int or len(shape.types) == 1
        )
        return f"is {KINDS.get(kind, NAMES[kind])}, not {expected}"
    if kind is str:
        if shape.choices and value not in shape.choices:
            return f"is none of {', '.join(shape.choices)}"
        return "" if _is_unicode(value) else "holds half a character"
    if kind in (int, float):
        return "" if shape.low <= value <= shape.high else "is too large, too small or no number"
    if kind in (list, dict) and depth > DEPTH:
        return f"is nested more than {DEPTH} deep"
    if kind is list and shape.length not in (None, len(value)):
        return f"has {len(value)} members, not {shape.length}"
    if kind is dict:
        missing = [f"no {key!r}" for key in shape.required if key not in value]
        if shape.any_of and not value.keys() & shape.any_of:
            missing.append(f"none of {', '.join(shape.any_of)}")
        return f"has {missing[0]}" if missing else ""
    return ""


def _wrong_key(key: str, shape: Shape) -> str:
    if not _is_unicode(key):
        return "holds half a character"
    return "is no name of a setting" if shape.identifiers and not key.isidentifier() else ""


def _is_unicode(value: str) -> bool:
    """Whether text can be written as UTF-8: half a surrogate pair cannot."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False
