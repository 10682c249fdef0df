"""A map of many points with their pictures; a selection comes back as row numbers."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from contrastive_lab.components.shared.transport import mount, pack

__all__ = ["MOST", "PALETTE", "scatter"]

MOST = 50_000  # points that stay smooth
PALETTE = (
    "#3B7DD8", "#E8833A", "#2FA37C", "#C65B9B", "#D9B23A",
    "#7A6BD1", "#5BB5DB", "#B4553F", "#7C8794", "#8FAE3F",
)  # fmt: skip
SCRIPTS = (
    "shared/transport", "shared/dom", "gallery/grid", "scatter/panels", "scatter/find",
    "scatter/draw", "scatter/pointer", "scatter/scatter",
)  # fmt: skip
SEQUENCE = ("#1B3A5C", "#2B5F8C", "#4A86B4", "#7FA9C4", "#B9C7C9", "#E3C9A2", "#E8A45C", "#CF6D2B")


@cache
def _mount() -> Any:
    return mount("scatter", SCRIPTS, "scatter/scatter")


def scatter(
    xy: np.ndarray,
    color: np.ndarray | None = None,
    names: Sequence[str] = (),
    *,
    content: str,
    ids: Sequence[str],
    title: str = "map",
    note: str = "",
    hints: Sequence[str] = (),
    sprite: bytes = b"",
    across: int = 1,
    tile: int = 32,
    selection: Sequence[int] = (),
    stamp: str = "",
    height: int = 520,
    key: str = "map",
    palette: Sequence[str] = PALETTE,
    panels: dict[str, Any] | None = None,
    target: np.ndarray | None = None,
    on_change: Callable[[list[int]], None] | None = None,
) -> list[int]:
    """Draw a map; returns the selected rows.

    Args:
        xy: (n, 2); color: (n) categories 0…, or numbers, which are cut into eight steps.
        names: of the categories. content: changes when xy or sprite change.
        hints: a text for each row, shown when it is pointed at.
        selection: rows lit from elsewhere, taken over when `stamp` changes.
        panels, target: of several maps of the same rows, see panels.py.
        palette: of the categories, used over and over if there are more of them.
        on_change: called with the rows before the page is drawn anew, when a person chose some.
    """
    groups, labels, colors = _groups(color, names, len(xy), palette)
    given = _given(key, f"{content} {stamp}", [int(i) for i in selection])
    meta = {
        "key": content, "ids": [str(i) for i in ids], "names": labels, "palette": colors,
        "title": title, "note": note, "hints": list(hints), "across": across, "tile": tile,
        "height": height, "selection": given, "stamp": stamp, "panels": panels,
    }  # fmt: skip
    moved = b"" if target is None else np.ascontiguousarray(target, np.float32).tobytes()
    found = _mount()(
        key=key,
        data=pack(
            meta,
            xy=np.ascontiguousarray(xy, np.float32).tobytes(),
            color=groups.tobytes(),
            sprite=sprite,
            target=moved,
        ),
        default={"selection": {"rows": given}},
        on_selection_change=lambda: on_change(_rows(_state(key))) if on_change else None,
    )
    return _rows(found.selection)


def _given(key: str, stamp: str, selection: list[int]) -> list[int]:
    """The selection as it was when the map was first drawn, or when map or `stamp` last changed.

    What is chosen on the map itself needs no way back to it: all its data would travel again.
    """
    import streamlit as st

    name = f"{key}:given"
    if key not in st.session_state or st.session_state.get(name, ("",))[0] != stamp:
        st.session_state[name] = (stamp, selection)
    return list(st.session_state[name][1])


def _state(key: str) -> dict[str, Any] | None:
    """What the browser chose, as it stands in the session."""
    import streamlit as st

    return st.session_state[key].get("selection")


def _rows(selection: dict[str, Any] | None) -> list[int]:
    """Row numbers as the browser packed them: a list, or one bit per point."""
    if selection and "bits" in selection:
        bits = np.frombuffer(base64.b64decode(selection["bits"]), np.uint8)
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()
    return [int(i) for i in (selection or {}).get("rows", [])]


def _groups(
    color: np.ndarray | None, names: Sequence[str], n: int, palette: Sequence[str]
) -> tuple[np.ndarray, list[str], list[str]]:
    """Category (n) uint8 of each point, with names and colors of the categories."""
    if color is None:
        return np.zeros(n, np.uint8), ["sample"], [palette[0]]
    color = np.asarray(color)
    if color.dtype.kind in "iub" and len(names):
        labels = [str(v) for v in names]
        groups = np.where(color < 0, len(labels), color)
        if (color < 0).any():
            labels.append("no label")
        colors = [palette[i % len(palette)] for i in range(len(labels))]
        return groups.astype(np.uint8), labels[:255], colors[:255]
    values = color.astype(np.float64)
    finite = values[np.isfinite(values)]
    edges = np.quantile(finite, np.linspace(0, 1, len(SEQUENCE) + 1)) if len(finite) else [0, 0]
    groups = np.searchsorted(edges[1:-1], np.nan_to_num(values, nan=edges[0]), side="right")
    labels = [f"{a:.3g} to {b:.3g}" for a, b in itertools.pairwise(edges)]
    return groups.astype(np.uint8), labels, list(SEQUENCE)
