"""Small pictures for the entry points of the front page, drawn from the shipped runs."""

import base64
from collections.abc import Callable

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.lab import lab_view
from contrastive_core.lab.lab_view import NEGATIVE, POSITIVE
from contrastive_core.spaces import results
from contrastive_core.spaces.space import Space
from contrastive_lab.components.scatter.categories import PALETTE
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.loss_lab.lessons import RUN

WIDTH, HEIGHT, EDGE = 104, 80, 6
ANCHOR, AROUND = 36, 6  # of the star: an image of the batch, and how many negatives
MOST_POINTS = 400
DIGITS, DIGIT, LABELS = "simclr-digits", 41, ("9", "4")  # an image of that run's batch; a wrong and its right label
ORANGE, GREEN, BLUE, GRAY = "#E07A2F", "#1A8A63", "#2F6FD0", "#7A8590"


@st.cache_resource(show_spinner=False)
def all_pictures() -> tuple[str, ...]:
    """Return an HTML element for each of home.DOORS; empty if a run is missing."""
    return tuple(_picture(draw) for draw in (_star, _map, _label, _curve))


def _picture(draw: Callable[[], str]) -> str:
    try:
        inside = draw()
    except (OSError, ValueError, KeyError, TypeError):  # without the shipped runs
        inside = ""
    box = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{inside}</svg>'
    return f'<img alt="" src="data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}">'


def _star() -> str:
    """Return the picture of an anchor with its other view and its nearest negatives."""
    found = lab_view.opening_view(runs.load(RUN), "nt_xent")
    if found is None:
        return ""
    view, thumbs = found
    order = np.argsort(-view.scores[ANCHOR])
    roles = view.mask[ANCHOR][order]
    rows = [*order[roles == POSITIVE][:1], *order[roles == NEGATIVE][:AROUND]]
    x, y, lines, tiles = WIDTH / 2, HEIGHT / 2, [], []
    for k, row in enumerate(rows):
        angle = 2.9 + 2 * np.pi * k / len(rows)
        at = x + 42 * np.cos(angle), y + 31 * np.sin(angle)
        lines.append(_line(x, y, *at, BLUE if k == 0 else ORANGE, 4 if k < 2 else 1))
        tiles.append(_image(thumbs[view.row_thumbs[row]], *at, 16))
    return "".join([*lines, *tiles, _image(thumbs[view.row_thumbs[ANCHOR]], x, y, 28)])


@st.cache_resource(show_spinner=False)
def map_of_run() -> tuple[np.ndarray, np.ndarray]:
    """Return the positions (n, 2) of a run's images on its map, from 0 to 1, and labels (n). Raises OSError without the
    run."""
    places = json_files.read_npz(results.shipped_path("map", RUN, "test", "h", "umap"))["xy"]
    rows = Space.of_run(runs.load(RUN)).rows()
    assert rows is not None  # they are shipped with the map
    low, high = places.min(0), places.max(0)
    return (places - low) / (high - low), np.asarray(rows.labels)


def _map() -> str:
    """Return the picture of a map's points by class."""
    places, labels = (values[:MOST_POINTS] for values in map_of_run())
    x, y = (EDGE + places * (np.array([WIDTH, HEIGHT]) - 2 * EDGE)).T
    paths = []
    for label in np.unique(labels):
        points = "".join(f"M{x[i]:.0f} {y[i]:.0f}h0" for i in np.flatnonzero(labels == label))
        color = PALETTE[label % len(PALETTE)]
        paths.append(f'<path d="{points}" stroke="{color}" stroke-width="3" stroke-linecap="round"/>')
    return "".join(paths)


def _label() -> str:
    """Return the picture of an image with a wrong label."""
    found = lab_view.opening_view(runs.load(DIGITS), "nt_xent")
    if found is None:
        return ""
    wrong, right = LABELS
    frame = f'<rect x="4" y="10" width="60" height="60" fill="none" stroke="{ORANGE}" stroke-width="3"/>'
    font = 'x="86" text-anchor="middle" font-family="sans-serif" font-size="24" font-weight="600"'
    words = (
        f'<text {font} y="36" fill="{ORANGE}" text-decoration="line-through">{wrong}</text>'
        f'<text {font} y="66" fill="{GREEN}">{right}</text>'
    )
    return _image(found[1][DIGIT], 34, 40, 60) + frame + words


def _curve() -> str:
    """Return the picture of a training's loss curve."""
    losses = np.array([line["loss"] for line in runs.load(RUN).metrics() if "loss" in line and "epoch" in line])
    heights = (losses - losses.min()) / (losses.max() - losses.min())
    x = np.linspace(EDGE, WIDTH - EDGE, len(losses))
    y = HEIGHT - EDGE - 8 - heights * (HEIGHT - 2 * EDGE - 8)
    points = " ".join(f"{a:.0f},{b:.0f}" for a, b in zip(x, y, strict=True))
    return (
        f'<polyline points="{points}" fill="none" stroke="{GRAY}" stroke-width="2.5"/>'
        f'<path d="M{EDGE} {HEIGHT - EDGE}H{WIDTH - EDGE}" stroke="{GRAY}" stroke-opacity="0.4"/>'
    )


def _line(x: float, y: float, to_x: float, to_y: float, color: str, width: float) -> str:
    return f'<path d="M{x} {y}L{to_x:.1f} {to_y:.1f}" stroke="{color}" stroke-width="{width}"/>'


def _image(pixels: np.ndarray, x: float, y: float, side: float) -> str:
    """Return an image (c, h, w) centered at a position."""
    data = base64.b64encode(thumbnail_sheet(pixels[None]).picture).decode()
    return (
        f'<image href="data:image/png;base64,{data}" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" '
        f'width="{side}" height="{side}"/>'
    )
