"""The session: which run is chosen, which rows are selected, and what the address says of it."""

import ctypes
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from contrastive_core.records import BUNDLE, loaded_vectors, runs
from contrastive_core.records.advice import is_trial
from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef
from contrastive_core.records.recorded_rows import PROBE
from contrastive_core.records.run import Run
from contrastive_lab import guard, locale, query_params
from contrastive_lab.locale import _

DEFAULT_RUN = "simclr-shapes"
RUN = "run-picker"
APP = BUNDLE / "app.py"
SEEN_LANG = "language in the address"
LANGUAGE_SWITCH = "language-switch"  # the key of its widget


def run(page: Callable[[], None]) -> None:
    """Draw a page. Until `st.navigation` has run (in AppTest: at every run), Streamlit takes the
    folder `pages` for its older kind of app and runs a page's file alone: then app.py is run, which
    brings it back with navigation around it."""
    if PagesManager.uses_pages_directory:
        runpy.run_path(str(APP), run_name="__main__")
    else:
        page()


def give_back() -> None:
    """Return memory to the system that glibc would keep after drawing: a fifth (benchmarks/start.py)."""
    if trim := getattr(ctypes.CDLL(None) if sys.platform == "linux" else None, "malloc_trim", None):
        trim(0)


def all_runs() -> list[Run]:
    """Runs with a readable manifest, newest first, then the shipped."""
    return runs.list_runs()


def chosen_run() -> Run | None:
    """The run of the sidebar's picker."""
    return next((run for run in all_runs() if run.name == st.session_state.get("run")), None)


def pick_run() -> None:
    """The sidebar's run picker, kept in the address; pages choose by `session_state["run"]`."""
    names = [run.name for run in all_runs() if run.weights.exists() or not run.shipped]
    asked = (query_params.requested("run"), st.session_state.get("run"))
    names = [name for name in names if name in asked or not is_trial(name)]
    if not names:
        st.sidebar.info(_("No runs yet. Start one on the Train page."))
        return
    if (name := query_params.requested("run")) in names:
        st.session_state["run"] = name
    elif st.session_state.get("run") not in names:
        st.session_state["run"] = DEFAULT_RUN if DEFAULT_RUN in names else names[0]
    query_params.choose(RUN, st.session_state["run"])
    labels = {run.name: _label(run) for run in all_runs()}
    if vectors := _vectors_shown():
        _pick_instead(names, labels, vectors)
        return

    def label(name: str) -> str:
        return labels.get(name, name)

    query_params.one_of(
        st.sidebar.selectbox, _("Run"), names, name="run", key=RUN, format_func=label, on_change=_run_picked
    )


def _vectors_shown() -> str:
    """The name of the loaded vectors that Explore shows in place of a run; "" for none."""
    key = query_params.requested("vectors") or st.session_state.get("vectors")
    about = loaded_vectors.loaded().get(str(key)) if query_params.current_session().page == "explore" else None
    return str(about["name"]) if about else ""


def _pick_instead(names: Sequence[str], labels: Mapping[str, str], vectors: str) -> None:
    """The same picker with no run chosen: a choice leaves the vectors."""
    key = "run-instead-of-vectors"

    def pick() -> None:
        query_params.choose(RUN, st.session_state[key])
        choose_run(st.session_state[key])

    shown = _("none: {vectors} is shown").format(vectors=vectors)
    box = st.sidebar.selectbox
    box(
        _("Run"),
        names,
        index=None,
        key=key,
        placeholder=shown,
        format_func=lambda name: labels.get(name, name),
        on_change=pick,
    )


def _run_picked() -> None:
    choose_run(query_params.chosen(RUN))


def choose_run(name: str) -> None:
    """Make it the run of all pages, from the next time one is drawn."""
    st.session_state["run"] = name
    st.session_state["vectors"] = ""  # a run is looked at, no longer loaded vectors


def _label(run: Run) -> str:
    """Its title, and what it is if it was not trained here."""
    try:
        title = str(run.meta().get("title") or run.name)
    except guard.DAMAGE:
        return _("{name} · damaged").format(name=run.name)
    if run.shipped:
        return title + _(" · example")
    if run.is_recording:
        return title + _(" · recording")
    if imported := run.manifest.get("imported"):
        return title + (_(" · random weights") if imported.get("random") else _(" · not trained here"))
    return title


def take_language() -> None:
    """Before anything is drawn, take over a language that is new in the address; it is kept for the session."""
    asked = st.query_params.get("lang")
    if asked != st.session_state.get(SEEN_LANG) and asked in locale.LANGUAGES:
        st.session_state[locale.SESSION] = asked
    st.session_state[SEEN_LANG] = asked


def pick_language() -> None:
    """The switch in the sidebar, kept in the address (`lang=zh`). Its words are those of the languages themselves."""
    chosen = locale.language()
    query_params.keep(lang=chosen if chosen != "en" or locale.browser_language() != "en" else None)
    if st.session_state.get(LANGUAGE_SWITCH) != chosen:
        st.session_state[LANGUAGE_SWITCH] = chosen
    pick = partial(st.sidebar.segmented_control, "Language", list(locale.LANGUAGES), label_visibility="collapsed")
    title_of = locale.LANGUAGES.__getitem__
    pick(format_func=title_of, key=LANGUAGE_SWITCH, required=True, on_change=_language_picked)


def _language_picked() -> None:
    st.session_state[locale.SESSION] = st.session_state[LANGUAGE_SWITCH]
    st.session_state[SEEN_LANG] = st.query_params.get("lang")


def selection(data: str | None = None) -> list[int]:
    """Rows that all pages have lit, of some data's test split (default: the chosen run's)."""
    by_data = st.session_state.get("selection", {})
    return list(by_data.get(data or _own_data(), []))


def select(rows: Sequence[int] | np.ndarray, data: str | None = None, by: str = "") -> None:
    """Light rows on all pages. `by` is the key of the map they were chosen on, if any."""
    by_data = st.session_state.setdefault("selection", {})
    by_data[data or _own_data()] = np.asarray(rows, np.int64).tolist()
    st.session_state["selected"] = (st.session_state.get("selected", (0, ""))[0] + 1, by)


def stamp(key: str) -> str:
    """Changes when a selection was made elsewhere than on the map `key`."""
    count, by = st.session_state.get("selected", (0, ""))
    if by != key:
        st.session_state[f"{key}:stamp"] = count
    return str(st.session_state.get(f"{key}:stamp", 0))


def _own_data() -> str:
    chosen = chosen_run()
    return data_key(chosen) if chosen else ""


def data_key(run: Run) -> str:
    """Return the key that runs on the same samples share."""
    return f"{run.config.get('dataset')} {run.config.get('root') or ''}"


def data_of(space: EmbeddingRef) -> str:
    """What embeddings of the same samples have in common; loaded vectors have it for themselves."""
    run = space.run
    if place := space.recorded:  # the probe set has the same rows at all steps
        return _("recording {name}").format(name=place.content.rpartition("-")[0] if place.kind == PROBE else place.key)
    return data_key(run) if run else _("vectors {key}").format(key=space.key)


def place_of(space: EmbeddingRef) -> str:
    """The name under which a selection of these rows is kept."""
    data = data_of(space)
    parts = [data, *([] if space.split in ("test", "") else [space.split])]
    return " ".join([*parts, *([space.layer] if space.layer == TOWERS else [])])  # whose rows are others
