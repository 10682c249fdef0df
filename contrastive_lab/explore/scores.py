"""The scores of one space: the first ones at once, the rest on demand, each with how to read it."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.jobs.results import Result
from contrastive_lab import cache, format, state
from contrastive_lab.embedding_source import Source

__all__ = ["VIEWS", "headline", "more"]

FIRST = ("knn", "linear_probe", "uniformity", "alignment", "rankme")
UNLABELED = ("uniformity", "rankme", "hubness", "neighbor_stability")
NARROW = "\u00a0%"  # no line ends before the sign
SHORT = {"linear_probe": "Linear probe", "neighbor_stability": "Stability"}  # on a narrow box
NAMES = {"own": "this space", "raw": "raw pixels", "random": "random encoder"}
BESIDE = {"raw": "raw pixels", "random": "random"}
VIEWS = ("All scores", "kNN over k", "Classes", "Spectrum", "Hubs", "Factors")


def headline(scores: dict[str, dict[str, Any]], how: str) -> None:
    """Scores by source ("own", "raw", "random", "other"), the first in boxes."""
    own = scores["own"]
    labeled = any(own.get(n, {}).get("value") is not None for n in FIRST[:2])
    shown = [n for n in (FIRST if labeled else UNLABELED) if n in own]
    row = st.container(horizontal=True, gap="small")
    for name in shown:
        score = own[name]
        with row.container(border=True, height="stretch", gap="xxsmall"):
            st.metric(SHORT.get(name, score["title"]), format.figure_of(score),
                      help=score["reading"])  # fmt: skip
            st.caption(_beside(name, scores))
    if not labeled and (why := own.get("knn", {}).get("missing")):
        st.caption(f"{why}; so the scores that need no labels are shown.")
    elif how:
        st.caption(how)
    if "random" in scores:
        st.caption("random: a random encoder, which is this one before any training.")


def _beside(name: str, scores: dict[str, dict[str, Any]]) -> str:
    """Interval, what the references have, settings: a line each."""
    score = scores["own"][name]
    if score.get("value") is None:
        return str(score.get("missing", ""))
    extras = score.get("extras", {})
    lines = [format.interval_of(score).removesuffix("; ")]
    lines += [
        f"{text} **{format.figure_of(scores[source].get(name))}**"
        for source, text in (*BESIDE.items(), ("other", scores.get("other_name", "")))
        if source in scores and name in scores[source]
    ]
    if name == "knn":
        lines.append(f"k {extras.get('k')}, τ {extras.get('temperature')}")
    if name == "rankme":
        lines.append(f"of {extras.get('width')}")
    return "  \n".join(line.replace(" %", NARROW) for line in lines if line)


def more(source: Source, view: str, answer: Result, rows: EmbeddingSet, split: str) -> None:
    """One of the views under "More"."""
    scores = answer.meta["scores"]
    if view == "All scores":
        _table(scores, cache.scores(source.run) if source.run else None)
    elif view == "kNN over k":
        _over_k(scores)
    elif view == "Classes":
        _classes(source, scores["own"], answer, rows, split)
    elif view == "Spectrum":
        _spectrum(scores)
    elif view == "Hubs":
        _hubs(source, scores["own"]["hubness"], answer, rows, split)
    elif view == "Factors":
        _factors(scores)


def _table(scores: dict[str, Any], record: dict[str, Any] | None) -> None:
    rows = []
    for name, score in scores["own"].items():
        row = {"score": score["title"], "value": format.figure_of(score)}
        row["95 %"] = format.interval_of(score).removesuffix("; ").removeprefix("95 %: ")
        for source in ("raw", "random"):
            known = (record or {}).get("scores", {}).get(source, {}).get(name)
            row[NAMES[source]] = format.figure_of(scores.get(source, {}).get(name, known))
        rows.append(row)
    st.dataframe(rows, hide_index=True, width="stretch", height="content")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("An interval is given where the score estimates something from a sample.")
        st.download_button("Scores as CSV", format.table_csv(rows), "scores.csv", "text/csv")
    sides = st.columns(2, gap="medium")
    for number, score in enumerate(scores["own"].values()):
        text = score["reading"] + (f" *{why}.*" if (why := score.get("missing")) else "")
        sides[number % 2].caption(f"**{score['title']}**: {text}")


def _over_k(scores: dict[str, Any]) -> None:
    series = {}
    for source, text in NAMES.items():
        curve = scores.get(source, {}).get("knn", {}).get("extras", {}).get("curve")
        if curve:
            series[text] = ([int(k) for k in curve], [100 * v for v in curve.values()])
    if not series:
        st.info(_missing(scores["own"], "knn"))
        return
    figure = format.curves(series, "k, neighbors that vote", "kNN accuracy, %")
    ks = sorted({k for xs, _ in series.values() for k in xs})
    figure.update_xaxes(type="log", tickvals=ks, ticktext=[str(k) for k in ks])
    st.plotly_chart(figure)
    own = scores["own"]["knn"]
    st.caption(
        f"The score is the one at k = {own['extras']['k']}, which follows from the number of "
        "training rows; the curve is for reading only, and nothing is selected by it."
    )


def _classes(
    source: Source, own: dict[str, Any], answer: Result, rows: EmbeddingSet, split: str
) -> None:
    """Per class: share right, its interval, what it is taken for. A click selects the samples."""
    import pandas as pd

    per_class = own.get("knn", {}).get("extras", {}).get("per_class")
    if not per_class:
        st.info(_missing(own, "knn"))
        return
    names = [str(c["class"]) for c in per_class]
    table = pd.DataFrame(
        [
            {
                "class": str(c["class"]), "n": c["n"], "right, %": 100 * c.get("value", np.nan),
                "95 %": format.interval_of({"interval": c.get("interval"), "unit": "share"})
                .removesuffix("; ").removeprefix("95 %: "),
                **{f"→ {n}": t for n, t in zip(names, c["taken_for"], strict=True)},
            }
            for c in per_class
        ]
    )  # fmt: skip
    labels = answer.arrays["knn:confusion_labels"]
    key = f"confusion-{cache.digest(source.data, split)}"

    def clicked() -> None:
        cells = st.session_state[key].selection.cells
        if cells:
            at, column = cells[0]
            chosen = _of_cell(rows, answer, labels, int(at), str(column), names)
            state.select(chosen, source.place(split))

    st.dataframe(
        table.style.apply(_shade, subset=[f"→ {n}" for n in names], axis=None).format(
            {"right, %": "{:.1f}"}
        ),
        hide_index=True, on_select=clicked, selection_mode="single-cell", key=key,
        alt="Confusion matrix of the kNN vote: a row for each class, a column for what it is "
        "taken for",
    )  # fmt: skip
    st.caption(
        "By the kNN vote. Click a cell: those samples are selected on the map and in the gallery; "
        "in the first columns, the samples of the class that are wrong."
    )


def _of_cell(
    rows: EmbeddingSet, answer: Result, labels: np.ndarray, at: int, column: str, names: list[str]
) -> list[int]:
    predicted, right = answer.arrays["knn:predicted"], answer.arrays["knn:per_sample"]
    assert rows.labels is not None
    own = rows.labels == labels[at]
    if column.startswith("→ "):
        return np.flatnonzero(own & (predicted == labels[names.index(column[2:])])).tolist()
    return np.flatnonzero(own & (right == 0)).tolist()


def _shade(table: Any) -> Any:
    """Cells tinted by their share of the row: blue on the diagonal, orange off it."""
    share = table.to_numpy() / np.maximum(1, table.to_numpy().sum(1, keepdims=True))
    tint = np.empty(share.shape, object)
    for (i, j), v in np.ndenumerate(share):
        color = "59, 125, 216" if i == j else "232, 131, 58"
        tint[i, j] = f"background-color: rgba({color}, {min(0.8, v * (0.7 if i == j else 3)):.2f})"
    return tint


def _spectrum(scores: dict[str, Any]) -> None:
    series = {}
    for source, text in NAMES.items():
        values = scores.get(source, {}).get("rankme", {}).get("extras", {}).get("spectrum")
        if values:
            series[text] = (list(range(1, len(values) + 1)), values)
    if not series:
        st.info(_missing(scores["own"], "rankme"))
        return
    figure = format.curves(series, "direction, by its size", "singular value, largest = 1")
    figure.update_yaxes(type="log")
    st.plotly_chart(figure)
    own = scores["own"]["rankme"]
    st.caption(
        f"RankMe {own['value']:.1f} of {own['extras']['width']} dimensions. {own['reading']} "
        "A curve that falls steeply uses few directions."
    )


def _hubs(
    source: Source, own: dict[str, Any], answer: Result, rows: EmbeddingSet, split: str
) -> None:
    counts = answer.arrays.get("hubness:per_sample")
    if counts is None:
        st.info(str(own.get("missing")))
        return
    numbers = np.bincount(counts.astype(np.int64))
    figure = format.curves(
        {"samples": (np.arange(len(numbers)), numbers)},
        f"how often a sample is among the {own['extras']['k']} nearest of others", "samples",
    )  # fmt: skip
    st.plotly_chart(figure)
    st.caption(
        f"{own['reading']} Here the skewness is {own['value']:.2f}; "
        f"{100 * own['extras']['never']:.1f} % are nobody's neighbor."
    )
    place, row = source.place(split), st.container(horizontal=True)
    row.button("Select the 50 largest hubs", on_click=state.select,
               args=(np.argsort(-counts)[:50].tolist(), place))  # fmt: skip
    row.button("Select those that are nobody's neighbor", on_click=state.select,
               args=(np.flatnonzero(counts == 0).tolist(), place))  # fmt: skip


def _factors(scores: dict[str, Any]) -> None:
    own = scores["own"].get("factors", {})
    if own.get("value") is None:
        st.info(_missing(scores["own"], "factors"))
        return
    names = [k for k in own["extras"] if k != "n"]
    table = []
    for name in names:
        row: dict[str, Any] = {"factor": name.replace("_", " ")}
        for source, text in NAMES.items():
            value = scores.get(source, {}).get("factors", {}).get("extras", {}).get(name)
            row[text] = None if value is None else max(0.0, float(value))
        table.append(row)
    bars = {
        text: st.column_config.ProgressColumn(text, min_value=0, max_value=1, format="%.2f")
        for text in NAMES.values()
    }
    st.dataframe(table, hide_index=True, column_config=bars, width="stretch")
    st.caption(own["reading"])


def _missing(own: dict[str, Any], name: str) -> str:
    return str(own.get(name, {}).get("missing", "This needs labels and training rows."))
