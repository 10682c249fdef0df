"""The front page: the star, four entry points, a link to the newest run, and the examples that it offers: digits with
some labels changed on purpose, and questions and answers by two models, with relevance judgments."""

import base64
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial
from contrastive_core.base.errors import NoSuchRun
from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import Message
from contrastive_core.base.storage import data_home, runs_home
from contrastive_core.engine import training
from contrastive_core.lab import lab_view
from contrastive_core.runs.run import Run
from contrastive_core.spaces import example_questions, loaded_vectors, results
from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_core.spaces.space import Space
from contrastive_lab import format, load_vectors, locale, path_input, query_params, stage, state
from contrastive_lab.components.shared.mount import TILE, mount, pack, reported_state, thumbnail_sheet
from contrastive_lab.locale import N_, _, message
from contrastive_lab.loss_lab import lesson_panel
from contrastive_lab.loss_lab.lessons import LESSONS, RUN

ANCHORS = (36, 1, 39, 31)  # of the star, one after the other: a cross with a false negative, a disc with a hard one, …
STAR = "home-star"
PRESSED = "home-star-pressed"  # of the session: the report of the button of the star that was pressed
DROPPED = "home-dropped"  # the field for files that covers the page while one is dragged over it


@dataclass(frozen=True)
class Door:
    """An entry point: a card whose title links to a page, with the picture doors/PAGE.svg."""

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


def star() -> None:
    """Draw the star; its buttons open the first unfinished lesson and the newest run."""
    st.title("Contrastive Lab")
    if (batch := _star_batch()) is None:
        return
    lesson, mine = lesson_panel.next_step(), own_runs()
    buttons = [lesson["text"], *(_("Continue: {name} →").format(name=run.name) for run in mine[:1])]

    def press() -> None:
        st.session_state[PRESSED] = (reported_state(STAR, "chosen") or {}).get("button")

    mount("star", pack(**batch, buttons=buttons), "chosen", STAR, first={}, on_change=press)
    match st.session_state.pop(PRESSED, None):
        case 0:
            st.switch_page("pages/loss_lab.py", query_params={"lesson": str(lesson["number"])})
        case 1 if mine:
            is_at_work = training.status_of(mine[0])["status"] in ("running", "starting", "queued")
            page, name = ("train", "watch") if is_at_work else ("explore", "run")
            st.switch_page(f"pages/{page}.py", query_params={name: mine[0].name})


@st.cache_resource(show_spinner=False)
def _star_batch() -> dict[str, Any] | None:
    """Return the initial batch of the Loss Lab for the star; None without the shipped run."""
    run = next((run for run in runs.list_runs() if run.name == RUN), None)
    found = None if run is None else lab_view.opening_view(run)
    rows = None if run is None else Space.of_run(run).rows()
    if found is None or rows is None:
        return None
    view, thumbs = found
    places = read_npz(results.shipped_path("map", RUN, "test", "h", "umap"))["xy"]  # (n, 2)
    low, high = places.min(0), places.max(0)
    chosen, _others = lab_view.images_of_batch(np.asarray(rows.labels), len(view.names) // 2, np.random.default_rng(0))
    return {
        "scores": view.scores,  # (n, n) similarities
        "mask": view.mask,  # (n, n): 1 positive, 2 negative
        "classes": [str(name.values["label"]) for name in view.names if isinstance(name, Message)],
        "thumbnails": thumbnail_sheet(thumbs[view.row_thumbs], tile=TILE),
        "places": np.repeat(2 * ((places - low) / (high - low))[chosen] - 1, 2, 0),  # both views on the map, −1 to 1
        "anchors": ANCHORS,
        "source": RUN,
    }


def doors() -> None:
    """Draw the entry points side by side: to the first unfinished lesson, to a file, to the wrong labels of the newest
    own run with labels or of the example, and to a training."""
    st.session_state[OFFERED] = True
    text = message(LEARN.text, done=lesson_panel.number_done(), total=len(LESSONS))
    learn = replace(LEARN, text=text, address={"lesson": str(lesson_panel.next_step()["number"])})
    mine, labels = [run for run in own_runs() if run.weights.exists() and run.manifest.get("classes")], LABELS
    if mine:
        text = message("Opens your run {name}.", name=mine[0].name)
        labels = replace(LABELS, text=text, address={"run": mine[0].name})
    with st.container(key="doors", horizontal=True, gap="small"):
        for door in (learn, VECTORS, labels, TRAIN):
            with st.container(border=True, key=f"door-{door.page}"):
                st.html(f'<img alt="" src="data:image/svg+xml;base64,{_picture_of(door.page)}">')
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


@cache
def _picture_of(page: str) -> str:
    """Return the picture of an entry point, drawn from the shipped runs, as Base64."""
    return base64.b64encode(Path(__file__).with_name("doors").joinpath(f"{page}.svg").read_bytes()).decode()


def drop_target() -> None:
    """Draw a field that opens a file of vectors dropped anywhere on the page."""
    with st.container(key="drop-target"):
        load_vectors.open_dropped(DROPPED, _look_at)


def _look_at(key: str) -> None:
    """Open the map of the vectors that were loaded here."""
    load_vectors.look_at(key)
    st.switch_page("pages/explore.py", query_params={"vectors": key})


def own_runs(every: Iterable[Run] | None = None) -> list[Run]:
    """Return the user's runs among `every` (None: all), newest first, without an adviser's trials and the example."""
    listed = runs.list_runs() if every is None else every
    return [run for run in listed if not run.shipped and not is_trial(run.name) and run.name != EXAMPLE]


def examples() -> None:
    """Draw links to trained examples until the user has a run."""
    if own_runs():
        return
    with st.container(key="examples", horizontal=True, vertical_alignment="center"):
        st.caption(_("No runs yet. The app includes trained examples:"), width="content")
        for name in (state.DEFAULT_RUN, "sup_con-digits", "moco_v2-shapes"):
            st.page_link("pages/explore.py", label=name, icon=":material/scatter_plot:", query_params={"run": name})


# --- examples ---------------------------------------------------------------------------------------

QUESTIONS = "questions"
EXAMPLE, SOURCE, DATA = "wrong-labels-example", "simclr-digits", "digits_mislabeled"
TABLES = "wrong_labels"  # folder of the source: the table of the training images (benchmarks/ship.py)
ASKED = "example"  # in the address of the front page's door
OFFERED = "the front page was shown"  # in this session: a link from elsewhere begins a new one


def say() -> None:
    """Explain the example with wrong labels on its page. Create it if the URL asks for it and the front page led there.
    For links from elsewhere, which anyone may have written, ask first."""
    asked = query_params.take(ASKED)
    query_params.keep(**{ASKED: None})  # the address is that of any run from now on
    if asked and (OFFERED in st.session_state or os.path.lexists(runs_home() / EXAMPLE)):
        _open()
        st.rerun()
    if asked:
        st.button(_("Make the example with wrong labels"), icon=":material/image_search:", on_click=_open)
    run = state.chosen_run()
    if run is not None and run.config.get("dataset") == DATA:
        text = _(
            "**An example: ten labels of these training images were changed on purpose**, and three of "
            "the test images. Can you find them?"
        )
        st.markdown(text)


def _open() -> None:
    make()
    st.session_state["run"] = EXAMPLE
    query_params.choose(state.RUN, EXAMPLE)


def make() -> Run:
    """Create the example's run from a shipped encoder trained without labels; training it would give the same
    weights."""
    try:
        return runs.load(EXAMPLE)
    except NoSuchRun:
        source = runs.load(SOURCE)
    try:
        run = runs.create(EXAMPLE, {**source.config, "dataset": DATA})
    except FileExistsError:  # another window was faster
        return runs.load(EXAMPLE)
    shutil.copy(source.path / "metrics.jsonl", run.path)
    if (tables := source.path / TABLES).exists():
        shutil.copytree(tables, run.path / "embeddings")
    run.write("weights.safetensors", source.weights.read_bytes())
    text = _("The encoder of simclr-digits, which saw no labels, on digits with some labels changed on purpose.")
    run.set_meta(title=_("Example: digits with wrong labels"), note=text)
    run.set_status("done", epoch=source.config["epochs"], epochs=source.config["epochs"])
    return run


def show_questions() -> None:
    """Open the example if the URL asks for it and the front page led there. For links from elsewhere, ask first."""
    asked = query_params.take(ASKED) == QUESTIONS or query_params.kept_value(ASKED) == QUESTIONS
    if asked and OFFERED not in st.session_state:
        query_params.keep(**{ASKED: QUESTIONS})
        asked = st.button(_("Make the example with questions and answers"), icon=":material/forum:")
    if asked:
        query_params.keep(**{ASKED: None})
        with stage.errors_shown():
            with st.spinner(_("Encoding 1,920 sentences with two small models…")):
                address = make_questions()
            query_params.begin(address)
            st.rerun()


def make_questions() -> dict[str, str]:
    """Write the example, open its vectors, and return the address of their comparison. Raises: ValueError; OSError."""
    folder = data_home() / "examples" / QUESTIONS
    names = [loaded_vectors.PREFIX + open_vectors(file, file.name) for file in example_questions.write(folder)]
    return {"runs": ",".join(names), "qrels": path_input.remember(folder / example_questions.JUDGMENTS)}
