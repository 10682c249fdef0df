"""Sentences of the library that an interface can translate: a template and its values.

    raise BadSetting(message("batch {batch} is larger than the {count} images", batch=b, count=n))

A `Message` is its English sentence, so `str(error)`, files and the command line need nothing else.
`N_` marks a constant for extraction. The app translates both where it shows them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

FULL_WIDTH_SPACE = re.compile("(?<=[。，；：！？]) ")  # between joined sentences; the sign brings its own


class Message(str):
    """An English sentence that remembers its template and the values in it."""

    template: str
    values: Mapping[str, object]

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
        """The sentence by another language's templates. Args: text: translates one text."""
        values = {name: translate(value, text) for name, value in self.values.items()}
        return FULL_WIDTH_SPACE.sub("", text(self.template).format(**values))


def message(template: str, /, **values: object) -> Message:
    """A sentence with named placeholders; Babel extracts its template."""
    return Message(template, values)


def join(separator: str, parts: Iterable[str]) -> Message:
    """Several sentences as one text, each still translatable."""
    values = {f"part{k}": part for k, part in enumerate(parts)}
    return Message(separator.replace("{", "{{").replace("}", "}}").join(f"{{{name}}}" for name in values), values)


def sentence(error: BaseException) -> str:
    """Return the text of an error; a message keeps its template."""
    said = error.args[0] if len(error.args) == 1 else None
    return said if isinstance(said, Message) else str(error).strip()


def translate(value: object, text: Callable[[str], str]) -> object:
    """A message, an error or a text in another language; anything else as it is."""
    if isinstance(value, BaseException):
        value = value.args[0] if len(value.args) == 1 and isinstance(value.args[0], str) else str(value)
    if isinstance(value, Message):
        return value.in_language(text)
    return text(value) if isinstance(value, str) else value


def N_(text: str) -> str:
    """Mark a constant for extraction."""
    return text


def encode(node: Any) -> Any:
    """Plain values for JSON, in which messages keep their template and values."""
    if isinstance(node, Message):
        return {"message": node.template, "values": {name: _value(v) for name, v in node.values.items()}}
    if isinstance(node, Mapping):
        return {key: encode(value) for key, value in node.items()}
    return [encode(one) for one in node] if isinstance(node, (list, tuple)) else node


def _value(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no nan
    return encode(value) if isinstance(value, (str, int, float)) or value is None else str(value)


def decode(node: dict[str, Any]) -> Any:
    """The `object_hook` of `json.loads` for what `encode` made; anything else as it is. A file may come from elsewhere,
    so a template has bare names only: no attribute, index or width."""
    if node.keys() != {"message", "values"} or not isinstance(node["values"], dict):
        return node
    try:
        fields = list(Formatter().parse(node["message"]))
        is_plain = all(name is None or (name.isidentifier() and not spec and not how) for _, name, spec, how in fields)
        return Message(node["message"], node["values"]) if is_plain else node
    except (ValueError, KeyError, TypeError):
        return node
