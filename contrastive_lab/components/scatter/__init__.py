"""A map of many points with their images, names of crowds and medoids; a selection is returned as row numbers.

Colors are by category, or by a number in eight steps. The eight colors are safe for the color-blind
(tests/app/test_palette.py); more categories are distinguished by the shape of a point (points.js).

Many rows are sent as runs of consecutive numbers or as one bit per row, whichever is shorter, in the format of rows.js:
a lasso around half of a million rows takes at most 170 kB, where numbers as text would take 3.5 MB."""

import base64
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from contrastive_lab.components.shared.mount import (
    NO_THUMBNAILS,
    ThumbnailSheet,
    component_key,
    mount,
    pack,
    reported_state,
)
from contrastive_lab.locale import N_, _

# --- colors ----------------------------------------------------------------------------------------


# Also in .streamlit/config.toml and ../shared/canvas.js.
PALETTE = ("#3B7DD8", "#E8833A", "#14A778", "#D993BD", "#EFC933", "#593DAB", "#0A6565", "#933A2B")
SEQUENCE = ("#1B3A5C", "#2B5F8C", "#4A86B4", "#7FA9C4", "#B9C7C9", "#E3C9A2", "#E8A45C", "#CF6D2B")
NO_LABEL = "#B8BFC6"  # of points without one
NO_VALUE = N_("no value")
MAX_CATEGORIES = 255  # a category is one byte


def categories(
    color: np.ndarray | None, names: Sequence[str], n: int, palette: Sequence[str]
) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the category (n) uint8 of each point, with names and colors of the categories."""
    if color is None:
        return np.zeros(n, np.uint8), ["sample"], [palette[0]]
    color = np.asarray(color)
    if color.dtype.kind in "iub" and len(names):
        group, labels = _of_classes(color, [str(v) for v in names])
        colors = [shade(palette[i % len(palette)], i // len(palette)) for i in range(len(labels))]
        if ((color < 0) | (color >= len(names))).any():
            colors[-1] = NO_LABEL
        return group, labels, colors
    values = color.astype(np.float64)
    finite, missing = values[np.isfinite(values)], np.isnan(values)
    edges = np.quantile(finite, np.linspace(0, 1, len(SEQUENCE) + 1)) if len(finite) else [0, 0]
    group = np.searchsorted(edges[1:-1], np.nan_to_num(values, nan=edges[0]), side="right")
    step = _("{first} to {second}")
    labels = [step.format(first=f"{a:.3g}", second=f"{b:.3g}") for a, b in itertools.pairwise(edges)]
    group[missing] = len(SEQUENCE)
    names, colors = ([NO_VALUE], [NO_LABEL]) if missing.any() else ([], [])
    return group.astype(np.uint8), [*labels, *names], [*SEQUENCE, *colors]


def shade(color: str, turn: int) -> str:
    """Return a color's variant for its nth use: dark ones get lighter and light ones darker, three steps in all."""
    channels = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)])
    toward = 255 if channels @ (0.3, 0.59, 0.11) < 120 else 0
    mixed = channels + (toward - channels) * (turn % 4) * 0.25
    return "#" + "".join(f"{round(v):02X}" for v in mixed)


def _of_classes(color: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return the category (n) uint8 by class number (below 0: no label), and the names; the last one holds the rest."""
    none = (color < 0) | (color >= len(names))
    room = MAX_CATEGORIES - bool(none.any())
    if len(names) > room:
        n_more = len(names) - room + 1
        names = [*names[: room - 1], _("{n_more} more classes").format(n_more=f"{n_more:,}")]
    group = np.minimum(color.astype(np.int64), len(names) - 1)
    group[none] = len(names)
    return group.astype(np.uint8), [*names, _("no label")] if none.any() else names


# --- row numbers -----------------------------------------------------------------------------------


LISTED = 500  # that go as a list


def pack_rows(rows: Sequence[int] | np.ndarray, n: int) -> dict[str, list[int] | str]:
    """Return rows of n as plain values: an ordered list, or ascending `runs` (uint32 start, length) or `bits`."""
    if len(rows) <= LISTED:
        return {"rows": [int(i) for i in rows]}
    ascending = np.unique(np.asarray(rows, np.int64))
    first = np.flatnonzero(np.diff(ascending, prepend=-2) != 1)
    if 8 * len(first) < n / 8:
        lengths = np.diff(first, append=len(ascending))
        runs = np.stack([ascending[first], lengths], 1).astype("<u4")
        return {"runs": base64.b64encode(runs.tobytes()).decode()}
    flags = np.zeros(n, np.uint8)
    flags[ascending] = 1
    return {"bits": base64.b64encode(np.packbits(flags, bitorder="little").tobytes()).decode()}


def rows_of(packed: Mapping[str, Any] | None) -> Int64[np.ndarray, " m"]:
    """Unpack row numbers from either side; empty without a report."""
    packed = packed or {}
    if "runs" in packed:
        runs = np.frombuffer(base64.b64decode(packed["runs"]), "<u4").astype(np.int64)
        starts, lengths = runs[::2], runs[1::2]
        before = np.cumsum(lengths) - lengths
        return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    if "bits" in packed:
        bits = np.frombuffer(base64.b64decode(packed["bits"]), np.uint8)
        return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
    return np.asarray(packed.get("rows", []), np.int64)


# --- the map ---------------------------------------------------------------------------------------


MAX_POINTS = 1_000_000  # that stay smooth (benchmarks/scatter.py); far out as their density
MAX_IMAGES = 50_000  # whose thumbnails fit into one sheet
MAX_LINES = 20_000  # between partners
GAPS = np.array([[1.15, 1.05], [1.15, 1.25]])  # from one map's middle to the next one's, in widths and heights of the
# largest: with one line of maps, and with a name between lines


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
    crowds: Sequence[Mapping[str, int | str]] = ()  # `row` above which a crowd's `name` stands, the largest first
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
    lines = math.ceil(count / across)
    spans = np.max([np.ptp(xy, axis=0) for xy in centered], 0)
    wide, high = GAPS[min(lines, 2) - 1] * np.maximum(spans, spans.max() / 4 or 1.0)
    middles = [np.array([q % across * wide, -(q // across) * high]) for q in range(count)]
    at = [[float(m[0]), float(m[1] + high / 2)] for m in middles]
    corners = [float(v) for v in (-wide / 2, (across - 0.5) * wide, (0.5 - lines) * high, high / 2)]
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
    import streamlit as st

    given, stamp = f"{key}:given", f"{data.content} {selection.stamp}"
    is_drawn = component_key(key) in st.session_state
    if not is_drawn or st.session_state.get(given, ("",))[0] != stamp:
        st.session_state[given] = (stamp, np.asarray(selection.rows, np.int64))
    lit = st.session_state[given][1]  # as first sent: one made on the map would send its data again
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


# --- what stands on a map while it is seen whole -----------------------------------------------------


SIDE = 40  # cells along the longer side of the map
MOST_CROWDS = 24
LEAST, FEWEST = 0.01, 5  # of all points, and points, that are a crowd
MAJORITY = 0.5  # of a crowd's points
AROUND = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]  # a cell
MEDOIDS = 40
LOOKED_AT = 4_000  # points that the medoids are found among; more would give the same ones


def crowds(xy: np.ndarray, labels: np.ndarray) -> list[tuple[int, int, float, int]]:
    """Return the crowds of the map's points (n, 2), the largest first: a row at the crowd's upper edge, the class,
    its share of all points in the crowd's cells, and the next class there (−1: none). Classes below 0 form no
    crowds."""
    span = float(np.ptp(xy, axis=0).max()) or 1.0
    cells = np.minimum(SIDE - 1, ((xy - xy.min(0)) / span * SIDE).astype(np.int64))
    number = cells[:, 0] * SIDE + cells[:, 1]
    total = np.bincount(number, minlength=SIDE * SIDE)
    found: list[tuple[int, int, int, float, int]] = []
    for label in np.unique(labels[labels >= 0]).tolist():
        own = np.flatnonzero(labels == label)
        counts = np.bincount(number[own], minlength=SIDE * SIDE)
        group = _groups(counts > 0)
        for one in range(1, int(group.max()) + 1):
            inside = group == one
            count, share = int(counts[inside].sum()), float(counts[inside].sum() / total[inside].sum())
            if count >= max(FEWEST, LEAST * len(xy)) and share > MAJORITY:
                others = labels[inside[number] & (labels >= 0) & (labels != label)]
                other = int(np.bincount(others).argmax()) if len(others) else -1
                rows = own[inside[number[own]]]
                high = rows[xy[rows, 1] >= np.quantile(xy[rows, 1], 0.8)]
                edge = int(high[np.abs(xy[high, 0] - np.median(xy[rows, 0])).argmin()])  # above the crowd's middle
                found.append((count, edge, label, share, other))
    found.sort(key=lambda crowd: -crowd[0])
    return [crowd[1:] for crowd in found[:MOST_CROWDS]]


def _groups(filled: np.ndarray) -> np.ndarray:
    """Return the number, from 1, of the connected group of each cell (SIDE²); 0 for an empty cell."""
    group, last = np.zeros(SIDE * SIDE, np.int64), 0
    for start in np.flatnonzero(filled).tolist():
        if group[start]:
            continue
        last += 1
        group[start], waiting = last, [start]
        while waiting:
            x, y = divmod(waiting.pop(), SIDE)
            for a, b in AROUND:
                at = (x + a) * SIDE + y + b
                if 0 <= x + a < SIDE and 0 <= y + b < SIDE and filled[at] and not group[at]:
                    group[at] = last
                    waiting.append(at)
    return group


def medoids(
    xy: Float[np.ndarray, "n 2"], count: int = MEDOIDS, labels: np.ndarray | None = None
) -> Int64[np.ndarray, " m"]:
    """Return the rows (m ≤ count) nearest to the centers of k-means on the map, that of the largest cluster first.
    With labels (n), each is of its cluster's most frequent class.

    The clusters are in the map's plane, because the rows must cover it. The seed is fixed, so a map always has the same
    ones."""
    at = np.flatnonzero(np.isfinite(xy).all(1))
    if len(at) > LOOKED_AT:
        at = np.sort(np.random.default_rng(0).choice(at, LOOKED_AT, replace=False))
    points, first = np.unique(np.asarray(xy[at], np.float64), axis=0, return_index=True)
    at = at[first]
    if len(at) <= count:
        return at.astype(np.int64)
    centers = _centers(points, count)
    distances = _squared(points, centers)  # (n, count)
    group = distances.argmin(1)
    sizes = np.bincount(group, minlength=count)
    if labels is not None:
        own = labels[at] - min(labels[at].min(), 0)
        frequent = [np.bincount(own[group == c], minlength=1).argmax() for c in range(count)]
        distances[own[:, None] != frequent] = np.inf
    nearest = distances.argmin(0)[np.argsort(-sizes, kind="stable")]
    kept = list(dict.fromkeys(nearest.tolist()))  # two centers may share a row
    return at[kept].astype(np.int64)


def _centers(points: np.ndarray, count: int) -> np.ndarray:
    """Return centers of k-means: starts by k-means++ (Arthur & Vassilvitskii 2007), then Lloyd's iteration.

    The first page needs them, and the import of scipy's costs it 40 MB and half a second, scikit-learn's 186 MB."""
    draw = np.random.default_rng(0)
    centers = points[[draw.integers(len(points))]]
    while len(centers) < count:
        away = _squared(points, centers).min(1)
        centers = np.append(centers, points[[draw.choice(len(points), p=away / away.sum())]], axis=0)
    for _turn in range(10):
        group = _squared(points, centers).argmin(1)
        size = np.bincount(group, minlength=count)
        sums = np.stack([np.bincount(group, x, minlength=count) for x in points.T], 1)
        centers = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centers)
    return centers


def _squared(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return np.asarray(((points[:, None] - centers[None]) ** 2).sum(2))


# --- what a map asks for later ---------------------------------------------------------------------


MOST = 96  # at a time (more.js)


def bring_pictures(content: str, n: int, sheet_of: Callable[[np.ndarray], ThumbnailSheet], key: str = "map") -> None:
    """Send a map (its `content`, n rows, `key`) its missing thumbnails, without redrawing the page."""
    import streamlit as st

    own = f"{key}-brought"

    def bring() -> None:
        rows = rows_of(reported_state(own, "wanted"))[:MOST]
        rows = rows[(rows >= 0) & (rows < n)]
        blob = pack(key=content, rows=rows.tolist(), thumbnails=sheet_of(rows) if len(rows) else NO_THUMBNAILS)
        with st.container(key="map-pictures"):
            mount("map_pictures", blob, "wanted", own)

    st.fragment(bring)()


def tell_nearest(content: str, row: int, rows: list[int], similarity: list[float], key: str = "map") -> None:
    """Send a map the rows nearest to a selected one, the most similar first."""
    import streamlit as st

    with st.container(key="map-nearest"):
        mount("map_pictures", pack(key=content, row=row, rows=rows, similarity=similarity), None, f"{key}-nearest")
