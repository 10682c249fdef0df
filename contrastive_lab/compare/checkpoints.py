"""Comparison of two checkpoints of one run with two towers: recall and modality gap of each, and the changes."""

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.score import scores_from_json
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.spaces.results import Result
from contrastive_lab import format, query_params
from contrastive_lab.figures import draw_definitions, draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.train import curves

VIEW = N_("Checkpoints")
GAP = "modality_gap"
FELL = N_("From epoch {a} to {b} the modality gap fell by {by} (95 % interval {low} to {high}).")
ROSE = N_("From epoch {a} to {b} the modality gap rose by {by} (95 % interval {low} to {high}).")
SAME = N_("From epoch {a} to {b} the modality gap did not change significantly (95 % interval {low} to {high}).")


def with_towers(names: list[str]) -> dict[str, Run]:
    """Return the runs with two towers among the named ones, by name."""
    found: dict[str, Run] = {}
    for name in names:
        if ":" not in name and (run := runs.load(name)).has_towers:
            found[name] = run
    return found


def panel(names: list[str]) -> None:
    """Draw the comparison of two checkpoints of a run with two towers; nothing if no run has them."""
    candidates = with_towers(names)
    if not candidates:
        return
    st.subheader(_("Two checkpoints of one run"))
    name = next(iter(candidates))
    if len(candidates) > 1:
        name = query_params.one_of(st.selectbox, _("Run"), candidates, name="checkpoints")
    run = candidates[name]
    epochs = run.snapshots()
    if len(epochs) < 2:
        text = _("{name} keeps {n} of the two checkpoints needed. Train with snapshot_every=1 to keep one per epoch.")
        st.info(format.plain(text.format(name=name, n=len(epochs))))
        return
    with st.container(horizontal=True):
        before = _epoch(_("From epoch"), epochs[:-1], "from", epochs[0], name)
        after = _epoch(_("to epoch"), [e for e in epochs if e > before], "to", epochs[-1], name)
    values = {"run": name, "epochs": [before, after], "weights": run.weights_hash() if run.weights.exists() else ""}
    if result := answer_or_wait("checkpoints", values, message("Comparing the checkpoints")):
        if GAP in (differences := result.meta["differences"]):
            by, low, high = differences[GAP]
            said = FELL if high < 0 else ROSE if low > 0 else SAME
            ends = (-high, -low) if high < 0 else (low, high)
            numbers = {"by": f"{abs(by):.3f}", "low": f"{ends[0]:.3f}", "high": f"{ends[1]:.3f}"}
            st.markdown(format.plain(_(said).format(a=before, b=after, **numbers)))
        head = _("epoch {epoch}")
        changes(result, head.format(epoch=before), head.format(epoch=after))
        text = _(
            "Computed on {n} training images and their {m} captions, the same at every epoch. Intervals of "
            "differences are over images, each with its captions. Recall differences are in points."
        )
        images, captions = result.meta["n"]
        st.caption(text.format(n=f"{images:,}", m=f"{captions:,}"))
    curves.draw(name, MetricsReader(run.path / "metrics.jsonl").update().epochs)


def _epoch(label: str, epochs: list[int], name: str, default: int, run: str) -> int:
    return query_params.one_of(st.selectbox, label, epochs, name=name, default=default, key=f"epoch-{name}-{run}")


def changes(result: Result, before: str, after: str) -> None:
    """Draw a table of each figure of the two towers before and after, with its difference."""
    scores = [scores_from_json(result.meta["scores"][which]) for which in ("before", "after")]
    rows = []
    for name, (value, low, high) in result.meta["differences"].items():
        one, two = (scored[name] for scored in scores)
        unit, digits = (100, ".1f") if one.unit == "share" else (1, ".3f")
        rows.append(
            {
                "score": _(one.title),
                before: format.figure_of(one),
                after: format.figure_of(two),
                "difference": f"{unit * value:+{digits}}",
                "95 %": format.interval((unit * low, unit * high), digits),
            }
        )
    draw_table(rows, hide_index=True, width="stretch", height="content")
    with st.expander(_("Meaning of the scores")):
        draw_definitions(scores[1].values())
