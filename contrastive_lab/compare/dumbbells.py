"""Dumbbell plot of the scores and classes of several spaces on one axis from 0 to 100 %. Each space has a marker shape.
The line between A and B is thick if the interval of their difference excludes 0."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from contrastive_lab import format, locale
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.locale import _


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


def draw(scores: Sequence[Dumbbell], classes: Sequence[Dumbbell], names: Sequence[str]) -> None:
    """Draw the rows of the scores and, below a line, those of the classes."""
    st.html(markup(scores, classes, names))


def markup(scores: Sequence[Dumbbell], classes: Sequence[Dumbbell], names: Sequence[str]) -> str:
    """Return the rows as HTML with escaped texts."""
    steps = "".join(f'<span style="left:{at}%">{at}</span>' for at in range(0, 101, 20))
    minus = f"{SHAPES[0]} − {SHAPES[1]}"
    axis = f'<div class="axis"><span class="unit">%</span><span class="track">{steps}</span><span>{minus}</span></div>'
    rows = [_row(row, names, "score", "first" if row.ticks and not q else "") for q, row in enumerate(scores)]
    rows += [_row(row, names, "", "" if q else "classes") for q, row in enumerate(classes)]
    key = _(" · ").join(f"{shape} {name}" for shape, name in zip(SHAPES, names, strict=False))
    key += _(" · thick: the interval of the difference excludes 0")
    return f'<div class="dumbbells">{axis}{"".join(rows)}<p>{html.escape(key)}</p></div>'


def _row(row: Dumbbell, names: Sequence[str], kind: str, look: str) -> str:
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
    marks = _marks(row, look == "first")
    return (
        f'<div class="{look} {"shown" * row.is_shown}"><span class="name {kind}" title="{title}">{title}</span>'
        f'<span class="track" role="img" aria-label="{spoken}">{marks}</span><span class="value">{value}</span></div>'
    )


def _marks(row: Dumbbell, is_labeled: bool) -> str:
    """Return the marks of a row as HTML: references as ticks, the line from A to B, and a dot for each space; A is on
    top."""
    marks = ""
    for q, (name, share) in enumerate(row.ticks.items()):
        text = html.escape(f"{locale.text(name)} {100 * share:.0f}")
        marks += f'<i class="tick" style="left:{100 * share:.1f}%" title="{text}"></i>'
        side = ' class="before"' if share > 0.5 else ""
        marks += f'<small{side} style="left:{100 * share:.1f}%">{text}</small>' if is_labeled and not q else ""
    a, b, *_others = (*row.values, None, None)
    if a is not None and b is not None:
        low, high = sorted((100 * a, 100 * b))
        marks += f'<i class="line" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
    for q, value in reversed([*enumerate(row.values)]):
        if value is not None:
            marks += f'<i class="dot {"abcdefgh"[q]}" style="left:{100 * value:.1f}%">{SHAPES[q]}</i>'
    return marks
