"""Dumbbell plot of the scores and classes of several spaces on one axis. It spans the values, and says where it begins.
Each space has a marker shape. The line between A and B is thick if the interval of their difference excludes 0."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from contrastive_lab import format, locale
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.locale import _

STEPS = {2: 10, 5: 25, 10: 50, 20: 100}  # points from one line of the axis to the next: the longest axis with them


@dataclass(frozen=True)
class Dumbbell:
    """A row of the plot: a share for each space, the difference of the first two with its interval, and the references'
    shares."""

    title: str
    values: Sequence[float | None]
    difference: float | None = None
    interval: tuple[float, float] | None = None
    ticks: dict[str, float] = field(default_factory=dict)  # the first is labeled

    @property
    def is_shown(self) -> bool:
        """Return whether the interval of the difference excludes 0."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)


@dataclass(frozen=True)
class ShareAxis:
    """The axis of all rows, in per cent."""

    low: int
    high: int
    step: int

    def place(self, share: float) -> float:
        """Return the position of a share in per cent of the axis."""
        return 100 * (100 * share - self.low) / (self.high - self.low)


def axis_of(rows: Sequence[Dumbbell]) -> ShareAxis:
    """Return the shortest axis that holds the values and references of all rows."""
    shares = [share for row in rows for share in (*row.values, *row.ticks.values()) if share is not None]
    least, most = round(100 * min(shares, default=0.0), 6), round(100 * max(shares, default=1.0), 6)
    for step, longest in STEPS.items():
        low, high = step * math.floor(least / step), step * math.ceil(most / step)
        if high - low <= longest:
            break
    if low == high:
        low, high = (low - step, high) if low else (0, step)
    return ShareAxis(low, high, step)


def draw(scores: Sequence[Dumbbell], classes: Sequence[Dumbbell], names: Sequence[str]) -> None:
    """Draw the rows of the scores and, below a line, those of the classes."""
    st.html(markup(scores, classes, names))


def markup(scores: Sequence[Dumbbell], classes: Sequence[Dumbbell], names: Sequence[str]) -> str:
    """Return the rows as HTML with escaped texts."""
    axis = axis_of([*scores, *classes])
    steps = "".join(
        f'<span style="left:{axis.place(at / 100):.1f}%">{at}</span>'
        for at in range(axis.low, axis.high + 1, axis.step)
    )
    begin = html.escape(_("%, from {low}").format(low=axis.low) if axis.low else "%")
    minus = f"{SHAPES[0]} − {SHAPES[1]}"
    head = f'<span class="unit">{begin}</span><span class="track">{steps}</span><span>{minus}</span>'
    rows = [_row(row, names, axis, "score", "first" if row.ticks and not q else "") for q, row in enumerate(scores)]
    rows += [_row(row, names, axis, "", "" if q else "classes") for q, row in enumerate(classes)]
    key = _(" · ").join(f"{shape} {name}" for shape, name in zip(SHAPES, names, strict=False))
    key += _(" · thick: the interval of the difference excludes 0")
    if axis.low:
        key += _(" · the axis begins at {low} %, not at 0").format(low=axis.low)
    grid = f"--step: {100 * axis.step / (axis.high - axis.low):.2f}%"
    inside = f'<div class="axis">{head}</div>{"".join(rows)}<p>{html.escape(key)}</p>'
    return f'<div class="dumbbells" style="{grid}">{inside}</div>'


def _row(row: Dumbbell, names: Sequence[str], axis: ShareAxis, kind: str, look: str) -> str:
    """Return one row as HTML: its name, the dots on their track, and the difference of A and B in points."""
    title, value = html.escape(locale.text(row.title)), ""
    if row.difference is not None:
        value = f"{100 * row.difference:+.1f}".replace("-", "−")
        value = value.lstrip("+−") if float(value.lstrip("+−")) == 0 else value
    known = [(name, share) for name, share in zip(names, row.values, strict=True) if share is not None]
    parts = [f"{name} {100 * share:.1f} %" for name, share in [*known, *row.ticks.items()]]
    if row.interval is not None and row.difference is not None:
        ends = format.interval((100 * row.interval[0], 100 * row.interval[1]), ".1f")
        text = _("difference {points} points (95 %: {interval})")
        parts.append(text.format(points=f"{100 * row.difference:+.1f}", interval=ends))
    spoken = html.escape(f"{locale.text(row.title)}: {', '.join(map(locale.text, parts))}")
    marks = _marks(row, axis, look == "first")
    return (
        f'<div class="{look} {"shown" * row.is_shown}"><span class="name {kind}" title="{title}">{title}</span>'
        f'<span class="track" role="img" aria-label="{spoken}">{marks}</span><span class="value">{value}</span></div>'
    )


def _marks(row: Dumbbell, axis: ShareAxis, is_labeled: bool) -> str:
    """Return the marks of a row as HTML: references as ticks, the line from A to B, and a dot for each space; A is on
    top."""
    marks = ""
    for q, (name, share) in enumerate(row.ticks.items()):
        text = html.escape(f"{locale.text(name)} {100 * share:.0f}")
        place = axis.place(share)
        marks += f'<i class="tick" style="left:{place:.1f}%" title="{text}"></i>'
        side = ' class="before"' if place > 50 else ""
        marks += f'<small{side} style="left:{place:.1f}%">{text}</small>' if is_labeled and not q else ""
    a, b, *_others = (*row.values, None, None)
    if a is not None and b is not None:
        low, high = sorted((axis.place(a), axis.place(b)))
        marks += f'<i class="line" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
    for q, value in reversed([*enumerate(row.values)]):
        if value is not None:
            marks += f'<i class="dot {"abcdefgh"[q]}" style="left:{axis.place(value):.1f}%">{SHAPES[q]}</i>'
    return marks
