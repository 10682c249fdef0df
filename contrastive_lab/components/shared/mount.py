"""Mounts a browser part: its ES module is served as a file, and so are the modules it imports.

All parts share one asset folder, this package, so that `../shared/dom.js` is a relative import. Streamlit finds such
folders in the pyproject.toml of installed distributions only; the app also runs from a bare checkout, so the folder is
declared here, in the same words, to whichever runtime is active."""

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
    **{part: part for part in ("family", "playground", "star")},
    **dict.fromkeys(("figure_file", "gallery", "map_pictures", "scatter"), "map"),
}


def mount(
    part: str, blob: bytes, state: str | None, key: str, first: Any = None, on_change: Callable[[], None] | None = None
) -> Any:
    """Draw a part; returns its state `state` as the browser last reported it (None: it has none).

    Args:
        part: one of PARTS: the folder with its main.js. blob: what `pack` gives.
        key: any text. first: the state at first.
        on_change: called before the page is drawn anew, when the browser reports a state."""
    _declare()
    renderer = _renderer(part)
    if state is None:
        return renderer(key=component_key(key), data=blob)
    report = {f"on_{state}_change": on_change or (lambda: None)}
    result = renderer(key=component_key(key), data=blob, default={state: first}, **report)
    return getattr(result, state)


def component_key(text: str) -> str:
    """The text where it is plain, else a digest: Streamlit refuses two underscores in a component's key."""
    if PLAIN.fullmatch(text) and "__" not in text:
        return text
    return f"part-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def reported_state(key: str, state: str) -> Any:
    """A state of the part of this key, as the browser last reported it; None: not yet."""
    import streamlit as st

    return (st.session_state.get(component_key(key)) or {}).get(state)


@cache
def _renderer(part: str) -> Any:
    import streamlit as st

    return st.components.v2.component(
        f"{DISTRIBUTION}.{part}", html="<div></div>", css=f"shared/{PARTS[part]}.css", js=f"{part}/main.js"
    )


def _declare() -> None:
    """Tell the active runtime where the parts' files lie, unless it knows."""
    from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

    manager = get_bidi_component_manager()
    if manager.get_component_path(f"{DISTRIBUTION}.{next(iter(PARTS))}") is not None:
        return
    components = [ComponentConfig(part, COMPONENTS.name) for part in PARTS]
    manager.register_from_manifest(ComponentManifest(DISTRIBUTION, "0", components), COMPONENTS.parent)
