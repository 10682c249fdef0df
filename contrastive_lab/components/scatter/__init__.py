"""A map of many points with their images; a selection is returned as row numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contrastive_lab.components.scatter.categories import PALETTE, categories
from contrastive_lab.components.scatter.rows import pack_rows, rows_of
from contrastive_lab.components.shared.mount import component_key, mount, reported_state
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, ThumbnailSheet
from contrastive_lab.components.shared.transport import pack

MAX_POINTS = 1_000_000  # that stay smooth (benchmarks/scatter.py); far out as their density
MAX_IMAGES = 50_000  # whose thumbnails fit into one sheet
MAX_LINES = 20_000  # between partners
GAP = 1.15  # from one map's middle to the next one's side by side, in widths of the widest


@dataclass(frozen=True)
class Panels:
    """Several maps of the same rows in one figure, with a shared selection."""

    rows: int
    names: list[str]
    at: list[list[float]]  # where each name stands
    box: list[float]  # x0, x1, y0, y1 of all


@dataclass(frozen=True, eq=False)
class ScatterData:
    """Points with their categories, texts and images."""

    xy: np.ndarray  # (n, 2)
    ids: Sequence[str]
    content: str  # changes when xy or the thumbnails change
    color: np.ndarray | None = None  # (n) categories 0…, or numbers, cut into eight steps
    names: Sequence[str] = ()  # of the categories
    palette: Sequence[str] = PALETTE  # of the categories, used over and over
    hints: Sequence[str] = ()  # a text for each row, its lines shown when it is pointed at
    thumbnails: ThumbnailSheet = NO_THUMBNAILS
    pictured: np.ndarray | None = None  # ascending rows that have a thumbnail; None: all have
    partners: np.ndarray | None = None  # (m, 2) rows that lines connect once they are asked for
    partner_count: int = 0  # pairs of partners, of which these are a share
    medoids: Sequence[int] = ()  # rows whose images stand on the map while it is seen whole
    crowds: Sequence[Mapping[str, Any]] = ()  # `row` above which a crowd's `name` stands, the largest first
    rows_key: str = ""  # of maps with the same rows: from one to the next the points move
    title: str = "map"
    file: str = ""  # what its pictures are called; else as its title
    note: str = ""
    panels: Panels | None = None
    target: np.ndarray | None = None  # (n, 2), where the slider moves the points of panels to
    frames: np.ndarray | None = (
        None  # (k, n, 2) maps of the same rows over time, xy the last; a strip goes through them
    )
    frame_names: Sequence[str] = ()  # (k)


@dataclass(frozen=True)
class LinkedSelection:
    """A selection shared with other components."""

    rows: Sequence[int] | np.ndarray = ()  # lit from elsewhere, taken over when `stamp` changes
    stamp: str = ""
    on_change: Callable[[np.ndarray], None] | None = None  # called when a person chose some rows


def side_by_side(data: ScatterData, maps: Sequence[np.ndarray], titles: Sequence[str]) -> ScatterData:
    """Combine maps (n, 2) of the rows of `data`, with their titles, in one scatter; a slider morphs all into the
    first."""
    n, count = len(maps[0]), len(maps)
    across = count if count <= 3 else math.ceil(count / 2)
    centered = [xy - (xy.min(0) + xy.max(0)) / 2 for xy in maps]
    cell = GAP * max(float(np.ptp(xy, axis=0).max()) for xy in centered) or 1.0
    middles = [np.array([q % across, -(q // across)]) * cell for q in range(count)]
    at = [[float(m[0]), float(m[1] + 0.5 * cell)] for m in middles]
    corners = [float(v) * cell for v in (-0.5, across - 0.5, 0.5 - math.ceil(count / across), 0.5)]
    return replace(
        data,
        xy=np.concatenate([xy + m for xy, m in zip(centered, middles, strict=True)]),
        color=None if data.color is None else np.tile(data.color, count),
        panels=Panels(n, list(titles), at, corners),
        target=np.concatenate([centered[0] + m for m in middles]),
    )


def draw_scatter(
    data: ScatterData,
    selection: LinkedSelection = LinkedSelection(),
    *,
    fits: bool = False,
    gallery: bool = True,
    key: str = "map",
) -> np.ndarray:
    """Draw a map; return the selected rows (m) int64.

    Args: fits: fill the rest of the screen's height. gallery: draw the images of the selection below; otherwise a line
    of the images in view."""
    lit = _lit_at_first(key, f"{data.content} {selection.stamp}", selection.rows)
    blob = pack_scatter(data, lit, selection.stamp, fits=fits, gallery=gallery)

    def report() -> None:
        if selection.on_change:
            selection.on_change(rows_of(reported_state(key, "selection")))

    first = pack_rows(lit, len(data.ids))
    return rows_of(mount("scatter", blob, "selection", key, first=first, on_change=report))


def pack_scatter(
    data: ScatterData,
    lit: Sequence[int] | np.ndarray = (),
    stamp: str = "",
    height: int = 520,
    fits: bool = False,
    gallery: bool = True,
) -> bytes:
    """Return the data of the map for the browser, in any host; `lit` is applied when `stamp` changes."""
    group, labels, colors = categories(data.color, data.names, len(data.xy), data.palette)
    ids = [str(i).replace("\0", " ") for i in data.ids]  # each ends with a zero (ids.js)
    id_bytes = "".join(f"{i}\0" for i in ids).encode("utf-8", "replace")
    arrays = {"xy": np.asarray(data.xy, np.float32), "ids": id_bytes, "color": group}
    if data.pictured is not None:
        arrays["pictured"] = data.pictured.astype("<u4")
    if data.partners is not None:
        arrays["partners"] = data.partners.astype("<u4")
    selection = pack_rows(lit, len(data.ids))
    shown = {"selection": selection, "stamp": stamp, "height": height, "fits": fits, "gallery": gallery}
    return pack(data, names=labels, palette=colors, **arrays, **shown)


def _lit_at_first(key: str, stamp: str, rows: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the selection at the last change of map or `stamp`. Sending one made on the map would send its data
    again."""
    import streamlit as st

    name = f"{key}:given"
    drawn = component_key(key) in st.session_state
    if not drawn or st.session_state.get(name, ("",))[0] != stamp:
        st.session_state[name] = (stamp, np.asarray(rows, np.int64))
    lit: np.ndarray = st.session_state[name][1]
    return lit
