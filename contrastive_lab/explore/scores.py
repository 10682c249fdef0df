"""All scores of one space, on demand, each with how to read it; the first ones are in strip.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.results import Result
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import SOURCES, Evaluation
from contrastive_core.records.score import ClassShare, Scores, scores_from_json
from contrastive_lab import cache, format, plots, state
from contrastive_lab.locale import N_, _
from contrastive_lab.tables import draw_table

NAMES = {"own": N_("this space"), "raw": SOURCES["raw"], "random": SOURCES["random"]}
VIEWS = (N_("All scores"), N_("kNN over k"), N_("Classes"), N_("Spectrum"), N_("Hubs"), N_("Factors"))


def more(space: EmbeddingRef, view: str, answer: Result, rows: EmbeddingSet) -> None:
    """One of the views under "More"."""
    scores = {k: scores_from_json(v) for k, v in answer.meta["scores"].items()}
    if view == "All scores":
        _table(scores, cache.scores(run) if (run := space.run) else None)
    elif view == "kNN over k":
        _over_k(scores)
    elif view == "Classes":
        _classes(space, scores["own"], answer, rows)
    elif view == "Spectrum":
        _spectrum(scores)
    elif view == "Hubs":
        _hubs(space, scores["own"], answer)
    elif view == "Factors":
        _factors(scores)


def _table(scores: dict[str, Scores], record: Evaluation | None) -> None:
    rows = []
    for name, score in scores["own"].items():
        title = ", ".join(filter(None, [score.title, score.approximation]))
        row = {"score": title, "value": format.figure_of(score)}
        row["95 %"] = format.interval_of(score)
        for source in ("raw", "random"):
            recorded = record.score(source, name) if record else None
            row[NAMES[source]] = format.figure_of(scores.get(source, {}).get(name, recorded))
        rows.append(row)
    draw_table(rows, hide_index=True, width="stretch", height="content")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_("An interval is given where the score estimates something from a sample."))
        st.download_button(_("Scores as CSV"), format.table_csv(rows), "scores.csv", "text/csv")
    sides = st.columns(2, gap="medium")
    for number, score in enumerate(scores["own"].values()):
        text = format.plain(score.reading)
        text += f" *{format.plain(score.missing)}.*" if score.missing else ""
        sides[number % 2].caption(f"**{format.plain(score.title)}**: {text}")


def _over_k(scores: dict[str, Scores]) -> None:
    series = {}
    for source, text in NAMES.items():
        knn = scores.get(source, {}).get("knn")
        if knn is not None and (curve := knn.curve):
            series[text] = (list(curve), [100 * v for v in curve.values()])
    if not series:
        st.info(_missing(scores["own"], "knn"))
        return
    figure = plots.curves(series, _("k, neighbors that vote"), _("kNN accuracy, %"))
    ks = sorted({k for xs, _unused in series.values() for k in xs})
    figure.update_xaxes(type="log", tickvals=ks, ticktext=[str(k) for k in ks])
    st.plotly_chart(figure)
    knn_score = scores["own"]["knn"]
    st.caption(
        _(
            "The score is the one at k = {k}, which follows from the number of training "
            "rows; the curve is for reading only, and nothing is selected by it."
        ).format(k=f"{knn_score.number('k') or 0:g}")
    )


def _class_row(score: ClassShare, names: list[str]) -> dict[str, object]:
    """A row of the confusion matrix, with the class's share right and its interval."""
    return {
        "class": score.name,
        "n": score.n,
        N_("right, %"): np.nan if score.value is None else 100 * score.value,
        "95 %": format.interval_of(score),
        **{f"→ {n}": t for n, t in zip(names, score.taken_for, strict=True)},
    }


def _classes(space: EmbeddingRef, space_scores: Scores, answer: Result, rows: EmbeddingSet) -> None:
    """Per class: share right, its interval, what it is taken for. A click selects the samples."""
    import pandas as pd

    per_class = space_scores["knn"].per_class if "knn" in space_scores else []
    labels = answer.arrays.get("knn:confusion_labels")
    if not per_class or labels is None:
        st.info(_missing(space_scores, "knn"))
        return
    names = [c.name for c in per_class]
    table = pd.DataFrame([_class_row(c, names) for c in per_class])
    place = state.place_of(space)
    key = f"confusion-{cache.digest(place)}"

    def clicked() -> None:
        cells = st.session_state[key].selection.cells
        if cells:
            at, column = cells[0]
            chosen = _of_cell(rows, answer, labels, int(at), str(column), names)
            state.select(chosen, place)

    draw_table(
        table.style.apply(_shade, subset=[f"→ {n}" for n in names], axis=None).format({N_("right, %"): "{:.1f}"}),
        hide_index=True,
        on_select=clicked,
        selection_mode="single-cell",
        key=key,
        alt=_("Confusion matrix of the kNN vote: a row for each class, a column for what it is taken for"),
    )
    st.caption(
        _(
            "By the kNN vote. Click a cell: those samples are selected on the map and in the "
            "gallery; in the first columns, the samples of the class that are wrong."
        )
    )


def _of_cell(
    rows: EmbeddingSet, answer: Result, labels: np.ndarray, at: int, column: str, names: list[str]
) -> list[int]:
    predicted, right = answer.arrays["knn:predicted"], answer.arrays["knn:per_sample"]
    assert rows.labels is not None
    of_class = rows.labels == labels[at]
    if column.startswith("→ "):
        return np.flatnonzero(of_class & (predicted == labels[names.index(column[2:])])).tolist()
    return np.flatnonzero(of_class & (right == 0)).tolist()


def _shade(table: Any) -> Any:
    """Cells tinted by their share of the row: blue on the diagonal, orange off it."""
    share = table.to_numpy() / np.maximum(1, table.to_numpy().sum(1, keepdims=True))
    tint = np.empty(share.shape, object)
    for (i, j), v in np.ndenumerate(share):
        color = "59, 125, 216" if i == j else "232, 131, 58"
        tint[i, j] = f"background-color: rgba({color}, {min(0.8, v * (0.7 if i == j else 3)):.2f})"
    return tint


def _spectrum(scores: dict[str, Scores]) -> None:
    series = {}
    for source, text in NAMES.items():
        rankme = scores.get(source, {}).get("rankme")
        if rankme is not None and (values := rankme.spectrum):
            series[text] = (list(range(1, len(values) + 1)), values)
    if not series:
        st.info(_missing(scores["own"], "rankme"))
        return
    figure = plots.curves(series, _("direction, by its size"), _("singular value, largest = 1"))
    figure.update_yaxes(type="log")
    st.plotly_chart(figure)
    rankme_score = scores["own"]["rankme"]
    st.caption(
        _("RankMe {value} of {width} dimensions. {reading} A curve that falls steeply uses few directions.").format(
            value=format.figure_of(rankme_score),
            width=f"{rankme_score.number('width') or 0:g}",
            reading=format.plain(rankme_score.reading),
        )
    )


def _hubs(space: EmbeddingRef, space_scores: Scores, answer: Result) -> None:
    counts = answer.arrays.get("hubness:per_sample")
    hubness = space_scores.get("hubness")
    if counts is None or hubness is None or hubness.value is None:
        st.info(_missing(space_scores, "hubness"))
        return
    numbers = np.bincount(counts[np.isfinite(counts)].astype(np.int64))  # of drawn rows only
    figure = plots.curves(
        {"samples": (range(len(numbers)), numbers.tolist())},
        _("how often a sample is among the {k} nearest of others").format(k=f"{hubness.number('k') or 0:g}"),
        "samples",
    )
    st.plotly_chart(figure)
    st.caption(
        _("{reading} Here the skewness is {value}; {share} % are nobody's neighbor.").format(
            reading=format.plain(hubness.reading),
            value=f"{hubness.value:.2f}",
            share=f"{100 * (hubness.number('never') or 0):.1f}",
        )
    )
    place, row = state.place_of(space), st.container(horizontal=True)
    row.button(_("Select the 50 largest hubs"), on_click=state.select, args=(np.argsort(-counts)[:50].tolist(), place))
    row.button(
        _("Select those that are nobody's neighbor"),
        on_click=state.select,
        args=(np.flatnonzero(counts == 0).tolist(), place),
    )


def _factors(scores: dict[str, Scores]) -> None:
    factor_score = scores["own"].get("factors")
    if factor_score is None or factor_score.value is None:
        st.info(_missing(scores["own"], "factors"))
        return
    names = [k for k in factor_score.extras if k != "n"]
    table = []
    for name in names:
        row: dict[str, Any] = {"factor": name.replace("_", " ")}
        for source, text in NAMES.items():
            factors = scores.get(source, {}).get("factors")
            value = factors.number(name) if factors else None
            row[text] = None if value is None else max(0.0, value)
        table.append(row)
    bars = {
        text: st.column_config.ProgressColumn(text, min_value=0, max_value=1, format="%.2f") for text in NAMES.values()
    }
    draw_table(table, hide_index=True, column_config=bars, width="stretch")
    st.caption(format.plain(factor_score.reading))


def _missing(space_scores: Scores, name: str) -> str:
    why = space_scores[name].missing if name in space_scores else ""
    return format.plain(why or _("This needs labels and training rows."))
