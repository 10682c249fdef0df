"""Compare's views: the tables, the maps side by side, how alike the spaces are."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.evaluation.compare import Comparison
from contrastive_core.evaluation.record import SOURCES
from contrastive_core.evaluation.representation_similarity import procrustes_align
from contrastive_core.evaluation.score import Scores
from contrastive_core.jobs.results import MAP_DEFAULTS
from contrastive_core.runs.cost import cost_of
from contrastive_lab import cache, format, plots, query_params, state
from contrastive_lab import embedding_map as one_map
from contrastive_lab.colors import color_of, drawn, kept
from contrastive_lab.components.scatter import (
    MAX_POINTS,
    LinkedSelection,
    ScatterData,
    draw_scatter,
)
from contrastive_lab.components.scatter.side_by_side import side_by_side
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS
from contrastive_lab.embedding_source import Source
from contrastive_lab.progress import answer_or_wait

__all__ = ["alike", "maps", "table", "tests"]

TITLES = {
    "knn": "kNN accuracy", "linear_probe": "Linear probe accuracy", "purity": "Purity",
    "silhouette": "Silhouette", "alignment": "Alignment", "tolerance": "Tolerance",
    "uniformity": "Uniformity",
}  # fmt: skip
COST = {
    "seconds": "training, s", "images_per_s": "images/s", "memory_mb": "memory, MB",
    "parameters": "parameters",
}  # fmt: skip
P_VALUES = {k: st.column_config.NumberColumn(format="%.2g") for k in ("p", "p, corrected")}
MATRIX = 280  # pixels of a matrix; below each other where there is no room beside each other
SHARES = ("knn", "linear_probe", "purity")


def table(sources: list[Source], made: Comparison) -> None:
    """A row per run: every score with its interval, and what it cost; then the references."""
    rows = [{"run": s.name, **_cells(made.scores[i])} for i, s in enumerate(sources)]
    for row, source in zip(rows, sources, strict=True):
        cost = cost_of(source.run) if source.run else {}
        row |= {text: cost.get(k) for k, text in COST.items()}
    rows += _references(sources)
    first = ["run", "kNN accuracy, %", "kNN accuracy, % (95 %)", "Linear probe accuracy, %",
             "Linear probe accuracy, % (95 %)"]  # fmt: skip
    columns = dict.fromkeys([*first, *(k for row in rows for k in row)])
    heads = [h for h in columns if any(h in row for row in rows)]
    short = {h: "95 %" for h in heads if h.endswith(" (95 %)")}
    st.dataframe(rows, hide_index=True, column_order=heads, column_config=short,
                 alt="Scores and cost of each run")  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            "Click a column's head to sort. Times and memory are those of the machine that trained."
        )
        full = [{h: row.get(h) for h in heads} for row in rows]
        st.download_button("Table as CSV", format.table_csv(full), "compare.csv", "text/csv")


def _cells(scores: Scores) -> dict[str, Any]:
    """Values and intervals of one run's scores, by the heads of their columns."""
    row: dict[str, Any] = {}
    for score in scores.values():
        if score.value is None:
            continue
        share = score.unit == "share"
        head = score.title + (", %" if share else "")
        row[head] = round(100 * score.value, 1) if share else round(score.value, 3)
        if text := format.interval_of(score):
            row[f"{head} (95 %)"] = text
    return row


def _references(sources: list[Source]) -> list[dict[str, Any]]:
    """What raw pixels and the first run's encoder before training have on the same images."""
    run = next((s.run for s in sources if s.run), None)
    record = cache.scores(run) if run else None
    found = record.scores if record else {}
    return [{"run": SOURCES[k], **_cells(found[k])} for k in ("raw", "random") if k in found]


def tests(made: Comparison) -> None:
    """Paired differences of every score between every two runs, corrected for their number."""
    for metric in made.verdicts:
        st.markdown(f"**{TITLES[metric]}**")
        st.dataframe(
            [
                {
                    "A": d.a, "B": d.b, "A − B, points": round(100 * d.value, 2),
                    "95 %": f"{100 * d.interval[0]:+.1f} to {100 * d.interval[1]:+.1f}",
                    "p, corrected": d.p_corrected, "only A right": d.only_a,
                    "only B right": d.only_b, "shown by the data": d.claimed,
                }
                for d in made.differences if d.metric == metric
            ],
            hide_index=True, column_config=P_VALUES,
        )  # fmt: skip
    if made.differences:
        st.caption(
            "McNemar's exact test on who is right, corrected by Holm for the number of pairs and "
            "accuracies; the interval is a paired bootstrap."
        )
    rows = []
    for t in made.tests:
        if t["score"] in made.verdicts:  # it has a table above
            continue
        unit = 100 if t["score"] in SHARES else 1
        shown = t["p_corrected"] < 0.05 and (t["low"] > 0 or t["high"] < 0)
        rows.append(
            {
                "score": TITLES[t["score"]] + (", points" if unit == 100 else ""),
                "A": t["a"], "B": t["b"], "A − B": round(unit * t["value"], 3),
                "95 %": f"{unit * t['low']:+.3g} to {unit * t['high']:+.3g}",
                "p": t["p"], "p, corrected": t["p_corrected"],
                "shown by the data": shown,
            }
        )  # fmt: skip
    if rows:
        st.markdown(f"**Every other score**: {len(rows)} paired tests on the same samples")
        st.dataframe(rows, hide_index=True, column_config=P_VALUES)
        st.caption(
            "Right or wrong by McNemar's exact test, means by a paired t test; all p values, "
            f"the accuracies' among them, are corrected together by Holm for {len(made.tests)} "
            "tests. One seed each: for a claim about methods choose three seeds of both."
        )


def maps(sources: list[Source], split: str, which: str, place: str) -> None:
    """All maps side by side, turned onto the first; one selection is lit in all of them."""
    kind = query_params.one_of(st.segmented_control, "Map", ["pca", "umap"], name="map",
                               format_func=str.upper)  # fmt: skip
    sets = [s.rows(split if s.splits else "", which) for s in sources]
    if any(rows is None for rows in sets):
        st.info("An embedding is still being made.")
        return
    known = [rows for rows in sets if rows is not None]
    shared = set.intersection(*(set(rows.ids) for rows in known))
    order = [i for i in known[0].ids if i in shared]
    found = [
        one_map.map_of(s, split if s.splits else "", which, kind,
                       MAP_DEFAULTS if kind == "umap" else {}, rows)["xy"]
        for s, rows in zip(sources, known, strict=True)
    ]  # fmt: skip
    at = [{name: row for row, name in enumerate(rows.ids)} for rows in known]
    xy = [m[[a[i] for i in order]] for m, a in zip(found, at, strict=True)]
    xy = [xy[0], *(procrustes_align(m, xy[0]) for m in xy[1:])]
    first = known[0] if len(order) == len(known[0]) else known[0].take([at[0][i] for i in order])
    shown = drawn(first.labels, len(first), MAX_POINTS // len(xy))
    part = slice(None) if shown is None else shown
    values, names = color_of(first, "class" if first.labels is not None else "sample", {})
    pictures = shown is None and len(first) == len(known[0]) and sources[0].has_pictures(split)
    key = f"compare-{kind}-{which}"
    data = ScatterData(
        xy[0][part], first.ids if shown is None else [first.ids[i] for i in shown],
        cache.digest(*(r.content_hash for r in known), kind, pictures),
        None if values is None else values[part], names,
        thumbnails=sources[0].thumbnails(split) if pictures else NO_THUMBNAILS,
        title=f"{kind.upper()} maps side by side",
        note="" if shown is None else f"{len(shown):,} of {len(first):,} points, by class",
    )  # fmt: skip
    selection = LinkedSelection(
        kept(state.selection(place), shown), f"{place} {state.stamp(key)}",
        lambda rows: state.select(
            rows if shown is None else [int(shown[i]) for i in rows], place, key),
    )  # fmt: skip
    draw_scatter(
        side_by_side(data, [m[part] for m in xy], [s.name for s in sources]), selection,
        height={2: 430, 3: 360}.get(len(xy), 600), key=key,
    )  # fmt: skip
    st.caption(
        f"Each map is turned and mirrored onto that of {format.plain(sources[0].name)} "
        "(Procrustes), at one size. The slider moves every sample to where the first map has it."
    )


def alike(sources: list[Source], made: Comparison, which: str) -> None:
    """Matrices between the runs, and between the snapshots of one of them."""
    numbers = [str(q) for q in range(1, len(made.names) + 1)]
    named = (f"**{q}** {format.plain(n)}" for q, n in zip(numbers, made.names, strict=True))
    st.markdown(" · ".join(named))
    matrices(numbers, {"cka": made.cka, "overlap": made.overlap,
                          "procrustes": made.procrustes}, made.k)  # fmt: skip
    runs = [s.run for s in sources if s.run and len(s.run.snapshots()) > 1]
    if not runs:
        return
    st.subheader("Between the snapshots of one run")
    name = query_params.one_of(st.selectbox, "Run", [r.name for r in runs], name="snapshots")
    run = next(r for r in runs if r.name == name)
    values = {"run": name, "which": which, "epochs": run.snapshots(), "weights": run.weights_hash()}
    found = answer_or_wait("snapshots", values, "Comparing the snapshots")
    if found is not None:
        st.caption("Rows and columns are epochs.")
        epochs = [str(e) for e in found.meta["epochs"]]
        matrices(epochs, found.arrays, found.meta["k"], name)


READINGS = {
    "cka": ("Linear CKA (debiased)", "1: the same up to turning and scaling, 0: unrelated."),
    "overlap": ("Shared neighbors", "Share of the {k} nearest that two spaces have in common."),
    "procrustes": ("Procrustes distance", "0: one can be turned into the other, 1: not at all."),
}


def matrices(names: list[str], found: dict[str, np.ndarray], k: int, of: str = "") -> None:
    row = st.container(horizontal=True)
    for key, (title, reading) in READINGS.items():
        with row.container(width=MATRIX, gap="xsmall"):
            st.markdown(f"**{title}**")
            figure = plots.matrix(found[key], names, names, reverse=key == "procrustes")
            st.plotly_chart(figure, key=f"{key}-{cache.digest(of)}")
            st.caption(reading.format(k=k))
