"""The session: the chosen run, the selected rows, and their representation in the URL."""

import runpy
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np
import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial
from contrastive_core.base.storage import BUNDLE
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.recorded_rows import PROBE
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_lab import format, locale, query_params, stage
from contrastive_lab.locale import N_, _

DEFAULT_RUN = "simclr-shapes"
RUN = "run-picker"
PICKER_WIDTH = 240  # pixels
APP = BUNDLE / "app.py"
SEEN_LANG = "language in the address"
LANGUAGE_SWITCH = "language-switch"  # the key of its widget
NO_RUN = N_("There is no run {name}.")


def run(page: Callable[[], None]) -> None:
    """Draw a page. Until `st.navigation` has run (in AppTest: at every run), Streamlit treats the folder `pages` as its
    older kind of app and runs only a page's file. In that case app.py is run, which draws the page with navigation
    around it."""
    if PagesManager.uses_pages_directory:
        runpy.run_path(str(APP), run_name="__main__")
    else:
        page()


def all_runs() -> list[Run]:
    """Return runs with a readable manifest, newest first, then the shipped ones."""
    return runs.list_runs()


def chosen_run() -> Run | None:
    """Return the chosen run; None without one."""
    return next((run for run in all_runs() if run.name == st.session_state.get("run")), None)


def say_missing(lessons: int) -> None:
    """Say which runs, vectors, lesson (of so many) or loss of the URL do not exist; the page shows its default
    instead."""
    from contrastive_lab import cache  # see app.py

    no_vectors = N_("The vectors in this link are no longer stored here. Open their file again.")
    known: dict[str, tuple[str, Callable[[], Container[str]]]] = {
        **dict.fromkeys(("run", "watch"), (NO_RUN, lambda: [run.name for run in all_runs()])),
        "vectors": (no_vectors, loaded_vectors.loaded),
        "lesson": (N_("There is no lesson {name}."), lambda: [str(n) for n in range(lessons + 1)]),
        "loss": (N_("There is no loss {name}."), lambda: cache.catalog()["losses"]),
    }
    for parameter, (text, names) in known.items():
        if (name := query_params.requested(parameter)) and name not in names():
            said = locale.text(text).format(name=format.plain(name[:80]))
            st.toast(said, icon=":material/warning:", duration="infinite")


def settle_run() -> None:
    """Choose the run of the URL, else keep the session's, else take the default."""
    names = list(_runs_to_choose())
    if (name := query_params.requested("run")) in names:
        st.session_state["run"] = name
        if not query_params.requested("vectors"):
            st.session_state["vectors"] = ""  # the link shows a run
    elif names and st.session_state.get("run") not in names:
        st.session_state["run"] = DEFAULT_RUN if DEFAULT_RUN in names else names[0]


def _runs_to_choose() -> dict[str, Run]:
    """Return the runs that can be chosen, by name; an adviser's trial only if it is named."""
    named = (query_params.requested("run"), st.session_state.get("run"))
    able = [run for run in all_runs() if run.weights.exists() or not run.shipped]
    return {run.name: run for run in able if run.name in named or not is_trial(run.name)}


def new_subject() -> str | None:
    """Return the key of the vectors that the URL names or another page has begun to show, "" for a run; None if this
    page shows them already."""
    now = query_params.take("vectors") or st.session_state.get("vectors") or ""
    return None if now == st.session_state.get(query_params.key_of("subject"), "") else str(now)


def set_subject(vectors: str | None) -> None:
    """Set the vectors shown on all pages; None for a run."""
    st.session_state["vectors"] = st.session_state[query_params.key_of("subject")] = vectors or ""


def pick_run(vectors: str | None = None) -> None:
    """Draw the run picker of a toolbar, kept in the URL; pages choose by `session_state["run"]`. vectors: the key of
    the file that is shown instead of a run."""
    labels = {name: _label(run) for name, run in _runs_to_choose().items()}
    if not labels:
        st.caption(_("No runs yet. Start one on the Train page."))
        return
    query_params.choose(RUN, st.session_state["run"])
    look: dict[str, Any] = {"label_visibility": "collapsed", "width": PICKER_WIDTH}
    if (about := loaded_vectors.loaded().get(str(vectors))) is None:
        look["on_change"] = lambda: choose_run(query_params.chosen(RUN))
        query_params.one_of(st.selectbox, _("Run"), labels, name="run", key=RUN, **look)
        return
    key = "run-instead-of-vectors"  # no run is chosen: a choice leaves the vectors
    query_params.take("run")

    def leave() -> None:
        query_params.choose(RUN, st.session_state[key])
        choose_run(st.session_state[key])

    shown = _("{vectors}, no run").format(vectors=about["name"])
    st.selectbox(
        _("Run"),
        list(labels),
        index=None,
        key=key,
        placeholder=shown,
        on_change=leave,
        format_func=labels.__getitem__,
        **look,
    )


def choose_run(name: str) -> None:
    """Choose the run for all pages, from the next drawing."""
    st.session_state["run"] = name
    st.session_state["vectors"] = ""  # a run is looked at, no longer loaded vectors


def _label(run: Run) -> str:
    """Return a run's title, with a note if it was not trained here."""
    try:
        title = str(run.meta().get("title") or run.name)
    except stage.DAMAGE:
        return _("{name} · damaged").format(name=run.name)
    if run.shipped:
        return title + _(" · example")
    if run.is_recording:
        return title + _(" · recording")
    if imported := run.manifest.get("imported"):
        return title + (_(" · random weights") if imported.get("random") else _(" · not trained here"))
    return title


def take_language() -> None:
    """Set the session's language from a new one in the URL, before anything is drawn."""
    asked = st.query_params.get("lang")
    if asked != st.session_state.get(SEEN_LANG) and asked in locale.LANGUAGES:
        st.session_state[locale.SESSION] = asked
    st.session_state[SEEN_LANG] = asked


def pick_language() -> None:
    """Draw the language switch in the top bar, kept in the URL (`lang=zh`). Each language has its own name."""
    chosen = locale.language()
    query_params.keep(lang=chosen if chosen != "en" or locale.browser_language() != "en" else None)
    if st.session_state.get(LANGUAGE_SWITCH) != chosen:
        st.session_state[LANGUAGE_SWITCH] = chosen

    def take() -> None:
        st.session_state[locale.SESSION] = st.session_state[LANGUAGE_SWITCH]
        st.session_state[SEEN_LANG] = st.query_params.get("lang")

    look: dict[str, Any] = {"label_visibility": "collapsed", "format_func": locale.LANGUAGES.__getitem__}
    options = list(locale.LANGUAGES)
    st.segmented_control("Language", options, key=LANGUAGE_SWITCH, required=True, on_change=take, **look)


def selection(place: str) -> list[int]:
    """Return the rows selected on all pages. place: as from `place_of`."""
    return list(st.session_state.get("selection", {}).get(place, []))


def select(rows: Sequence[int] | np.ndarray, place: str, by: str = "") -> None:
    """Select rows on all pages. `by` is the key of the map on which they were chosen, if any."""
    st.session_state.setdefault("selection", {})[place] = np.asarray(rows, np.int64).tolist()
    st.session_state["selected"] = (st.session_state.get("selected", (0, ""))[0] + 1, by)


def stamp(key: str) -> str:
    """Return a value that changes when a selection is made anywhere but on the map `key`."""
    count, by = st.session_state.get("selected", (0, ""))
    if by != key:
        st.session_state[f"{key}:stamp"] = count
    return str(st.session_state.get(f"{key}:stamp", 0))


def data_of(space: Space) -> str:
    """Return the key shared by embeddings of the same samples; loaded vectors have their own."""
    run = space.run
    if place := space.recorded:  # the probe set has the same rows at all steps
        return _("recording {name}").format(name=place.content.rpartition("-")[0] if place.kind == PROBE else place.key)
    return run.data_key if run else _("vectors {key}").format(key=space.key)


def place_of(space: Space) -> str:
    """Return the name under which a selection of these rows is stored."""
    parts = [data_of(space), *([] if space.split in ("test", "") else [space.split])]
    return " ".join([*parts, *([space.layer] if space.layer == TOWERS else [])])  # whose rows are others
