"""Compare: two to eight spaces of the same samples, and one verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

import session
from components import scatter
from contrastive_core import figures
from contrastive_core.runs import Run


def page() -> None:
    st.title("Compare")
    ready = [r for r in session.all_runs() if r.weights.exists()]
    if len(ready) < 2:
        st.info("Two runs with weights are needed. Train another one, and compare.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    names = [r.name for r in ready]
    chosen = st.multiselect("Runs", names, default=start(ready), max_selections=8)
    which = st.segmented_control("Features", ["h", "z"], default="h") or "h"
    st.query_params["runs"] = ",".join(chosen)
    if len(chosen) < 2:
        st.info("Choose at least two runs.")
        return
    runs_ = [r for name in chosen for r in ready if r.name == name]
    data = {str(r.config.get("dataset")) for r in runs_}
    if len(data) > 1:
        st.warning(f"These runs have no samples in common: they are of {', '.join(sorted(data))}.")
        return
    missing = [r for r in runs_ if session.ensure(r)]
    if missing:
        wait(missing)
        return
    try:
        made = session.compared(tuple(chosen), tuple(r.weights_hash() for r in runs_), which)
    except ValueError as error:
        st.warning(str(error))
        return
    st.subheader(made.verdict)
    table(runs_, made)
    view = st.segmented_control(
        "Show", ["Maps", "How alike", "Where they disagree", "A knob as an axis"], default="Maps"
    )
    if view == "Maps":
        maps(runs_, which)
    elif view == "How alike":
        alike(made)
    elif view == "Where they disagree":
        disagree(runs_, made)
    elif view == "A knob as an axis":
        axis(ready)


def start(ready: list[Run]) -> list[str]:
    """The address's runs, or the sidebar's with another of its data set."""
    names = [r.name for r in ready]
    given = [n for n in st.query_params.get("runs", "").split(",") if n in names]
    if len(given) > 1:
        return given[:8]
    own = session.chosen_run() or ready[0]
    same = [r.name for r in ready if r.config.get("dataset") == own.config.get("dataset")]
    return [own.name, *[n for n in same if n != own.name]][:2]


@st.fragment(run_every=1.0)
def wait(missing: list[Run]) -> None:
    left = {r.name: what for r in missing if (what := session.ensure(r))}
    if not left:
        st.rerun()
    for name, what in left.items():
        st.progress(0.3, text=f"Preparing {name} (once): {what}")


def table(runs_: list[Run], made: Any) -> None:
    rows = []
    for i, run in enumerate(runs_):
        record = session.scores(run)
        scores = record["scores"]["h"] if record else {}
        epochs = [x for x in run.metrics() if "seconds" in x]
        rows.append(
            {
                "run": run.name,
                "kNN %": 100 * made.accuracy[i] if made.accuracy else None,
                **{s["title"]: figures.figure_of(s) for n, s in scores.items() if n != "knn"},
                "training, s": epochs[-1]["seconds"] if epochs else None,
                "weights, kB": run.weights.stat().st_size // 1024,
            }
        )
    st.dataframe(rows, hide_index=True, column_config={
        "kNN %": st.column_config.NumberColumn(format="%.1f"),
        "training, s": st.column_config.NumberColumn(format="%.0f"),
    })  # fmt: skip
    pairs = [
        {
            "A": d.a, "B": d.b, "A − B, points": 100 * d.value,
            "95 %": f"{100 * d.interval[0]:+.1f} to {100 * d.interval[1]:+.1f}",
            "p, corrected": d.p_corrected, "only A right": d.only_a, "only B right": d.only_b,
            "shown by the data": d.claimed,
        }
        for d in made.differences
    ]  # fmt: skip
    if pairs:
        st.dataframe(pairs, hide_index=True, column_config={
            "A − B, points": st.column_config.NumberColumn(format="%+.1f"),
            "p, corrected": st.column_config.NumberColumn(format="%.3g"),
        })  # fmt: skip
        st.caption(
            "Paired on the same test samples: McNemar's exact test, corrected by Holm for the "
            "number of pairs; intervals by paired bootstrap. One seed each: for a claim about "
            "methods train three."
        )
    st.download_button("Table as CSV", figures.table_csv(rows), "compare.csv", "text/csv")


def maps(runs_: list[Run], which: str) -> None:
    """Two maps side by side, the second turned onto the first; one selection in both."""
    from contrastive_core.compare import aligned

    names = [r.name for r in runs_]
    pair = names[:2]
    if len(names) > 2:
        pair = st.multiselect("Two of them side by side", names, default=pair, max_selections=2)
    if len(pair) < 2:
        return
    a, b = (next(r for r in runs_ if r.name == n) for n in pair)
    share = st.slider("From the one map to the other", 0.0, 1.0, 0.0, 0.05)
    rows = session.embedding(a, "test", which)
    first, second = (session.read_map(r, "test", which, "pca") for r in (a, b))
    if rows is None or first is None or second is None:
        st.info("A map is still being made.")
        return
    turned = aligned(second["xy"], first["xy"])
    sprite, across = session.sprite(a, "test")
    for column, run, xy in zip(
        st.columns(2), (a, b), (first["xy"] + share * (turned - first["xy"]), turned), strict=True
    ):
        with column:
            st.markdown(f"**{run.name}**")
            picked = scatter(
                xy, rows.labels, rows.classes, content=session.digest(run.name, which, share),
                ids=rows.ids, title=run.name, sprite=sprite, across=across,
                selection=session.selection(), stamp=session.digest(tuple(session.selection())),
                height=400, key=f"compare-{run.name}",
            )  # fmt: skip
            if picked and picked != session.selection():
                session.select(picked)
                st.rerun()


def alike(made: Any) -> None:
    for title, matrix, reading in (
        ("Linear CKA", made.cka, "1: the same up to turning and scaling (debiased)"),
        (f"Shared neighbours at k = {made.k}", made.overlap, "share of neighbours in common"),
        ("Procrustes distance", made.procrustes, "0: one can be turned into the other"),
    ):
        st.markdown(f"**{title}**: {reading}.")
        rows = [
            {"run": n, **{m: round(float(v), 3) for m, v in zip(made.names, row, strict=True)}}
            for n, row in zip(made.names, matrix, strict=True)
        ]
        st.dataframe(rows, hide_index=True)


def disagree(runs_: list[Run], made: Any) -> None:
    if made.right is None:
        st.info("Without labels there is no right or wrong to disagree on.")
        return
    a, b = st.columns(2)
    names = made.names
    first = a.selectbox("Right in", names, 0)
    second = b.selectbox("wrong in", [n for n in names if n != first])
    i, j = names.index(first), names.index(second)
    rows = np.flatnonzero(made.right[i] & ~made.right[j])
    st.markdown(f"**{len(rows)} samples** that {first} has right and {second} wrong.")
    dataset = session.dataset_of(runs_[0], "test")
    at = {name: q for q, name in enumerate(dataset.ids)}
    columns = st.columns(10)
    for q, row in enumerate(rows[:40]):
        name = made.ids[row]
        label = dataset.classes[int(dataset.labels[at[name]])]
        columns[q % 10].image(
            session.picture(dataset.images, at[name]), f"{label} {name}", width="stretch"
        )
    listed = [{"id": made.ids[r]} for r in rows]
    st.download_button("These ids as CSV", figures.table_csv(listed), "disagree.csv", "text/csv")


def axis(ready: list[Run]) -> None:
    """Runs of one method over one knob: accuracy and uniformity."""
    methods = sorted({str(r.config.get("method")) for r in ready})
    a, b = st.columns(2)
    method = a.selectbox("Method", methods)
    knob = b.selectbox("Knob", ["temperature", "margin", "momentum", "queue", "dim", "epochs"])
    points = []
    for run in ready:
        config, record = run.config, session.scores(run)
        known = {**config, **config.get("method_knobs", {}), **config.get("loss_knobs", {})}
        if config.get("method") == method and record and known.get(knob) is not None:
            h, z = record["scores"]["h"], record["scores"]["z"]
            points.append((float(known[knob]), h.get("knn", {}).get("value"),
                           z.get("uniformity", {}).get("value")))  # fmt: skip
    points.sort()
    if len({p[0] for p in points}) < 2:
        st.info(f"At least two scored {method} runs with different {knob} are needed: see Sweeps.")
        return
    xs = [p[0] for p in points]
    st.plotly_chart(figures.curves({"kNN": (xs, [p[1] for p in points])}, knob, "kNN accuracy"))
    st.plotly_chart(figures.curves({"z": (xs, [p[2] for p in points])}, knob, "uniformity, nats"))


session.run(page)
