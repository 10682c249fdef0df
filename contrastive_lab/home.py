"""The front page: the star, four entry points with small pictures drawn from the shipped runs, and a link to the newest
run."""

import base64
import contextlib
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial
from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import Message
from contrastive_core.engine import training
from contrastive_core.lab import lab_view
from contrastive_core.lab.lab_view import NEGATIVE, POSITIVE
from contrastive_core.runs.run import Run
from contrastive_core.spaces import results
from contrastive_core.spaces.space import Space
from contrastive_lab import format, load_vectors, locale, state
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.components.shared.transport import TILE, thumbnail_sheet
from contrastive_lab.components.star import StarView, draw_star, pressed_button
from contrastive_lab.locale import N_, _, message
from contrastive_lab.loss_lab import lesson_panel
from contrastive_lab.loss_lab.lessons import LESSONS, RUN
from contrastive_lab.samples.example import NAME as EXAMPLE
from contrastive_lab.samples.example import OFFERED, QUESTIONS

ANCHORS = (36, 1, 39, 31)  # of the star, one after the other: a cross with a false negative, a disc with a hard one, …
STAR = "home-star"
PRESSED = "home-star-pressed"  # of the session: the button of the star that was pressed
DROPPED = "home-dropped"  # the field for files that covers the page while one is dragged over it


@dataclass(frozen=True)
class Door:
    """An entry point: a card whose title links to a page."""

    title: str
    text: str
    page: str
    address: dict[str, str]


LEARN = Door(N_("Learn how losses work"), N_("Lessons of two minutes: {done} of {total} done."), "loss_lab", {})
LABELS = Door(
    title=N_("Find wrong labels"),
    text=N_("Review suspects with one key press each. Try it on digits."),
    page="samples",
    address={"example": "wrong-labels"},
)
VECTORS = Door(
    title=N_("Open my embeddings"), text=N_("See their map and scores. Drop a file here."), page="explore", address={}
)
TRAIN = Door(
    title=N_("Train on my images"),
    text=N_("Choose a folder. The app suggests τ, and a map forms live."),
    page="train",
    address={"data": "folder"},
)
DOORS = (LEARN, VECTORS, LABELS, TRAIN)


def star() -> None:
    """Draw the star; its buttons open the first unfinished lesson and the newest run."""
    st.title("Contrastive Lab")
    if (view := _star_view()) is None:
        return
    lesson, mine = lesson_panel.next_step(), _own_runs()
    buttons = [lesson["text"], *(_("Continue: {name} →").format(name=run.name) for run in mine[:1])]
    draw_star(replace(view, buttons=buttons), STAR, lambda: st.session_state.update({PRESSED: pressed_button(STAR)}))
    match st.session_state.pop(PRESSED, None):
        case 0:
            st.switch_page("pages/loss_lab.py", query_params={"lesson": str(lesson["number"])})
        case 1 if mine:
            is_at_work = training.status_of(mine[0])["status"] in ("running", "starting", "queued")
            page, name = ("train", "watch") if is_at_work else ("explore", "run")
            st.switch_page(f"pages/{page}.py", query_params={name: mine[0].name})


@st.cache_resource(show_spinner=False)
def _star_view() -> StarView | None:
    """Return the initial batch of the Loss Lab; None without the shipped run."""
    run = next((run for run in runs.list_runs() if run.name == RUN), None)
    view = None if run is None else lab_view.opening_view(run, "nt_xent")
    if view is None:
        return None
    batch, thumbs = view
    return StarView(
        scores=batch.scores,
        mask=batch.mask,
        classes=[str(one.values["label"]) for one in batch.names if isinstance(one, Message)],
        thumbnails=thumbnail_sheet(thumbs[batch.row_thumbs], tile=TILE),
        places=_places(len(batch.names) // 2),
        anchors=ANCHORS,
        buttons=(),
        source=RUN,
    )


def _places(images: int) -> np.ndarray:
    """Return the positions of both views of the batch's images on the run's map."""
    places, labels = map_of_run()
    chosen, _others = lab_view.images_of_batch(labels, images, np.random.default_rng(0))
    return np.repeat(2 * places[chosen] - 1, 2, 0)


def doors() -> None:
    """Draw the entry points side by side: to the first unfinished lesson, to a file, to the wrong labels of the newest
    own run with labels or of the example, and to a training."""
    st.session_state[OFFERED] = True
    text = message(LEARN.text, done=lesson_panel.number_done(), total=len(LESSONS))
    learn = replace(LEARN, text=text, address={"lesson": str(lesson_panel.next_step()["number"])})
    mine, labels = [run for run in _own_runs() if run.weights.exists() and run.manifest.get("classes")], LABELS
    if mine:
        text = message("Opens your run {name}.", name=mine[0].name)
        labels = replace(LABELS, text=text, address={"run": mine[0].name})
    with st.container(key="doors", horizontal=True, gap="small"):
        for door, picture in zip((learn, VECTORS, labels, TRAIN), all_pictures(), strict=True):
            with st.container(border=True, key=f"door-{door.page}"):
                st.html(picture)
                if door is VECTORS:
                    load_vectors.opener(_look_at)
                else:
                    title = f"**{locale.text(door.title)}**"
                    st.page_link(f"pages/{door.page}.py", label=title, query_params=door.address)
                st.caption(format.plain(locale.text(door.text)))
                if door is VECTORS:
                    label, on = _("Example: questions and answers"), {"example": QUESTIONS}
                    st.page_link("pages/compare.py", label=label, query_params=on)
                elif door is learn:
                    st.page_link("pages/loss_lab.py", label=_("Watch it learn"), query_params={"on": "playground"})
                elif door is labels and mine:  # the card itself opens a run
                    st.page_link("pages/samples.py", label=_("Example: digits"), query_params=LABELS.address)


def drop_target() -> None:
    """Draw a field that opens a file of vectors dropped anywhere on the page."""
    with st.container(key="drop-target"):
        load_vectors.open_dropped(DROPPED, _look_at)


def _look_at(key: str) -> None:
    """Open the map of the vectors that were loaded here."""
    load_vectors.look_at(key)
    st.switch_page("pages/explore.py", query_params={"vectors": key})


def _own_runs() -> list[Run]:
    """Return the user's runs, newest first, without an adviser's trials and the example."""
    return [run for run in runs.list_runs() if not run.shipped and not is_trial(run.name) and run.name != EXAMPLE]


def examples() -> None:
    """Draw links to trained examples until the user has a run."""
    if _own_runs():
        return
    with st.container(key="examples", horizontal=True, vertical_alignment="center"):
        st.caption(_("No runs yet. The app includes trained examples:"), width="content")
        for name in (state.DEFAULT_RUN, "sup_con-digits", "moco_v2-shapes"):
            st.page_link("pages/explore.py", label=name, icon=":material/scatter_plot:", query_params={"run": name})


# --- pictures of the entry points ------------------------------------------------------------------


WIDTH, HEIGHT, EDGE = 104, 80, 6
ANCHOR, AROUND = 36, 6  # of the star: an image of the batch, and how many negatives
MOST_POINTS = 400
DIGITS, DIGIT, WRONG_AND_RIGHT = (
    "simclr-digits",
    41,
    ("9", "4"),
)  # an image of that run's batch; a wrong and its right label
ORANGE, GREEN, BLUE, GRAY = "#E07A2F", "#1A8A63", "#2F6FD0", "#7A8590"


@st.cache_resource(show_spinner=False)
def all_pictures() -> tuple[str, ...]:
    """Return an HTML element for each of DOORS; empty if a run is missing."""
    elements = []
    box = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    for draw in (_star_picture, _map_picture, _label_picture, _curve_picture):
        inside = ""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # without the shipped runs
            inside = draw()
        picture = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{inside}</svg>'.encode()
        elements.append(f'<img alt="" src="data:image/svg+xml;base64,{base64.b64encode(picture).decode()}">')
    return tuple(elements)


def _star_picture() -> str:
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
        stroke = f'stroke="{BLUE if k == 0 else ORANGE}" stroke-width="{4 if k < 2 else 1}"'
        lines.append(f'<path d="M{x} {y}L{at[0]:.1f} {at[1]:.1f}" {stroke}/>')
        tiles.append(_image(thumbs[view.row_thumbs[row]], *at, 16))
    return "".join([*lines, *tiles, _image(thumbs[view.row_thumbs[ANCHOR]], x, y, 28)])


@st.cache_resource(show_spinner=False)
def map_of_run() -> tuple[np.ndarray, np.ndarray]:
    """Return the positions (n, 2) of a run's images on its map, from 0 to 1, and labels (n). Raises OSError without the
    run."""
    places = read_npz(results.shipped_path("map", RUN, "test", "h", "umap"))["xy"]
    rows = Space.of_run(runs.load(RUN)).rows()
    assert rows is not None  # they are shipped with the map
    low, high = places.min(0), places.max(0)
    return (places - low) / (high - low), np.asarray(rows.labels)


def _map_picture() -> str:
    """Return the picture of a map's points by class."""
    places, labels = (values[:MOST_POINTS] for values in map_of_run())
    x, y = (EDGE + places * (np.array([WIDTH, HEIGHT]) - 2 * EDGE)).T
    paths = []
    for label in np.unique(labels):
        points = "".join(f"M{x[i]:.0f} {y[i]:.0f}h0" for i in np.flatnonzero(labels == label))
        color = PALETTE[label % len(PALETTE)]
        paths.append(f'<path d="{points}" stroke="{color}" stroke-width="3" stroke-linecap="round"/>')
    return "".join(paths)


def _label_picture() -> str:
    """Return the picture of an image with a wrong label."""
    found = lab_view.opening_view(runs.load(DIGITS), "nt_xent")
    if found is None:
        return ""
    wrong, right = WRONG_AND_RIGHT
    frame = f'<rect x="4" y="10" width="60" height="60" fill="none" stroke="{ORANGE}" stroke-width="3"/>'
    font = 'x="86" text-anchor="middle" font-family="sans-serif" font-size="24" font-weight="600"'
    words = (
        f'<text {font} y="36" fill="{ORANGE}" text-decoration="line-through">{wrong}</text>'
        f'<text {font} y="66" fill="{GREEN}">{right}</text>'
    )
    return _image(found[1][DIGIT], 34, 40, 60) + frame + words


def _curve_picture() -> str:
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


def _image(pixels: np.ndarray, x: float, y: float, side: float) -> str:
    """Return an image (c, h, w) centered at a position."""
    data = base64.b64encode(thumbnail_sheet(pixels[None]).picture).decode()
    return (
        f'<image href="data:image/png;base64,{data}" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" '
        f'width="{side}" height="{side}"/>'
    )
