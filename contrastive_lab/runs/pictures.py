"""Pictures of a run in the leaderboard: its stored map, and its kNN accuracy with its interval on a fixed axis."""

import base64
import io
from pathlib import Path

import numpy as np
import streamlit as st

from contrastive_core.base.json_files import read_npz
from contrastive_core.base.score import Score
from contrastive_core.runs.run import Run
from contrastive_core.spaces import results
from contrastive_core.spaces.space import Space
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.guard import DAMAGE

WIDTH, HEIGHT, EDGE, DOT = 192, 104, 5, 2  # pixels of a thumbnail, drawn at half its size
AXIS, MIDDLE = 290, 24  # pixels from 0 to 100 %, and around the line


def map_of(run: Run, scale: int = 1) -> str | None:
    """Return a picture of a stored map of the run's test images, enlarged by `scale`; None without one."""
    for layer in ("h", "z"):
        try:
            space = Space.of_run(run, "test", layer)
            kept = results.path("map", {"space": space.values, "kind": "umap", **results.MAP_DEFAULTS})
            if kept.exists():
                return _map(kept, kept.stat().st_mtime_ns, space, scale)
        except DAMAGE:
            continue
    return None


@st.cache_data(max_entries=2000, show_spinner=False)
def _map(kept: Path, changed: int, space: Space, scale: int) -> str | None:
    from PIL import Image

    rows, xy = space.rows(), read_npz(kept)["xy"]
    if rows is None or len(rows) != len(xy):
        return None
    low, high = xy.min(0), xy.max(0)
    room = np.array([WIDTH * scale, HEIGHT * scale]) - 2 * EDGE * scale
    at = (EDGE * scale + (xy - low) / np.maximum(high - low, 1e-9) * room).round().astype(int)
    colors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in PALETTE], np.uint8)
    color = colors[(np.zeros(len(xy), int) if rows.labels is None else rows.labels) % len(colors)]
    pixels = np.zeros((HEIGHT * scale, WIDTH * scale, 4), np.uint8)
    for dx in range(-DOT, DOT):
        for dy in range(-DOT, DOT):
            pixels[at[:, 1] + dy, at[:, 0] + dx] = np.column_stack([color, np.full(len(color), 255)])
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return _address("image/png", buffer.getvalue())


def axis_of(score: Score | None, raw: float | None, is_dark: bool) -> str | None:
    """Return a picture of a share as a dot with its interval, from 0 to 100 %, with a tick for raw pixels."""
    if score is None or score.value is None:
        return None
    ink, grid, grey = ("#E3E8ED", "#2B343E", "#8D99A6") if is_dark else ("#18222D", "#E3E7EA", "#7A8794")
    x = AXIS * score.value + MIDDLE
    marks = f'<path d="M{MIDDLE},{MIDDLE}h{AXIS}" stroke="{grid}" stroke-width="2"/>'
    if raw is not None:
        left = AXIS * raw + MIDDLE
        marks += f'<path d="M{left:.1f},10v28" stroke="{grey}" stroke-width="1.5"/>'
    if score.interval:
        left, right = (AXIS * end + MIDDLE for end in score.interval)
        marks += f'<path d="M{left:.1f},{MIDDLE}H{right:.1f}" stroke="{grey}" stroke-width="7" stroke-linecap="round"/>'
    marks += f'<circle cx="{x:.1f}" cy="{MIDDLE}" r="6" fill="{ink}"/>'
    size = f'width="{AXIS + 2 * MIDDLE}" height="{2 * MIDDLE}"'
    return _address("image/svg+xml", f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{marks}</svg>'.encode())


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
