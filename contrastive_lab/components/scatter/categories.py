"""Colors of points: by category, or by a number in eight steps. The eight colors are safe for the color-blind
(tests/app/test_palette.py); more categories are distinguished by the shape of a point (points.js)."""

import itertools
from collections.abc import Sequence

import numpy as np

from contrastive_lab.locale import N_, _

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
