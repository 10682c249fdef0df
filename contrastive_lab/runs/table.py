"""All runs as a table: search, filters, sorting, a CSV; damaged ones named; the bin."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import run_folders, training
from contrastive_core.records import runs
from contrastive_core.records.advice import is_trial
from contrastive_core.records.advice_answer import trial_scores
from contrastive_core.records.evaluation import Evaluation
from contrastive_core.records.run import Run
from contrastive_lab import cache, format, guard, query_params
from contrastive_lab.locale import N_, _, ngettext, text
from contrastive_lab.tables import draw_table

TABLE, SHOWN = "runs-table", "runs-shown"  # the table's key; names in the order of its rows
OF_TOWERS = {  # columns, by the score of two towers
    "zero_shot": N_("Zero-shot %"),
    "recall_1_forth": N_("Recall@1 to captions, %"),
    "recall_1_back": N_("Recall@1 to images, %"),
}
OF_TRIES = {"knn": N_("Adviser's kNN %"), "lidar": N_("Adviser's LiDAR")}  # columns, by criterion
OFTEN_EMPTY = ("title", N_("kNN made of"), "tags", *OF_TOWERS.values(), *OF_TRIES.values())  # where a run has any
TRIES = "tries"  # runs of an adviser: many, and rarely looked at
LONG_NAME, WIDEST = 28, 210  # characters of a name, and pixels of its column
STATES = ["running", "starting", "done", "stopped", "failed", "queued"]
COLUMNS = {
    N_("kNN %"): st.column_config.NumberColumn(
        format="%.1f", help=N_("On the test images; where a run has not been scored: none")
    ),
    OF_TRIES["knn"]: st.column_config.NumberColumn(
        format="%.1f", help=N_("Of an adviser's try: on the adviser's held-out images, which are training images")
    ),
    OF_TRIES["lidar"]: st.column_config.NumberColumn(
        format="%.1f", help=N_("Of an adviser's try without labels: on the adviser's held-out images")
    ),
    OF_TOWERS["zero_shot"]: st.column_config.NumberColumn(
        format="%.1f", help=N_("Of runs with captions: test images that the sentence of their class is most similar to")
    ),
    OF_TOWERS["recall_1_forth"]: st.column_config.NumberColumn(
        format="%.1f",
        help=N_("Of runs with captions: test images whose most similar caption is their own or equal to it"),
    ),
    OF_TOWERS["recall_1_back"]: st.column_config.NumberColumn(
        format="%.1f",
        help=N_(
            "Of runs with captions: test captions whose most similar image is their own or that of an equal caption"
        ),
    ),
    "epochs": st.column_config.NumberColumn(help=N_("Epochs done, of those planned")),
    "of": st.column_config.NumberColumn(N_("planned")),
}


def table(all_runs: Sequence[Run]) -> list[Run]:
    """The table with its search and filters; returns the runs that are selected in it."""
    losses, of_methods = cache.titles("losses"), cache.titles("methods")
    rows = [row(run) for run in all_runs]
    rows = [r | {"loss": r["loss"] and losses.get(str(r["loss"]), r["loss"])} for r in rows]
    visible, origin = _filtered(all_runs, rows)
    if not visible:
        st.info(_("None of the {rows} runs matches. Clear the search or the filters.").format(rows=len(rows)))
        return []
    n_tries = sum(r["origin"] == TRIES for r in rows)
    empty = [k for k in OFTEN_EMPTY if all(r[k] in (None, "") for r in visible)]  # nothing to say
    visible = [{k: v for k, v in r.items() if k not in empty} for r in visible]
    for r in visible:
        r["method"] = r["method"] and of_methods.get(str(r["method"]), r["method"])
    same_selection([r["name"] for r in visible])
    columns = COLUMNS | {"name": st.column_config.Column(pinned=True, width=_width_of([r["name"] for r in visible]))}
    look = {"hide_index": True, "column_order": [k for k in visible[0] if k != "note"], "placeholder": "–"}
    told = [r | {"status": text(r["status"])} for r in visible]
    drawn = draw_table(told, columns, on_select="rerun", selection_mode="multi-row", key=TABLE, **look)
    picked = drawn.selection.rows
    more = ngettext(
        " {n_tries} try of the adviser is listed separately (tries).",
        " {n_tries} tries of the adviser are listed separately (tries).",
        n_tries,
    ).format(n_tries=f"{n_tries:,}")
    template = _(
        "{visible} of {rows} runs.{more} Select a row for its details, or two to compare their settings. Click a "
        "column name to sort."
    )
    below, more = st.container(horizontal=True), more if n_tries and origin == "all" else ""
    below.caption(template.format(visible=len(visible), rows=len(rows), more=more))
    below.download_button(_("Table as CSV"), format.table_csv(visible), "runs.csv", "text/csv", on_click="ignore")
    by_name = {run.name: run for run in all_runs}
    return [by_name[visible[i]["name"]] for i in picked if i < len(visible)]


def _width_of(names: Sequence[str]) -> int | None:
    """Pixels of the first column, which stays while the table scrolls. On a phone Streamlit limits it."""
    return WIDEST if max(map(len, names)) > LONG_NAME else None


def _filtered(all_runs: Sequence[Run], rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """The fields of the search and the filters; returns the rows that pass, and the origin chosen."""
    a, b, c, d = st.container(key="runs-filters").columns([3, 2, 2, 4])
    help = _("A run matches if its name, title, tags, note, method or data contain all words.")
    text = a.text_input(_("Search"), placeholder=_("name, title, tag, note"), key="runs-search", help=help)
    a.toggle(_("Filters"), key="runs-filters-shown")  # on a phone, where they fold (app.py)
    method_names = sorted({str(_method(r)) for r in all_runs})
    states = query_params.many_of(b.multiselect, _("Status"), STATES, name="status", placeholder=_("all"))
    methods = query_params.many_of(
        c.multiselect, _("Method"), method_names, name="method", placeholder=_("all"), format_func=cache.method_title
    )
    titles = cache.titles("methods")
    origins = ["all", "mine", "shipped"] + [TRIES] * any(r["origin"] == TRIES for r in rows)
    origin = query_params.one_of(d.segmented_control, _("Show"), origins, name="show")
    words = text.lower().split()
    passed = [
        r
        for r in rows
        if (not states or r["status"] in states)
        and (not methods or r["method"] in methods)
        and (r["origin"] == origin or (origin == "all" and r["origin"] != TRIES))
        and all(word in " ".join(map(str, [*r.values(), titles.get(str(r["method"]), "")])).lower() for word in words)
    ]
    return passed, origin


def same_selection(names: list[str]) -> None:
    """Keep the same runs selected where rows have moved: a new run must not be deleted in another's place."""
    before = st.session_state.get(SHOWN, [])
    if TABLE in st.session_state and before != names:
        rows = st.session_state[TABLE]["selection"]["rows"]
        chosen = {before[i] for i in rows if i < len(before)}
        places = [i for i, name in enumerate(names) if name in chosen]
        st.session_state[TABLE] = {"selection": {"rows": places}}
    st.session_state[SHOWN] = names


def renamed(old: str, new: str) -> None:
    """The run stays selected under its new name."""
    if st.session_state.get("run") == old:
        st.session_state["run"] = new
    st.session_state[SHOWN] = [new if n == old else n for n in st.session_state.get(SHOWN, [])]


def row(run: Run) -> dict[str, Any]:
    """Return a run as a row of the table."""
    status, record, meta = training.status_of(run), cache.accuracies(run), run.meta()
    knn = record.score("h", "knn") if record else None
    epochs = run.config.get("epochs")
    epoch = epochs if status["status"] == "done" else status.get("epoch", 0)
    imported, trained = run.manifest.get("imported"), "here"
    if imported:
        trained = _("no: random") if imported.get("random") else _("not here")
    return {
        "name": run.name,
        "title": str(meta.get("title") or ""),
        "status": status["status"],
        "method": _method(run),
        "loss": run.config.get("loss"),
        "data": run.config.get("dataset"),
        "epochs": None if run.is_recording or imported else epoch,
        "of": None if imported else epochs,
        "trained": trained,
        "seed": run.config.get("seed"),
        N_("kNN %"): None if knn is None or knn.value is None else 100 * knn.value,
        **of_towers(record),
        N_("kNN made of"): "" if knn is None else knn.approximation,
        **of_tries(run.name),
        "tags": ", ".join(map(str, meta.get("tags") or [])),
        "note": str(meta.get("note") or ""),
        "created": str(run.manifest.get("created", ""))[:16].replace("T", " "),
        "origin": "shipped" if run.shipped else TRIES if is_trial(run.name) else "mine",
    }


def of_tries(name: str) -> dict[str, float | None]:
    """What an adviser scored for a try of its, by column: kNN, or LiDAR where its images have no labels."""
    scores = trial_scores(name)
    knn = 100 * scores["knn"] if "knn" in scores else None
    return {OF_TRIES["knn"]: knn, OF_TRIES["lidar"]: scores.get("lidar") if knn is None else None}


def of_towers(record: Evaluation | None) -> dict[str, float | None]:
    """Percentages of a run with two towers, by column; None where there is none."""
    values = {name: record.value("towers", name) if record else None for name in OF_TOWERS}
    return {OF_TOWERS[name]: None if value is None else 100 * value for name, value in values.items()}


def _method(run: Run) -> Any:
    return "recording" if run.is_recording else run.config.get("method")


# --- what is gone, or cannot be read -----------------------------------------------------------


def damage() -> None:
    """Runs that are left out of the table, each with its damaged file."""
    text = _("{name} is left out: {why}. Nothing else of it was touched.")
    for name, why in runs.damaged().items():
        st.warning(format.plain(text.format(name=name, why=why)))


def remove(chosen: Sequence[Run]) -> None:
    """Move runs to the bin; the page then offers to undo it."""
    gone = []
    for run in chosen:
        with guard.errors_shown():
            gone.append(str(run_folders.delete(run.name)))
    st.session_state["binned"] = gone
    if gone:
        st.rerun()


def undo() -> None:
    """The last deletion can be taken back at once."""
    if not (gone := st.session_state.get("binned")):
        return
    a, b = st.columns([5, 1])
    names = ", ".join(_name(Path(p)) for p in gone)
    a.info(_("Deleted: {gone}. The bin below keeps what is deleted.").format(gone=names))
    if b.button(_("Undo"), type="primary"):
        st.session_state["binned"] = [p for p in gone if not _restore(Path(p))]
        if not st.session_state["binned"]:
            st.rerun()


def bin_of() -> None:
    """Deleted runs, each with a way back; emptied only when asked to."""
    if not (gone := run_folders.binned()):
        return
    with st.expander(_("Bin ({gone})").format(gone=len(gone))):
        for path in gone[:50]:
            line = st.container(horizontal=True, vertical_alignment="center")
            line.text(_name(path), width="stretch")
            if line.button(_("Restore"), key=f"restore-{path.name}") and _restore(path):
                st.session_state.pop("binned", None)
                st.rerun()
        sure = st.checkbox(_("Yes, delete them permanently. This cannot be undone"))
        if st.button(_("Empty the bin"), disabled=not sure):
            run_folders.empty_bin()
            st.session_state.pop("binned", None)
            st.rerun()


def _name(binned: Path) -> str:
    return binned.name.rsplit("-", 1)[0]


def _restore(binned: Path) -> bool:
    with guard.errors_shown():
        run_folders.restore(binned)
        return True
    return False
