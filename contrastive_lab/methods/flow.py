"""A method's data flow as HTML with images of a real batch: two views of one image, and its negatives."""

import base64
import html
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.base.cards import USES
from contrastive_core.lab import lab_view
from contrastive_lab import cache, guard, locale, state
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.locale import _

VIEWS, OF_CLASS, OTHERS = (54, 55), (56, 57), (2, 8, 18, 26, 34, 40, 50, 62)  # rows of the example's batch
IMAGE, SIBLING = -1, -2  # of the views, and another of its class
PICTURED = {"image": [IMAGE], "image, label": [IMAGE], "balanced batch": [IMAGE, SIBLING]}  # boxes, besides the views


def drawing(name: str) -> None:
    """Draw the data flow of a method below its name."""
    method = cache.catalog()["methods"][name]
    title, subtitle = html.escape(locale.text(method["title"])), html.escape(_("How a batch flows through the method."))
    drawn = flow(method, cache.loss_title(method["default_loss"]), tiles())
    st.html(f'<div class="method"><h2>{title} <small>{subtitle}</small></h2>{drawn}</div>')


@st.cache_data(show_spinner=False)
def tiles() -> dict[int, str]:
    """Return images of the example's batch as data URLs by row, including those of its views; {} without the
    example."""
    found: dict[int, str] = {}
    with guard.errors_shown():
        run = runs.load(state.DEFAULT_RUN)
        if (opened := lab_view.opening_view(run, "nt_xent")) is None:
            return found
        batch, images = opened
        found = {row: _address(images[batch.row_thumbs[row]]) for row in (*VIEWS, *OF_CLASS, *OTHERS)}
        data, rng = cache.dataset_of(run, "test"), np.random.default_rng(0)
        chosen, _others = lab_view.images_of_batch(data.labels, len(batch.names) // 2, rng)
        for key, views in ((IMAGE, VIEWS), (SIBLING, OF_CLASS)):
            found[key] = _address(np.asarray(data.images[chosen[views[0] // 2]]))
    return found


def _address(image: np.ndarray) -> str:
    return f"data:image/png;base64,{base64.b64encode(thumbnail_sheet(image[None]).picture).decode()}"


def flow(method: Mapping[str, Any], loss: str, images: Mapping[int, str] | None = None) -> str:
    """Return the data flow as HTML: a lane of boxes for each view, then the comparison, and the loss.

    A `*` after a name means that the arrow leaving the box carries gradient back. Boxes with the same name above each
    other are one box: the same weights, or the same memory. `updates` lists what changes after a step: (from, to, how).
    methods.css places the cells by lane and step, from left to right, or downwards on a narrow page."""
    lanes, updates = method.get("flow", ()), method.get("updates", ())
    moved, last = {to for _from, to, how in updates if how}, 1 + max(map(len, lanes))
    places: dict[tuple[str, int], list[int]] = {}  # lanes of a box, by its name and step
    cells = []

    def cell(kind: str, words: str, step: int, rows: Iterable[int], more: str = "") -> None:
        first, *others = rows
        place = f"--step:{step};--lane:{first};--span:{1 + len(others)}"
        cells.append(f'<span class="{kind}" style="{place}">{more}{html.escape(locale.text(words))}</span>')

    for row, lane in enumerate(lanes, 1):
        starts_alike = lane[0].rstrip("*") == lanes[0][0].rstrip("*")
        first = 1 if starts_alike else max(1, last - len(lane))  # else the lanes end together
        for step, box in enumerate(lane, first):
            places.setdefault((box.rstrip("*"), step), []).append(row)
            ahead = step if step - first < len(lane) - 1 else last - 1  # the last arrow stands before what is compared
            cell("gradient" if box.endswith("*") else "arrow", "→", 2 * ahead, [row])
    for (box, step), rows in places.items():
        shown = VIEWS[rows[0] - 1 : rows[0]] if box.startswith("view") else PICTURED.get(box, ())
        image = _tiles("view", shown, images)
        cell("box memory" if box in moved else "box", box, 2 * step - 1, rows, image)
    every = range(1, len(lanes) + 1)
    cell("box chosen", method["compared"], 2 * last - 1, every, _compared(method, images))
    cell("gradient", "→", 2 * last, every)
    cell("box", loss, 2 * last + 1, every)
    moves = _(" After each step, {first} updates {second} ({how}).")
    words = [moves.format(first=locale.text(a), second=locale.text(b), how=locale.text(how)) for a, b, how in updates]
    words.insert(0, _("Bold arrows carry gradient."))
    name = html.escape(_("Data flow of {title}").format(title=locale.text(method["title"])), quote=True)
    return (
        f'<div class="flow" role="group" aria-label="{name}">{"".join(cells)}</div>'
        f"<small>{html.escape(''.join(words))}</small>"
    )


def _compared(method: Mapping[str, Any], images: Mapping[int, str] | None) -> str:
    """Draw the images that attract each other, and those that are pushed apart if the method has negatives."""
    pulled = (*VIEWS, *(OF_CLASS if method.get("needs_labels") else ()))
    drawn = _tiles("pull", pulled, images, _("pull"))
    return drawn + (_tiles("push", OTHERS, images, _("push")) if USES[0] in method.get("uses", ()) else "")


def _tiles(kind: str, rows: Iterable[int], images: Mapping[int, str] | None, words: str = "") -> str:
    drawn = "".join(f'<img src="{images[row]}" alt="">' for row in rows if images and row in images)
    return f'<span class="tiles {kind}">{drawn}<em>{html.escape(words)}</em></span>' if drawn else ""
