"""Translatable sentences of the library: a template and its values.

    raise BadSetting(message("batch {batch} is larger than the {count} images", batch=b, count=n))

A `Message` is its English sentence, so `str(error)`, files and the command line need nothing else.
`N_` marks a constant for extraction. The app translates both when it shows them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

DEEPEST, LONGEST = 32, 20_000  # maximum levels and characters of a stored message
LONGEST_LINE = 2000  # characters of a line on a terminal
JOINERS = "\u200c\u200d"  # invisible, and part of words in Persian and Hindi and of emoji
FULL_WIDTH_SPACE = re.compile("(?<=[。，；：！？]) ")  # after full-width punctuation, which includes a space


class Message(str):
    """An English sentence that keeps its template and values."""

    template: str
    values: Mapping[str, object]
    stored, depth = 0, 0  # characters and levels in the file that it was read from

    def __new__(cls, template: str, values: Mapping[str, object]) -> Message:
        sentence = super().__new__(cls, template.format(**values))
        sentence.template, sentence.values = template, dict(values)
        return sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.template, self.values)

    def __add__(self, other: str) -> Message:
        return join("", [self, other])

    def __radd__(self, other: str) -> Message:
        return join("", [other, self])

    def in_language(self, text: Callable[[str], str]) -> str:
        """Return the sentence in another language. Args: text: function that translates one text."""
        values = {name: translate(value, text) for name, value in self.values.items()}
        return FULL_WIDTH_SPACE.sub("", text(self.template).format(**values))


def message(template: str, /, **values: object) -> Message:
    """Return a sentence with named placeholders; Babel extracts its template."""
    return Message(template, values)


def join(separator: str, parts: Iterable[str]) -> Message:
    """Join several sentences into one text that can still be translated."""
    values = {f"part{k}": part for k, part in enumerate(parts)}
    return Message(separator.replace("{", "{{").replace("}", "}}").join(f"{{{name}}}" for name in values), values)


def sentence(error: BaseException) -> str:
    """Return the text of an error; a message keeps its template."""
    said = error.args[0] if len(error.args) == 1 else None
    return said if isinstance(said, Message) else str(error).strip()


def translate(value: object, text: Callable[[str], str]) -> object:
    """Translate a message, an error or a text; return anything else unchanged."""
    if isinstance(value, BaseException):
        value = value.args[0] if len(value.args) == 1 and isinstance(value.args[0], str) else str(value)
    if isinstance(value, Message):
        return value.in_language(text)
    return text(value) if isinstance(value, str) else value


def N_(text: str) -> str:
    """Mark a constant for extraction by Babel."""
    return text


def encode(node: Any) -> Any:
    """Convert to plain values for JSON. Messages keep their templates and values."""
    if isinstance(node, Message):
        return {"message": node.template, "values": {name: _value(v) for name, v in node.values.items()}}
    if isinstance(node, Mapping):
        return {key: encode(value) for key, value in node.items()}
    return [encode(one) for one in node] if isinstance(node, (list, tuple)) else node


def _value(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no nan
    return encode(value) if isinstance(value, (str, int, float)) or value is None else str(value)


def decode(node: dict[str, object]) -> Any:
    """Decode the result of `encode`, as the `object_hook` of `json.loads`; return other objects unchanged.
    A file may come from anyone, so templates may only contain bare names: no attribute, index or width. The length is
    checked before formatting, because a few bytes of nested messages could fill the memory."""
    template, values = node.get("message"), node.get("values")
    if node.keys() != {"message", "values"} or not isinstance(template, str) or not isinstance(values, dict):
        return node
    try:
        parts = list(Formatter().parse(template))
        lengths = {name: len(value if isinstance(value, str) else str(value)) for name, value in values.items()}
        # a value counts as at least one character: its translation may be longer
        length = sum(len(literal) + max(1, lengths[name] if name else 0) for literal, name, _, _ in parts)
        inner = [value for value in values.values() if isinstance(value, Message)]
        stored = len(template) + sum(lengths.values()) + sum(one.stored - len(one) for one in inner)
        depth = 1 + max((one.depth for one in inner), default=0)
        if length > min(LONGEST, 2 * stored) or depth > DEEPEST or not _is_plain(parts, values):
            return node
        made = Message(template, values)
    except (ValueError, KeyError, TypeError):
        return node
    made.stored, made.depth = stored, depth
    return made


def _is_plain(parts: Iterable[tuple[str, str | None, str | None, str | None]], values: Mapping[str, object]) -> bool:
    """Return whether a template has bare names only and all values are texts, numbers or None."""
    are_bare = all(name is None or (name.isidentifier() and not spec and not how) for _, name, spec, how in parts)
    return are_bare and all(value is None or isinstance(value, (str, int, float)) for value in values.values())


def printable(text: object, limit: int = 300) -> str:
    """Return text for a message: control characters, invalid UTF-8 and marks that reverse the text direction
    are escaped, and text longer than `limit` is cut."""
    plain = str(text)[: limit + 1]
    escaped = plain if plain.isprintable() else escape(plain)  # true for nearly all texts
    return escaped if len(escaped) <= limit else f"{escaped[: limit - 1]}…"


def escape(text: str) -> str:
    """Escape the control characters and lone surrogates of a text."""
    return "".join(c if c.isprintable() or c in JOINERS else c.encode("unicode_escape").decode("ascii") for c in text)


def terminal_line(line: str) -> str:
    """Return a line for a terminal: control characters and lone surrogates are escaped, and a long line is cut."""
    shortened = line[:LONGEST_LINE] + (f" … ({len(line):,} characters)" if len(line) > LONGEST_LINE else "")
    return escape(shortened)


def thousands(**numbers: int) -> dict[str, str]:
    """Format numbers for a message, with commas between thousands."""
    return {name: f"{number:,}" for name, number in numbers.items()}
