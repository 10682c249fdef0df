"""The first scores of a space as one strip: a scale for each over its full range, with the interval
and what raw pixels and an untrained encoder have. Each opens to how it is read."""

from __future__ import annotations

import html

import streamlit as st

from contrastive_core.records.evaluation import SOURCES
from contrastive_core.records.score import Score, Scores
from contrastive_lab import format, locale
from contrastive_lab.locale import N_, _
from contrastive_lab.recordings.place import LAYER_TITLES

FIRST = ("knn", "linear_probe", "alignment", "uniformity", "rankme")
UNLABELED = ("uniformity", "rankme", "hubness", "neighbor_stability")
NAMES = {
    "knn": N_("kNN accuracy"),
    "linear_probe": N_("Linear probe"),
    "rankme": N_("Effective rank"),
    "neighbor_stability": N_("Stable neighbors"),
}
RANGES = {  # uniformity: of rows that fill a sphere of many dimensions to one point
    "knn": (0.0, 1.0),
    "linear_probe": (0.0, 1.0),
    "alignment": (0.0, 4.0),
    "uniformity": (-4.0, 0.0),
    "hubness": (0.0, 5.0),
    "neighbor_stability": (0.0, 1.0),
}
MARKS = {source: SOURCES[source] for source in ("raw", "random")}
STYLE = """<style>
.scores { container-type: inline-size; }
.scores details { border-bottom: 1px solid color-mix(in srgb, currentcolor 14%, transparent); }
.scores summary { display: grid; align-items: center;
  grid-template-columns: minmax(8rem, 2fr) minmax(4rem, 3fr) 3.9rem; gap: 0 0.6rem;
  padding: 0.18rem 0; cursor: pointer; list-style: none;
  font-size: 0.9rem; line-height: 1.25; }
.scores summary::-webkit-details-marker { display: none; }
.scores summary:focus-visible { outline: 2px solid #3B7DD8; outline-offset: 2px; }
.scores .name::after { content: "?"; display: inline-block; margin-left: 0.35rem; width: 1rem;
  border: 1px solid currentcolor; border-radius: 50%; font-size: 0.7rem; line-height: 0.9rem;
  text-align: center; }
.scores .value { text-align: right; font-weight: 600; font-variant-numeric: tabular-nums; }
.scores .scale { position: relative; height: 1.5rem; margin: 0 0.35rem; }
.scores .scale::before { content: ""; position: absolute; inset: calc(50% - 1px) 0 auto;
  height: 2px; background: color-mix(in srgb, currentcolor 32%, transparent); }
.scores i { position: absolute; box-sizing: border-box; }
.scores .interval { top: calc(50% - 4px); height: 8px; min-width: 2px; border-radius: 2px;
  background: #3B7DD880; }
.scores .own { width: 4px; height: 14px; margin-left: -2px; top: calc(50% - 7px);
  border-radius: 2px; background: #3B7DD8; }
.scores .raw, .scores .random { width: 0; border-left: 2px solid currentcolor; height: 0.75rem;
  margin-left: -1px; }
.scores .raw { top: 0; }
.scores .random { bottom: 0; border-left-style: dotted; border-left-width: 3px; }
.scores .off::after { content: "›"; position: absolute; left: 3px; top: -0.35rem; }
@container (max-width: 300px) {
  .scores summary { grid-template-columns: 1fr auto; }
  .scores .scale { grid-row: 2; grid-column: 1 / -1; }
}
.scores p { font-size: 0.85rem; margin: 0 0 0.5rem; white-space: pre-line; }
.scores .key { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem; font-size: 0.8rem;
  padding-top: 0.35rem; }
.scores .key span { position: relative; padding-left: 0.9rem; }
.scores .key i { left: 0.35rem; }
.scores .key .raw, .scores .key .random { top: 0.2rem; bottom: auto; }
</style>"""


def draw(scores: dict[str, Scores], how: str = "", other: str = "") -> None:
    """Scores by source ("own", "raw", "random", "other"); other: the layer of these."""
    own = scores["own"]
    names = _first(own)
    if not names:
        return
    st.html(STYLE + markup(scores, other))
    if names[0] != FIRST[0] and "knn" in own and (why := own["knn"].missing):
        st.caption(_("{why}; so the scores that need no labels are shown.").format(why=format.plain(why)))
    elif how:
        st.caption(locale.text(how))


def markup(scores: dict[str, Scores], other: str = "") -> str:
    """The strip as HTML, its texts escaped; arguments as of `draw`."""
    names = _first(scores["own"])
    rows = "".join(_row(name, scores, other) for name in names)
    return f'<div class="scores">{rows}{_key(names, scores)}</div>'


def _first(own: Scores) -> list[str]:
    """The names of the scores that are shown: others where there are no labels."""
    labeled = any(n in own and own[n].value is not None for n in FIRST[:2])
    return [n for n in (FIRST if labeled else UNLABELED) if n in own]


def _row(name: str, scores: dict[str, Scores], other: str) -> str:
    """One score: its name, scale and figure, and below them, once it is opened, how it is read."""
    score = scores["own"][name]
    title = NAMES.get(name, score.title)
    parts = [*_beside(name, scores), *_read(name, score, scores, other)]
    lines = "\n".join(map(_said, parts))
    return (
        f'<details name="score"><summary><span class="name">{_said(title)}</span>'
        f"{_scale(name, scores)}"
        f'<span class="value">{html.escape(_figure(score))}</span></summary>'
        f"<p>{lines}</p></details>"
    )


def _said(text: str) -> str:
    """A text in the language of the page, as HTML."""
    return html.escape(locale.text(text))


def _scale(name: str, scores: dict[str, Scores]) -> str:
    """The line from one end of the score's range to the other, and the marks on it."""
    score, ends = scores["own"][name], _range(name, scores["own"][name])
    if score.value is None or ends is None:
        return '<span class="scale"></span>'
    marks = []
    if score.interval is not None:
        low, high = (_place(v, ends) for v in score.interval)
        marks.append(f'<i class="interval" style="left:{low:.2f}%;width:{high - low:.2f}%"></i>')
    for source in MARKS:
        beside = scores.get(source, {}).get(name)
        if beside is not None and beside.value is not None:
            marks.append(_mark(source, beside.value, ends))
    marks.append(_mark("own", score.value, ends))
    said = "; ".join(map(_said, _beside(name, scores)))
    return f'<span class="scale" role="img" aria-label="{said}">{"".join(marks)}</span>'


def _mark(kind: str, value: float, ends: tuple[float, float]) -> str:
    off = " off" if value > ends[1] else ""
    return f'<i class="{kind}{off}" style="left:{_place(value, ends):.2f}%"></i>'


def _place(value: float, ends: tuple[float, float]) -> float:
    """Where a value stands, in per cent of the scale."""
    return 100 * min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))


def _range(name: str, score: Score) -> tuple[float, float] | None:
    """The lowest and the highest that a score can have; of a rank the width."""
    if name == "rankme":
        width = score.number("width")
        return (1.0, width) if width and width > 1 else None
    return RANGES.get(name)


def _figure(score: Score) -> str:
    return format.figure_of(score).replace(" %", "\u00a0%")


def _beside(name: str, scores: dict[str, Scores]) -> list[str]:
    """Its interval, and what raw pixels and the untrained encoder have."""
    score = scores["own"][name]
    interval = format.interval_of(score)
    said = [_("95 % interval: {interval}").format(interval=interval)] if interval else []
    for source, text in MARKS.items():
        beside = scores.get(source, {}).get(name)
        if beside is not None and beside.value is not None:
            said.append(f"{_(text)}: {_figure(beside)} {locale.text(beside.approximation)}".rstrip())
    return said


def _read(name: str, score: Score, scores: dict[str, Scores], other: str) -> list[str]:
    """What the figure is of, and how it is read."""
    said = []
    beside = scores.get("other", {}).get(name)
    if other in LAYER_TITLES and beside is not None and beside.value is not None:
        said.append(f"{_(LAYER_TITLES[other])}: {_figure(beside)}")
    if score.value is None:
        said.append(score.missing)
    if name == "knn" and (k := score.number("k")) and (tau := score.number("temperature")):
        said.append(_("The {k} nearest vote, at τ {tau}.").format(k=f"{k:g}", tau=f"{tau:g}"))
    if score.approximation:
        said.append(score.approximation)
    if score.value is not None and (ends := _range(name, score)):
        said.append(_("The scale goes from {low} to {high}.").format(low=f"{ends[0]:g}", high=f"{ends[1]:g}"))
    return [*said, score.reading]


def _key(names: list[str], scores: dict[str, Scores]) -> str:
    """What the marks are, where there are others than the space's own."""
    has_interval = any(scores["own"][n].interval is not None for n in names)
    own = _("this one, with its 95 % interval") if has_interval else _("this one")
    known = {"own": own} | {k: v for k, v in MARKS.items() if scores.get(k)}
    if len(known) == 1:
        return ""
    marks = "".join(f'<span><i class="{kind}"></i>{_said(text)}</span>' for kind, text in known.items())
    return f'<div class="key">{marks}</div>'
