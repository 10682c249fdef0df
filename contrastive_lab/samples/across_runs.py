"""The same samples across runs: easy for all, hard for all, hard for one."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.samples.request import SampleRequest, request_of
from contrastive_core.samples.table import SampleTable, difficulty
from contrastive_lab import cache, format, query_params, state
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.components.scatter import ScatterData, draw_scatter
from contrastive_lab.samples.at_hand import open_on_findings
from contrastive_lab.samples.choice import Pictures, table_or_wait

__all__ = ["across", "ranks"]

SHOWN = 60


def across(request: SampleRequest, table: SampleTable, pictures: Pictures) -> None:
    """The loss of this run against that of others, on the samples they have in common."""
    run = request.run
    if run is None:
        st.info(
            "Loaded vectors and recordings are alone here: choose a run with weights in the "
            "sidebar to compare runs."
        )
        return
    same = [
        r.name for r in state.all_runs()
        if state.data_key(r) == state.data_key(run) and r.weights.exists() and r != run
    ]  # fmt: skip
    others = query_params.many_of(
        st.multiselect, "Against", same, name="with", default=same[:1], most=7,
        key=f"samples-with-{cache.digest(run.name)}",
    )  # fmt: skip
    if not others:
        st.info("Choose a run of the same data; train one if there is none.")
        return
    tables = [table]
    for name in others:
        loss = str(next(r for r in state.all_runs() if r.name == name).config.get("loss"))
        other = table_or_wait(request_of(name, request.split, loss))
        if other is None:
            return
        tables.append(other)
    linked(request, tables, [request.name, *others], pictures)


def linked(
    request: SampleRequest, tables: list[SampleTable], names: list[str], pictures: Pictures
) -> None:
    ids = [
        i for i in map(str, tables[0].columns["id"]) if all(t.row(i) is not None for t in tables)
    ]
    rows = [[r for i in ids if (r := t.row(i)) is not None] for t in tables]
    losses = np.stack(
        [t.columns["loss"][r] for t, r in zip(tables, rows, strict=True)]
    )  # (runs, n)
    code = difficulty(losses)
    kinds = ["neither", "easy for all", "hard for all", *(f"hard for {n} alone" for n in names)]
    finite = np.isfinite(losses).all(0)
    high = np.stack([ranks(v) for v in losses[:2]], 1)  # (n, 2)
    st.caption(
        f"{format.plain(names[0])} to the right, {format.plain(names[1])} upwards: share of "
        "samples with a lower loss, since losses of different runs have no common scale. Hard: "
        "among the highest 10 %; easy: in the lower half. Select points to see them."
    )
    left, right = st.columns([3, 2], gap="large")
    with left:
        data = ScatterData(
            high[finite], [i for i, k in zip(ids, finite, strict=True) if k],
            cache.digest(names, request), code[finite], kinds,
            title=f"loss of {names[0]} against loss of {names[1]}",
        )  # fmt: skip
        key = f"samples-across-{cache.digest(names[:2])}"
        picked = draw_scatter(data, height=460, key=key).tolist()
    with right:
        counts = np.bincount(code[finite], minlength=len(kinds))
        kind = query_params.one_of(
            st.radio, "Samples", range(len(kinds)), name="kind", default=2,
            format_func=lambda c: format.plain(f"{kinds[c]}: {counts[c]}"),
        )  # fmt: skip
        both = np.corrcoef(high[finite].T)[0, 1]
        st.caption(f"Rank correlation of the two losses: {both:.2f}.")
        listed = (
            np.flatnonzero(finite)[picked] if picked else np.flatnonzero(finite & (code == kind))
        )
        listed = listed[np.argsort(-losses[:, listed].mean(0), kind="stable")]
        st.download_button(
            "These as CSV",
            lambda: format.table_csv([
                {"id": ids[i], "kind": kinds[code[i]],
                 **{f"loss of {n}": float(v) for n, v in zip(names, losses[:, i], strict=True)}}
                for i in listed
            ]),
            "across.csv", "text/csv",
        )  # fmt: skip
    labels = tables[0].columns["label"]
    part = listed[:SHOWN]
    images = pictures.stack([ids[i] for i in part])
    what = format.plain("selected" if picked else kinds[kind])
    st.caption(f"{len(listed)} {what}; a click opens one.")
    if images is None:
        st.dataframe([{"id": ids[i], "label": str(labels[rows[0][i]])} for i in part])
        return
    chosen = draw_gallery(
        images, [str(labels[rows[0][i]]) for i in part], title="samples across runs",
        key=f"across-{cache.digest(names, kind, picked)}",
    )  # fmt: skip
    if chosen:
        open_on_findings(ids[part[chosen[-1]]])
        st.rerun()


def ranks(values: np.ndarray) -> np.ndarray:
    """Share (n) of samples with a lower value."""
    shares = np.empty(len(values))
    shares[np.argsort(values, kind="stable")] = np.arange(len(values)) / max(1, len(values) - 1)
    return shares
