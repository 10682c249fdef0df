"""Mount a browser component, whose ES module and imports are served as files.

All components share one asset folder, this package, so `../shared/dom.js` is a relative import. Streamlit finds such
folders only in the pyproject.toml of installed distributions. The app also runs from a bare checkout, so the folder is
declared here to the active runtime."""

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
    _declare()
    renderer = _renderer(part)
    if state is None:
        return renderer(key=component_key(key), data=blob)
    report = {f"on_{state}_change": on_change or (lambda: None)}
    result = renderer(key=component_key(key), data=blob, default={state: first}, **report)
    return getattr(result, state)


def component_key(text: str) -> str:
    """Return the text if it is a valid key, else a digest: Streamlit rejects two underscores in a component's key."""
    if PLAIN.fullmatch(text) and "__" not in text:
        return text
    return f"part-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def reported_state(key: str, state: str) -> Any:
    """Return a state of the component with this key, as last reported by the browser; None before the first report."""
    import streamlit as st

    return (st.session_state.get(component_key(key)) or {}).get(state)


@cache
def _renderer(part: str) -> Any:
    import streamlit as st

    return st.components.v2.component(
        f"{DISTRIBUTION}.{part}", html="<div></div>", css=f"shared/{PARTS[part]}.css", js=f"{part}/main.js"
    )


def _declare() -> None:
    """Register the components' folder with the active runtime, once."""
    from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

    manager = get_bidi_component_manager()
    if manager.get_component_path(f"{DISTRIBUTION}.{next(iter(PARTS))}") is not None:
        return
    components = [ComponentConfig(part, COMPONENTS.name) for part in PARTS]
    manager.register_from_manifest(ComponentManifest(DISTRIBUTION, "0", components), COMPONENTS.parent)
