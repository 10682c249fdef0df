"""The spaces of the Compare page: runs with weights, and vectors loaded on Explore."""

import streamlit as st

from contrastive_core.records import embedding_ref, loaded_vectors
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.evaluation import SOURCES
from contrastive_core.records.run import Run
from contrastive_lab import format, guard, query_params, state
from contrastive_lab.compare import checkpoints
from contrastive_lab.locale import _
from contrastive_lab.recordings import has_rows

MOST = 8
NOT_COMPARED = "compare: left out"  # of the session: names that were asked for and are unknown, or too many


def ready() -> list[Run]:
    """Runs that have weights and whose settings can be read; a line for each whose cannot."""
    readable = []
    for run in state.all_runs():
        if has_rows(run):
            with guard.on_its_own(run.name):
                state.data_key(run)
                readable.append(run)
    return readable


def choose(ready: list[Run]) -> tuple[list[str], str]:
    """Names of the chosen runs and loaded vectors, and the layer; fewer than two: it says why."""
    titles = {run.name: run.name for run in ready}
    titles |= {loaded_vectors.PREFIX + key: str(about["name"]) for key, about in loaded_vectors.loaded().items()}
    if len(titles) < 2:
        st.info(_("Comparing needs two runs with weights, or recordings. Train another one."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return [], "h"
    _missing(list(titles))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = query_params.many_of(
            st.multiselect,
            _("Runs and loaded vectors"),
            titles,
            name="runs",
            most=MOST,
            default=_start(ready),
            format_func=titles.get,
            on_change=lambda: st.session_state.pop(NOT_COMPARED, None),
        )
        layer = "h"
        if not all(name.startswith(loaded_vectors.PREFIX) for name in names):  # vectors of files have no head
            group, layers = st.segmented_control, ["h", "z"]
            of_towers = len(checkpoints.with_towers(names)) == len(names)  # which share the space of z
            layer = query_params.one_of(
                group,
                _("Features"),
                layers,
                name="features",
                key=f"compare-features-{of_towers}",
                default="z" if of_towers else "h",
                format_func=SOURCES.get,
                width="content",
            )
    if len(names) < 2:
        alone = checkpoints.with_towers(names)  # whose checkpoints the page compares
        st.info(_("Choose at least two, or compare two checkpoints below.") if alone else _("Choose at least two."))
    return names, layer


def _missing(known: list[str]) -> None:
    """What was asked to be compared and cannot be is named, until something else is chosen."""
    if (asked := query_params.requested("runs")) is not None:
        names = list(dict.fromkeys(filter(None, asked.split(","))))
        unknown, found = [n for n in names if n not in known], [n for n in names if n in known]
        st.session_state[NOT_COMPARED] = (unknown, found[MOST:])
    template = _("Not compared, because the run or its weights are missing: {listed}.")
    texts = (template, _("Only {most} can be compared. Left out: {listed}."))
    for names, text in zip(st.session_state.get(NOT_COMPARED, ()), texts, strict=False):
        if names:
            st.warning(text.format(most=MOST, listed=format.plain(", ".join(names))))


def spaces(names: list[str], layer: str) -> list[EmbeddingRef]:
    """The test rows of runs and loaded vectors, the newest rows of recordings. Raises ValueError."""
    return [embedding_ref.of_name(name, "test", layer) for name in names]


def open_files() -> list[str]:
    """Names of loaded vectors: the file that Explore shows, and those with as many rows; [] while it shows a run."""
    files = loaded_vectors.loaded()
    if (now := str(st.session_state.get("vectors"))) not in files:
        return []
    others = (key for key in files if key != now and files[key]["rows"] == files[now]["rows"])
    return [loaded_vectors.PREFIX + key for key in (now, *others)]


def _start(ready: list[Run]) -> list[str]:
    """Two open files while one is looked at, else the sidebar's run with another of its data set."""
    if len(files := open_files()) > 1:
        return files[:2]
    first = [run for run in ready if run == state.chosen_run()] or ready[:1]
    same = [r for r in ready for run in first if state.data_key(r) == state.data_key(run)]
    return list(dict.fromkeys(run.name for run in [*first, *same]))[:2]
