"""Changes of a run while it trained, as pages show them: words, marks on curves, and names of epochs."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from contrastive_core.runs.changes import Change
from contrastive_lab.locale import _
from contrastive_lab.setting_names import shown_name

SIGNS = {"loss.temperature": "τ"}
LABELED = 4  # newest marks of a figure that have a label

Marks = Mapping[str, Sequence[tuple[float, str]]]  # by the axis, step or epoch: where, and what changed


def sign(name: str) -> str:
    """A setting in a word."""
    return SIGNS.get(name) or shown_name(name.removeprefix("loss."))


def text(change: Change) -> str:
    """τ 0.2 → 0.05"""
    return f"{sign(change['name'])} {change['from']:.4g} → {change['to']:.4g}"


def in_words(changes: Sequence[Change]) -> str:
    """Every change with its step, in a line; "" for none."""
    one = _("{change} at step {step}")
    return ", ".join(one.format(change=text(c), step=f"{c['step']:,}") for c in changes)


def marks_of(changes: Sequence[Change], epochs: Sequence[Mapping[str, Any]]) -> Marks:
    """Where curves over steps, and those over epochs, have marks. Args: epochs: lines of a run's metrics."""
    ends = [(0, 0), *((line["step"], line["epoch"]) for line in epochs)]
    steps = [step for step, _epoch in ends]

    def place(step: int) -> float:
        at = min(bisect_left(steps, step), len(ends) - 1)
        (before, first), (after, last) = ends[max(0, at - 1)], ends[at]
        return first + (last - first) * min(1.0, (step - 1 - before) / max(1, after - before))

    return {
        "step": [(c["step"], text(c)) for c in changes],
        "epoch": [(place(c["step"]), text(c)) for c in changes if len(ends) > 1],
    }


def by_epoch(changes: Sequence[Change], epochs: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """What changed in each epoch that has ended. Args: epochs: lines of a run's metrics."""
    found: dict[int, str] = {}
    for change in changes:
        if (epoch := next((line["epoch"] for line in epochs if line["step"] >= change["step"]), None)) is not None:
            found[epoch] = " · ".join(filter(None, [found.get(epoch), text(change)]))
    return found


def mark(figure: Any, places: Sequence[tuple[float, str]]) -> None:
    """Thin lines on a figure where something changed, the newest with their texts."""
    for number, (x, what) in enumerate(places):
        is_labeled = number >= len(places) - LABELED
        label = {"annotation_text": what, "annotation_textangle": -90, "annotation_position": "top left"}
        figure.add_vline(x, line={"color": "gray", "width": 1}, **(label if is_labeled else {}))
