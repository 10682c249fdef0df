"""Colors of points: by category, or by a number cut into eight steps. The color-blind can tell the eight apart
(tests/app/test_palette.py); with more categories, the shape of a point tells them apart (points.js)."""

import base64
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from contrastive_lab.locale import N_, _

# Also in .streamlit/config.toml and ../shared/canvas.js.
PALETTE = ("#3B7DD8", "#E8833A", "#14A778", "#D993BD", "#EFC933", "#593DAB", "#80CFF5", "#933A2B")
SEQUENCE = ("#1B3A5C", "#2B5F8C", "#4A86B4", "#7FA9C4", "#B9C7C9", "#E3C9A2", "#E8A45C", "#CF6D2B")
NO_LABEL = "#B8BFC6"  # of points without one
NO_VALUE = N_("no value")
MAX_CATEGORIES = 255  # a category is one byte


def categories(
    color: np.ndarray | None, names: Sequence[str], n: int, palette: Sequence[str]
) -> tuple[np.ndarray, list[str], list[str]]:
    """Category (n) uint8 of each point, with names and colors of the categories."""
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
    """A color as it is used for the nth time: dark ones get lighter and light ones darker, three quarters in all."""
    channels = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)])
    toward = 255 if channels @ (0.3, 0.59, 0.11) < 120 else 0
    mixed = channels + (toward - channels) * (turn % 4) * 0.25
    return "#" + "".join(f"{round(v):02X}" for v in mixed)


def _of_classes(color: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Category (n) uint8 by class number (below 0: no label), and the names; the last one holds the rest."""
    none = (color < 0) | (color >= len(names))
    room = MAX_CATEGORIES - bool(none.any())
    if len(names) > room:
        n_more = len(names) - room + 1
        names = [*names[: room - 1], _("{n_more} more classes").format(n_more=f"{n_more:,}")]
    group = np.minimum(color.astype(np.int64), len(names) - 1)
    group[none] = len(names)
    return group.astype(np.uint8), [*names, _("no label")] if none.any() else names


# --- names of crowds on a map ----------------------------------------------------------------------

SIDE = 40  # cells along the longer side of the map
MOST = 24  # names
LEAST = 0.01  # of all points, and
FEWEST = 5  # points that are a crowd
MAJORITY = 0.5  # of a crowd's points
NEIGHBORS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]


def crowds(xy: np.ndarray, labels: np.ndarray) -> list[tuple[int, int, float]]:
    """Crowds of the map's points (n, 2), the largest first: a row at the crowd's upper edge, the class (below 0: none,
    which is no crowd), and the share that it has of all points in the crowd's cells."""
    span = float(np.ptp(xy, axis=0).max()) or 1.0
    cells = np.minimum(SIDE - 1, ((xy - xy.min(0)) / span * SIDE).astype(np.int64))
    number = cells[:, 0] * SIDE + cells[:, 1]
    total = np.bincount(number, minlength=SIDE * SIDE)
    found: list[tuple[int, int, int, float]] = []
    for label in np.unique(labels[labels >= 0]).tolist():
        own = np.flatnonzero(labels == label)
        counts = np.bincount(number[own], minlength=SIDE * SIDE)
        group = _groups(counts > 0)
        for one in range(1, int(group.max()) + 1):
            inside = group == one
            count, share = int(counts[inside].sum()), float(counts[inside].sum() / total[inside].sum())
            if count >= max(FEWEST, LEAST * len(xy)) and share > MAJORITY:
                found.append((count, _upper_edge(xy, own[inside[number[own]]]), label, share))
    found.sort(key=lambda crowd: -crowd[0])
    return [crowd[1:] for crowd in found[:MOST]]


def _groups(filled: np.ndarray) -> np.ndarray:
    """The number of the connected group of each cell (SIDE²), from 1; 0 of a cell that is not filled."""
    group, last = np.zeros(SIDE * SIDE, np.int64), 0
    for start in np.flatnonzero(filled).tolist():
        if group[start]:
            continue
        last += 1
        group[start], waiting = last, [start]
        while waiting:
            x, y = divmod(waiting.pop(), SIDE)
            for a, b in NEIGHBORS:
                at = (x + a) * SIDE + y + b
                if 0 <= x + a < SIDE and 0 <= y + b < SIDE and filled[at] and not group[at]:
                    group[at] = last
                    waiting.append(at)
    return group


def _upper_edge(xy: np.ndarray, rows: np.ndarray) -> int:
    """Of these rows one near the middle of the upper edge."""
    high = rows[xy[rows, 1] >= np.quantile(xy[rows, 1], 0.8)]
    return int(high[np.abs(xy[high, 0] - np.median(xy[rows, 0])).argmin()])


# --- rows of a map ---------------------------------------------------------------------------------
# Rows that stand for the map, and row numbers on their way between server and browser, as rows.js has them. Many go
# as runs of neighbors or as one bit for each row, whichever is shorter: a lasso around half of a million rows is 170
# kB at most, where their numbers as text would be 3.5 MB.


FEW = 500  # that go as a list


def pack_rows(rows: Sequence[int] | np.ndarray, n: int) -> dict[str, Any]:
    """Rows of n as plain values: a list in its order, or ascending `runs` (uint32 start, length) or `bits`."""
    if len(rows) <= FEW:
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


def rows_of(packed: dict[str, Any] | None) -> Int64[np.ndarray, " m"]:
    """Row numbers as either side packed them; none where nothing was reported."""
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


COUNT = 40
LOOKED_AT = 4_000  # points that the crowds are found among; more would be the same crowds


def medoids(xy: Float[np.ndarray, "n 2"], count: int = COUNT) -> Int64[np.ndarray, " m"]:
    """Rows (m ≤ count) nearest to the centers of k-means on the map, of the largest crowd first.

    They are taken in the map's plane, since that is what they have to cover. A seed is fixed, so that a map always
    shows the same ones. By scipy, whose import costs 47 MB of memory where scikit-learn's costs 186."""
    from scipy.cluster.vq import kmeans2

    at = np.flatnonzero(np.isfinite(xy).all(1))
    if len(at) > LOOKED_AT:
        at = np.sort(np.random.default_rng(0).choice(at, LOOKED_AT, replace=False))
    points, first = np.unique(np.asarray(xy[at], np.float64), axis=0, return_index=True)
    at = at[first]
    if len(at) <= count:
        return at.astype(np.int64)
    with warnings.catch_warnings(action="ignore"):  # a crowd may be left without points
        centers, group = kmeans2(points, count, minit="++", rng=0)
    sizes = np.bincount(group, minlength=count)
    distances = ((points[:, None] - centers[None]) ** 2).sum(2)  # (n, count)
    nearest = distances.argmin(0)[np.argsort(-sizes, kind="stable")]
    kept = list(dict.fromkeys(nearest.tolist()))  # two centers may share a row
    return at[kept].astype(np.int64)
