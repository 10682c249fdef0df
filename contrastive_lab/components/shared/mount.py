"""Components in their hosts: mounted in the app, or bundled into one module for a notebook or a file; and their
binary messages: a JSON header, then arrays aligned to eight bytes, which transport.js unpacks.

The app serves a component's ES module and its imports as files. All components share one asset folder, this package, so
`../shared/dom.js` is a relative import. Streamlit finds such folders only in the pyproject.toml of installed
distributions. The app also runs from a bare checkout, so the folder is declared here to the active runtime.

Other hosts accept a single module and serve no files. There each module becomes a function that is called once, in the
order of the imports, and returns its exports. This works where a page's policy forbids `blob:` and `data:` scripts, and
needs no build and no node. It is not a JavaScript parser: Prettier writes each import and export at the start of a line
in one of the few forms below; any other form raises an error."""

import hashlib
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_lab import locale

COMPONENTS = Path(__file__).resolve().parents[1]
DISTRIBUTION = "contrastive-lab"
PLAIN = re.compile(r"[A-Za-z0-9 ._-]{1,80}")
PARTS = {  # each with its style sheet in shared/
    **dict.fromkeys(("bench", "cut_off"), "bench"),
    **dict.fromkeys(("circle", "dimension_view", "loss_view", "sample_view", "siamese"), "lab"),
    **{part: part for part in ("alike", "family", "playground", "star")},
    **dict.fromkeys(("figure_file", "gallery", "map_pictures", "scatter"), "map"),
}


def mount(
    part: str, blob: bytes, state: str | None, key: str, first: Any = None, on_change: Callable[[], None] | None = None
) -> Any:
    """Draw a component; return its state `state` as last reported by the browser (None: it has none).

    Args:
        part: one of PARTS: the folder with its main.js. blob: the result of `pack`.
        key: any text. first: the initial state.
        on_change: called before the page is redrawn, when the browser reports a state."""
    from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

    manager = get_bidi_component_manager()
    if manager.get_component_path(f"{DISTRIBUTION}.{part}") is None:  # once for each runtime
        components = [ComponentConfig(name, COMPONENTS.name) for name in PARTS]
        manager.register_from_manifest(ComponentManifest(DISTRIBUTION, "0", components), COMPONENTS.parent)
    renderer = _renderer(part)
    if state is None:
        return renderer(key=component_key(key), data=blob)
    report = {f"on_{state}_change": on_change or (lambda: None)}
    result = renderer(key=component_key(key), data=blob, default={state: first}, **report)
    return getattr(result, state)


@cache
def _renderer(part: str) -> Any:
    import streamlit as st

    html = f'<div class="{"loading" * (part == "scatter")}"></div>'  # in sight until the script runs
    return st.components.v2.component(
        f"{DISTRIBUTION}.{part}", html=html, css=f"shared/{PARTS[part]}.css", js=f"{part}/main.js"
    )


def component_key(text: str) -> str:
    """Return the text if it is a valid key, else a digest: Streamlit rejects two underscores in a component's key."""
    if PLAIN.fullmatch(text) and "__" not in text:
        return text
    return f"part-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def reported_state(key: str, state: str) -> Any:
    """Return a state of the component with this key, as last reported by the browser; None before the first report."""
    import streamlit as st

    return (st.session_state.get(component_key(key)) or {}).get(state)


# --- bundles ---------------------------------------------------------------------------------------


IMPORT = re.compile(r'^import \{ ([\w$, ]+) \} from "([^"]+)";$', re.M)
EXPORT = re.compile(r"^export (?=(?:const|(?:async )?function) ([\w$]+))", re.M)
DEFAULT_FUNCTION = re.compile(r"^export default function (?=\()", re.M)
DEFAULT = re.compile(r"^export default (?!function|class|async)", re.M)
OTHER = re.compile(r"^\s*(import|export)\b(?!\s*\().*|.*\bimport(\(|\.meta).*", re.M)


@cache
def bundle(entry: str) -> str:
    """Return one ES module with the exports of `entry`, a path below components/. Raises ValueError for an unknown
    form."""
    modules: dict[Path, str] = {}
    _add((COMPONENTS / entry).resolve(), modules, ())
    names = {path: f"$module{number}" for number, path in enumerate(modules)}
    parts = [f"const {names[path]} = {_as_function(path, names)};" for path in modules]
    return "\n".join([*parts, f"export default {names[[*modules][-1]]}.default;", ""])


@cache
def style_sheet(*names: str) -> str:
    """Concatenate style sheets of shared/."""
    return "\n".join((COMPONENTS / "shared" / f"{n}.css").read_text("utf-8") for n in names)


def _add(path: Path, modules: dict[Path, str], above: tuple[Path, ...]) -> None:
    """Add a module after all its imports."""
    if path in above:
        raise ValueError(f"{path.name} imports itself, by way of {above[-1].name}")
    if path in modules:
        return
    text = path.read_text("utf-8")
    for _, name in IMPORT.findall(text):
        _add((path.parent / name).resolve(), modules, (*above, path))
    modules[path] = text


def _as_function(path: Path, names: dict[Path, str]) -> str:
    """Wrap a module in a function call that returns an object of its exports."""
    text = path.read_text("utf-8")
    exported = EXPORT.findall(text)

    def constants(match: re.Match[str]) -> str:
        wanted, source = match[1], (path.parent / match[2]).resolve()
        known = EXPORT.findall(source.read_text("utf-8"))
        for name in wanted.split(", "):
            if name.split(" as ")[0] not in known:
                raise ValueError(f"{source.name} does not export {name}, which {path.name} imports")
        return f"const {{ {wanted.replace(' as ', ': ')} }} = {names[source]};"

    text = EXPORT.sub("", IMPORT.sub(constants, text))
    if DEFAULT_FUNCTION.search(text) or DEFAULT.search(text):
        exported.append("default: $default")
    text = DEFAULT.sub("const $default = ", DEFAULT_FUNCTION.sub("function $default", text))
    if other := OTHER.search(text):
        raise ValueError(f"{path.name} cannot be bundled: {other.group().strip()}")
    return f"(() => {{\n{text}return {{ {', '.join(exported)} }};\n}})()"


# --- messages ---------------------------------------------------------------------------------------

ALIGN = 8
TEXTS = {"hints", "label", "note", "reason", "scoreName", "sentence", "title", "why"}  # keys of texts to show


def pack(view: Any = None, **more: Any) -> bytes:
    """Return the fields of a dataclass as one message, with additional or replacing fields.

    Arrays (floats as float32), bytes and thumbnails become bytes under the path of their field. Everything else becomes
    JSON, with field names in JavaScript's spelling."""
    arrays: dict[str, bytes] = {}
    meta = localized(_plain(_fields({} if view is None else vars(view), **more), "", arrays))
    places: dict[str, tuple[int, int]] = {}
    parts, offset = list[bytes](), 0
    for path, data in arrays.items():
        places[path] = (offset, len(data))
        parts += [data, b"\0" * (-len(data) % ALIGN)]
        offset += len(data) + len(parts[-1])
    header = json.dumps({"meta": meta, "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def _fields(values: Mapping[str, object], **more: object) -> dict[str, object]:
    """Return the fields by their JavaScript names: `column_names` becomes columnNames."""
    return {re.sub("_(.)", lambda match: match[1].upper(), name): v for name, v in {**values, **more}.items()}


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
            return _plain(_fields(vars(value)), path, arrays)
    return None


def localized(meta: dict[str, object]) -> dict[str, object]:
    """Translate messages of the library and constants under a key of TEXTS into the session's language, names stay; and
    add the messages of the browser components."""
    if (language := locale.language()) == "en":
        return meta

    def translated(node: Any, key: str) -> Any:
        if isinstance(node, dict):
            return {k: translated(v, str(k)) for k, v in node.items()}
        if isinstance(node, list):
            return [translated(one, key) for one in node]
        is_text = isinstance(node, locale.Message) or (isinstance(node, str) and key in TEXTS)
        return locale.text(node) if is_text else node

    return {**translated(meta, ""), "language": language, "messages": locale.browser_messages(language)}


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


# --- thumbnails ------------------------------------------------------------------------------------


TILE = 32  # pixels along the side of a thumbnail
QUALITIES = (80, 60, 40, 20)  # of a WebP, the first that fits
MANY_IMAGES = 10_000  # images; more get tiles half as wide
READ_AT_ONCE = 1 << 24  # numbers of images that are read at once, since they may lie in a file


@dataclass(frozen=True, eq=False)
class ThumbnailSheet:
    """An image of square tiles, `across` in a row, each `tile` pixels wide."""

    picture: bytes = b""  # PNG, JPEG or WebP; empty: there are none
    across: int = 1
    tile: int = TILE


NO_THUMBNAILS = ThumbnailSheet()


def thumbnail_sheet(
    images: np.ndarray | None, most: int | None = None, tile: int = 0, rows: np.ndarray | None = None
) -> ThumbnailSheet:
    """Return all images (n, c, h, w) uint8 in one sheet: a PNG, or a JPEG for many.

    Args: most: maximum bytes; then a WebP of the best quality that fits, with smaller tiles if necessary. tile: side of
    each in pixels; 0: depends on their number. A sheet of larger tiles is a WebP. rows: (m) int64, only these images,
    in this order."""
    if images is None or not len(images if rows is None else rows):
        return NO_THUMBNAILS
    rows = np.arange(len(images)) if rows is None else rows
    tile = tile or (TILE if len(rows) <= MANY_IMAGES else TILE // 2)
    if most is not None:
        for side, quality in itertools.product((tile, tile // 2, tile // 4), QUALITIES):
            pixels, across = _tiles(images, rows, side)
            if len(picture := _encoded(pixels, "WEBP", quality=quality)) <= most:
                return ThumbnailSheet(picture, across, side)
        return NO_THUMBNAILS
    pixels, across = _tiles(images, rows, tile)
    if tile > TILE:
        return ThumbnailSheet(_encoded(pixels, "WEBP", quality=QUALITIES[0], method=0), across, tile)  # the fastest
    return ThumbnailSheet(_encoded(pixels, "PNG" if tile == TILE else "JPEG"), across, tile)


def _encoded(pixels: np.ndarray, kind: str, **settings: int) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **settings)
    return buffer.getvalue()


def _tiles(images: np.ndarray, rows: np.ndarray, tile: int) -> tuple[np.ndarray, int]:
    """Return the pixels (h, w, 3) of some images' tiles, read in blocks, and the number of tiles in a row."""
    n, (c, h, w) = len(rows), images.shape[1:]
    across = math.ceil(math.sqrt(n))
    down = math.ceil(n / across)
    middles = (np.arange(tile) + 0.5) / tile
    y, x = (np.minimum(middles * size, size - 1).astype(np.int64) for size in (h, w))  # the nearest pixels
    sheet, step = np.zeros((down * across, tile, tile, 3), np.uint8), max(1, READ_AT_ONCE // (c * h * w))
    for start in range(0, n, step):
        block = np.asarray(images[rows[start : start + step]])
        small = block[:, :, y][:, :, :, x].transpose(0, 2, 3, 1)  # (b, t, t, c)
        sheet[start : start + step][: len(small)] = small[..., : 3 if c > 2 else 1]
    sheet = sheet.reshape(down, across, tile, tile, 3).transpose(0, 2, 1, 3, 4)
    return sheet.reshape(down * tile, across * tile, 3), across
