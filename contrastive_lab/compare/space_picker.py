"""The choice of spaces on Compare, and of their relevance judgments. Spaces are runs with weights, and vectors loaded
on Explore. The first two are A and B."""

from pathlib import Path

import streamlit as st

from contrastive_core import runs
from contrastive_core.compare.comparison import MOST
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.attached_files import judgments_file
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, query_params, state
from contrastive_lab.locale import _, message
from contrastive_lab.path_input import path_input
from contrastive_lab.recordings import has_rows

SHAPES = "●○▲■◆▼★✚"  # tell spaces apart, in the order in which they are chosen
A, B = SHAPES[0], SHAPES[1]
LIST = "compare-runs"  # the key of the list of all that are compared
NOT_COMPARED = "compare: left out"  # of the session: names that were asked for and are unknown, or too many
PICKER_WIDTH = 210  # pixels
QRELS = "compare: judgments"  # of the session: the path of their file, None for none


def ready() -> list[Run]:
    """Return the runs that have rows to compare."""
    return [run for run in state.all_runs() if has_rows(run)]


def choose(ready: list[Run]) -> tuple[list[str], str]:
    """Draw the pickers; return the chosen runs and vectors by name, and the layer. No names if fewer than two exist."""
    titles = {run.name: run.name for run in ready}
    titles |= {loaded_vectors.PREFIX + key: str(about["name"]) for key, about in loaded_vectors.loaded().items()}
    if len(titles) < 2:
        return [], "h"
    if (asked := query_params.requested("runs")) is not None:  # what cannot be compared, until another choice
        found = list(dict.fromkeys(filter(None, asked.split(","))))
        known = [name for name in found if name in titles]
        st.session_state[NOT_COMPARED] = ([name for name in found if name not in titles], known[MOST:])
    pair = st.container(horizontal=True, wrap=False, gap="small", vertical_alignment="center", key="compare-pair")
    with st.popover(_("+ add"), help=_("Compare up to {most} spaces").format(most=MOST)):
        names = query_params.many_of(
            st.multiselect,
            _("Runs and loaded vectors"),
            titles,
            name="runs",
            key=LIST,
            most=MOST,
            default=_start(ready),
            on_change=lambda: st.session_state.pop(NOT_COMPARED, None),
        )
    if first := [name for which in "ab" if (name := query_params.take(which)) in names]:
        put(names := list(dict.fromkeys([*first, *names])))  # a link asks for them as A and B
    if len(names) > 1:
        with pair:
            _pick(0, names, titles)
            _pick(1, names, titles)
    if not names or all(Space(name).is_file for name in names):  # vectors of files have no head
        return names, "h"
    of_towers = all(":" not in name and runs.load(name).has_towers for name in names)  # which share the space of z
    key, usual = f"compare-features-{of_towers}", "z" if of_towers else "h"
    box, label = st.segmented_control, _("Features")
    return names, query_params.one_of(box, label, ["h", "z"], name="features", key=key, default=usual, width="content")


def _pick(place: int, names: list[str], titles: dict[str, str]) -> None:
    """Draw the list of A or B. Choosing a space that is already compared swaps the places."""
    key = f"compare-{'AB'[place]}"
    query_params.choose(key, names[place])
    query_params.one_of(
        st.selectbox,
        "AB"[place],
        titles,
        name="",
        key=key,
        width=PICKER_WIDTH,
        format_func=lambda name: f"{SHAPES[place]} {titles[name]}",
        on_change=lambda: put_at(place, query_params.chosen(key), names),
    )


def put_at(place: int, name: str, names: list[str]) -> None:
    """Compare a space as A or B, in place of the current one."""
    changed = list(names)
    if name in names:
        changed[names.index(name)] = names[place]
    changed[place] = name
    put(changed)


def put(names: list[str]) -> None:
    """Compare the spaces with these names."""
    query_params.choose(LIST, names, in_popover=True)


def say_left_out() -> None:
    """Show a warning with the requested spaces that are not compared."""
    template = _("Not compared, because the run or its weights are missing: {listed}.")
    texts = (template, _("Only {most} can be compared. Left out: {listed}."))
    for names, text in zip(st.session_state.get(NOT_COMPARED, ()), texts, strict=False):
        if names:
            st.warning(text.format(most=MOST, listed=format.plain(", ".join(names))))


def spaces(names: list[str], layer: str) -> list[Space]:
    """Return the test rows of runs and loaded vectors, and the newest rows of recordings. Raises ValueError."""
    return [Space.of_name(name, "test", layer) for name in names]


def open_files() -> list[str]:
    """Return the names of loaded vectors: the file that Explore shows, and those with equally many rows, the same ids
    first; [] while it shows a run."""
    files = loaded_vectors.loaded()
    if (now := str(st.session_state.get("vectors"))) not in files:
        return []
    others = [key for key in files if key != now and files[key]["rows"] == files[now]["rows"]]
    others.sort(key=lambda key: files[key].get("ids") != files[now].get("ids"))
    return [loaded_vectors.PREFIX + key for key in (now, *others)]


def _start(ready: list[Run]) -> list[str]:
    """Return the default spaces: two open files if one is shown, else the session's run and one on the same data."""
    if len(files := open_files()) > 1:
        return files[:2]
    first = [run for run in ready if run == state.chosen_run()] or ready[:1]
    same = [r for r in ready for run in first if r.data_key == run.data_key]
    return list(dict.fromkeys(run.name for run in [*first, *same]))[:2]


def comparable(spaces: list[Space]) -> str:
    """Return the reason why spaces have no samples in common; "" if they may have some."""
    data = {state.data_of(s) for s in spaces if not s.is_loaded}
    if len(data) < 2:
        return ""
    text = _("These runs have no samples in common: they use {data_names}. Choose runs of one data set.")
    return text.format(data_names=format.plain(", ".join(sorted(d.strip() for d in data))))


def are_towers(spaces: list[Space]) -> bool:
    """Return whether all spaces are files with two towers."""
    sets = [cache.embedding(space) if space.is_file else None for space in spaces]
    return all(rows is not None and cache.towers(rows) is not None for rows in sets)


def choose_judgments(spaces: list[Space]) -> str:
    """Draw the field for relevance judgments if all spaces hold queries and documents; return why it has no file that
    exists, "" without a reason."""
    st.session_state[QRELS] = None
    if are_towers(spaces):
        with st.popover(_("Judgments")):
            try:
                st.session_state[QRELS] = judgments_input()
            except ValueError as error:
                st.error(text := format.plain(error))
                return text
    return ""


def judgments_input() -> Path | None:
    """Draw the field for a file of relevance judgments or a BEIR folder; return the file, None if the field is empty.
    Raises ValueError if there is no such file."""
    about = _(
        "Relevance of documents to queries: a .tsv of BEIR, a file of TREC, or .json. Without a file, partners "
        "count as relevant."
    )
    if not (typed := path_input(_("Relevance judgments"), "qrels", "/path/to/qrels/test.tsv", about)):
        return None
    path = judgments_file(Path(typed).expanduser())
    if not (path.is_absolute() and path.is_file()):
        raise ValueError(message("No such file: {path}. Enter the full path.", path=path))
    return path


def judgments() -> Path | None:
    """Return the file of relevance judgments that the page names; None if it names none."""
    file: Path | None = st.session_state.get(QRELS)
    return file
