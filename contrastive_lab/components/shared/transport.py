"""Binary messages for the browser: a JSON header, then arrays aligned to eight bytes; transport.js unpacks them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_lab import locale
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet

ALIGN = 8
TEXTS = {"hints", "label", "note", "reason", "scoreName", "sentence", "title", "why"}  # keys of texts to show


def pack(view: Any = None, **more: Any) -> bytes:
    """Return the fields of a dataclass as one message, with additional or replacing fields.

    Arrays (floats as float32), bytes and thumbnails become bytes under the path of their field. Everything else becomes
    JSON, with field names in JavaScript's spelling."""
    places: dict[str, tuple[int, int]] = {}
    arrays: dict[str, bytes] = {}
    parts, offset = [], 0
    meta = localized(_plain(_fields({} if view is None else vars(view), more), "", arrays))
    for path, data in arrays.items():
        places[path] = (offset, len(data))
        padding = -len(data) % ALIGN
        parts += [data, b"\0" * padding]
        offset += len(data) + padding
    header = json.dumps({"meta": meta, "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def _fields(values: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by their JavaScript names: `column_names` becomes columnNames."""
    names = {name: name.split("_") for name in {**values, **more}}
    camel = {name: first + "".join(map(str.capitalize, rest)) for name, (first, *rest) in names.items()}
    return {camel[name]: value for name, value in {**values, **more}.items()}


def _plain(value: Any, path: str, arrays: dict[str, bytes]) -> Any:
    """Return the JSON form of a value; put binary data into `arrays`."""
    match value:
        case str() | int() | float() | None:
            return value
        case bytes():
            arrays[path] = value
        case np.ndarray():
            arrays[path] = np.ascontiguousarray(value, np.float32 if value.dtype.kind == "f" else None).tobytes()
        case ThumbnailSheet():
            arrays[path] = value.picture
            return {"across": value.across, "tile": value.tile}
        case Mapping():
            return {name: _plain(one, f"{path}.{name}".lstrip("."), arrays) for name, one in value.items()}
        case list() | tuple() | range():
            return [_plain(one, path, arrays) for one in value]
        case _:
            return _plain(_fields(vars(value), {}), path, arrays)
    return None


def localized(meta: dict[str, Any]) -> dict[str, Any]:
    """Translate meta data into the session's language, and add the messages of the browser components."""
    if (language := locale.language()) == "en":
        return meta
    return {**_translated(meta), "language": language, "messages": locale.browser_messages(language)}


def _translated(node: Any, key: str = "") -> Any:
    """Translate messages of the library and constants under a key of TEXTS; names stay."""
    if isinstance(node, dict):
        return {k: _translated(v, str(k)) for k, v in node.items()}
    if isinstance(node, (list, tuple)):
        return [_translated(one, key) for one in node]
    return locale.text(node) if isinstance(node, locale.Message) or (isinstance(node, str) and key in TEXTS) else node


@dataclass(frozen=True)
class SliderKnob:
    """A numeric setting of a loss as a slider, linear or logarithmic."""

    label: str  # "τ, temperature": the symbol, then what it is
    low: float
    high: float
    value: float | None  # None: switched off
    log: bool = False  # from 0: a fourth power, which has a zero
    name: str = ""  # of the knob; where several stand below one another
    first: float | None = None  # what it is switched on at
    is_whole: bool = False


def digest(*parts: Any) -> str:
    """Return a short hash of plain values, the cache key of results computed from them."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
