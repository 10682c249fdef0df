"""The examples of the front page: digits with some labels changed on purpose, and questions and answers by two models,
with relevance judgments."""

import os
import shutil

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.errors import NoSuchRun
from contrastive_core.base.storage import data_home, runs_home
from contrastive_core.runs.run import Run
from contrastive_core.spaces import example_questions, loaded_vectors
from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_lab import guard, path_input, query_params, state
from contrastive_lab.locale import _

QUESTIONS = "questions"
NAME, SOURCE, DATA = "wrong-labels-example", "simclr-digits", "digits_mislabeled"
TABLES = "wrong_labels"  # folder of the source: the table of the training images (benchmarks/ship.py)
ASKED = "example"  # in the address of the front page's door
OFFERED = "the front page was shown"  # in this session: a link from elsewhere begins a new one


def say() -> None:
    """Explain the example with wrong labels on its page. Create it if the URL asks for it and the front page led there.
    For links from elsewhere, which anyone may have written, ask first."""
    asked = query_params.take(ASKED)
    query_params.keep(**{ASKED: None})  # the address is that of any run from now on
    if asked and (OFFERED in st.session_state or os.path.lexists(runs_home() / NAME)):
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
    st.session_state["run"] = NAME
    query_params.choose(state.RUN, NAME)


def make() -> Run:
    """Create the example's run from a shipped encoder trained without labels; training it would give the same
    weights."""
    try:
        return runs.load(NAME)
    except NoSuchRun:
        source = runs.load(SOURCE)
    try:
        run = runs.create(NAME, {**source.config, "dataset": DATA})
    except FileExistsError:  # another window was faster
        return runs.load(NAME)
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
        with guard.errors_shown():
            with st.spinner(_("Encoding 1,920 sentences with two small models…")):
                address = make_questions()
            query_params.begin(address)
            st.rerun()


def make_questions() -> dict[str, str]:
    """Write the example, open its vectors, and return the address of their comparison. Raises: ValueError; OSError."""
    folder = data_home() / "examples" / QUESTIONS
    names = [loaded_vectors.PREFIX + open_vectors(file, file.name) for file in example_questions.write(folder)]
    return {"runs": ",".join(names), "qrels": path_input.remember(folder / example_questions.JUDGMENTS)}
