"""Components in their hosts: mounted in the app, or bundled into one module for a notebook or a file.

The app serves a component's ES module and its imports as files. All components share one asset folder, this package, so
`../shared/dom.js` is a relative import. Streamlit finds such folders only in the pyproject.toml of installed
distributions. The app also runs from a bare checkout, so the folder is declared here to the active runtime.

Other hosts accept a single module and serve no files. There each module becomes a function that is called once, in the
order of the imports, and returns its exports. This works where a page's policy forbids `blob:` and `data:` scripts, and
needs no build and no node. It is not a JavaScript parser: Prettier writes each import and export at the start of a line
in one of the few forms below; any other form raises an error."""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

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

    return st.components.v2.component(
        f"{DISTRIBUTION}.{part}", html="<div></div>", css=f"shared/{PARTS[part]}.css", js=f"{part}/main.js"
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
