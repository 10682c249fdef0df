"""Changes of a run's settings during training, as pages show them: text, marks on curves, and epoch names."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from contrastive_core.runs.changes import Change
from contrastive_lab.locale import _
from contrastive_lab.setting_names import shown_name

SIGNS = {"loss.temperature": "τ"}
LABELED = 4  # marks of a figure that have a label, at most
ROOM = 0.06  # of the axis, between two labels

Marks = Mapping[str, Sequence[tuple[float, str]]]  # by the axis, step or epoch: where, and what changed


def sign(name: str) -> str:
    """Return a short name of a setting."""
    return SIGNS.get(name) or shown_name(name.removeprefix("loss."))


def text(change: Change) -> str:
    """Describe a change, for example "τ 0.2 → 0.05"."""
    return f"{sign(change['name'])} {change['from']:.4g} → {change['to']:.4g}"


def in_words(changes: Sequence[Change]) -> str:
    """Describe all changes with their steps in one line; "" for none."""
    one = _("{change} at step {step}")
    return ", ".join(one.format(change=text(c), step=f"{c['step']:,}") for c in changes)


def marks_of(changes: Sequence[Change], epochs: Sequence[Mapping[str, Any]]) -> Marks:
    """Return the marks of changes on curves over steps and over epochs. Args: epochs: lines of a run's metrics."""
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
    """Describe the changes in each epoch that has ended, from its first to its last value. Args: epochs: lines of a
    run's metrics.
    """
    found: dict[int, dict[str, Change]] = {}
    for change in changes:
        if (epoch := next((line["epoch"] for line in epochs if line["step"] >= change["step"]), None)) is not None:
            known = found.setdefault(epoch, {})
            first = known.get(change["name"], change)["from"]
            known[change["name"]] = {**change, "from": first}
    return {epoch: " · ".join(map(text, known.values())) for epoch, known in found.items()}


def mark(figure: Any, places: Sequence[tuple[float, str]]) -> None:
    """Draw thin vertical lines on a figure at the changes; the newest ones have texts if there is room."""
    ends = [trace.x[-1] for trace in figure.data if trace.x is not None and len(trace.x)]
    end = max([*ends, *(x for x, _what in places)], default=0)
    free, labels = math.inf, list[dict[str, Any]]()
    for x, what in reversed(places):
        if free - x >= ROOM * end and len(labels) < LABELED:
            free = x
            label = {"x": x, "y": 1, "yref": "y domain", "text": what, "textangle": -90, "showarrow": False}
            labels.append({**label, "xanchor": "right", "yanchor": "top"})
    style = {"type": "line", "y0": 0, "y1": 1, "yref": "y domain", "line": {"color": "gray", "width": 1}}
    figure.layout.shapes += tuple({**style, "x0": x, "x1": x} for x, _what in places)
    figure.layout.annotations += tuple(labels)
