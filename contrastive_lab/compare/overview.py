"""Compare's first view on one screen: the verdict with its dumbbells, the maps, and a strip of disagreements.

Dumbbells show scores and classes on one axis from 0 to 100 %: a value of each space, told apart by shape, and the line
between A and B, thick where the interval of their difference excludes 0.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

import streamlit as st

from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.evaluation import name_of
from contrastive_core.runs.run import Run
from contrastive_core.spaces.space import Space
from contrastive_lab import format, guard, locale, query_params, stage
from contrastive_lab.compare import maps, score_tables, space_picker, tower_recall, verdict
from contrastive_lab.compare.disagreements import ComparedSamples, strip
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.locale import N_, _


@dataclass(frozen=True)
class Dumbbell:
    """A row: a share of each space, the difference of the first two with its interval, and the shares of references."""

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
    """The rows of the scores and, below a line, those of the classes."""
    st.html(markup(scores, classes, names))


def markup(scores: Sequence[Dumbbell], classes: Sequence[Dumbbell], names: Sequence[str]) -> str:
    """The rows as HTML, their texts escaped."""
    steps = "".join(f'<span style="left:{at}%">{at}</span>' for at in range(0, 101, 20))
    axis = f'<div class="axis"><span></span><span class="track">{steps}</span><span>%</span></div>'
    rows = [_row(row, names, "score", "first" if row.ticks and not q else "") for q, row in enumerate(scores)]
    rows += [_row(row, names, "", "" if q else "classes") for q, row in enumerate(classes)]
    key = _(" · ").join(f"{shape} {name}" for shape, name in zip(SHAPES, names, strict=False))
    key += _(" · thick: the interval of the difference excludes 0")
    return f'<div class="dumbbells">{axis}{"".join(rows)}<p>{html.escape(key)}</p></div>'


def _row(row: Dumbbell, names: Sequence[str], kind: str, look: str) -> str:
    """One row: its name, the dots on their track, and the difference of A and B in points."""
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
    """References as ticks, the line from A to B, and a dot for each space; A lies above all others."""
    marks = ""
    for q, (name, share) in enumerate(row.ticks.items()):
        text = html.escape(f"{locale.text(name)} {100 * share:.0f}")
        marks += f'<i class="tick" style="left:{100 * share:.1f}%" title="{text}"></i>'
        marks += f'<small style="left:{100 * share:.1f}%">{text}</small>' if is_labeled and not q else ""
    a, b, *_others = (*row.values, None, None)
    if a is not None and b is not None:
        low, high = sorted((100 * a, 100 * b))
        marks += f'<i class="line" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
    for q, value in reversed([*enumerate(row.values)]):
        if value is not None:
            marks += f'<i class="dot {"abcdefgh"[q]}" style="left:{100 * value:.1f}%">{SHAPES[q]}</i>'
    return marks


NAMES = {"knn": N_("kNN accuracy"), "linear_probe": N_("Linear probe")}
CLASSES = 10  # rows, those with the largest differences; the tables have all


def show(spaces: list[Space], samples: ComparedSamples | None) -> None:
    """The three answers; maps alone while nothing is known of scores."""
    picture, side = stage.columns(is_first=False)
    with side:
        space_picker.say_left_out()
        with guard.on_its_own(_("Candidates"), guard.UNREADABLE):
            if samples is not None:
                _answers(spaces, samples)
            else:
                st.header(_("The verdict comes in a moment"))
                st.caption(_("The scores of each run are taken once. The maps do not wait for them."))
                if verdict.known(spaces, waits=True) is not None:
                    st.rerun()  # it was made while the toolbar was drawn
    with picture, guard.on_its_own(_("Candidates")):
        with st.container(key="compare-maps", gap=None):
            content = maps.maps(spaces, samples)
        if content and samples is not None:
            with st.container(key="compare-strip", gap="small"):
                strip(samples, content)


def _answers(spaces: list[Space], samples: ComparedSamples) -> None:
    """The verdict, scores and classes, how alike they are, and the next step."""
    comparison, metric = samples.comparison, samples.metric
    with st.container(key="compare-verdict", gap="xsmall"):
        verdict.draw(spaces, comparison, metric)
    if metric:
        differing = classes(samples)
        draw(scores(spaces, comparison), differing[:CLASSES], comparison.names)
        if len(differing) > CLASSES:
            text = _("{more} more classes are in the tables.")
            st.caption(text.format(more=len(differing) - CLASSES))
    tower_recall.show(comparison.names, spaces)
    st.markdown(alike(comparison))
    verdict.with_scores(spaces, comparison)  # the linear probe's row comes with them
    label = str(_("See how alike they are"))
    if metric:
        label = _("Look at the {n} disagreements").format(n=f"{samples.one_right:,}")
    view = "Disagreements" if metric else "Similarity"
    with st.container(key="compare-next"):
        st.button(label, type="primary", width="stretch", on_click=open_view, args=(view,))


def open_view(view: str) -> None:
    """Show a view of the page, for a button's `on_click`."""
    query_params.choose("compare-view", view)


def alike(comparison: Comparison) -> str:
    """Describe the similarity of A and B in one line."""
    text = _("CKA {cka} · they share {share} % of neighbors")
    return text.format(cka=f"{comparison.cka[0, 1]:.2f}", share=f"{100 * comparison.overlap[0, 1]:.0f}")


def scores(spaces: list[Space], comparison: Comparison) -> list[Dumbbell]:
    """A row for each accuracy, with the references."""
    beside, rows = score_tables.scores_of_references(spaces), []
    for metric, values in comparison.accuracy.items():
        pair = verdict.contrast(comparison, metric, 0, 1)
        ticks = {
            name_of(source): value
            for source, found in beside.items()
            if metric in found and (value := found[metric].value) is not None
        }
        rows.append(
            Dumbbell(NAMES.get(metric, comparison.titles[metric]), values, pair.difference, pair.interval, ticks)
        )
    return rows


def classes(samples: ComparedSamples) -> list[Dumbbell]:
    """A row for each class, the largest difference between A and B first; none without labels."""
    comparison, metric = samples.comparison, samples.metric
    of_all = [
        {d.label: d.accuracies[1] for d in comparison.by_class(metric, 0, q)} for q in range(len(comparison.names))
    ]
    return [
        Dumbbell(samples.class_name(d.label), [one[d.label] for one in of_all], d.value, d.interval)
        for d in comparison.by_class(metric, 0, 1)
    ]


def without_pair(names: list[str]) -> None:
    """Draw the stage for fewer than two spaces."""
    space_picker.say_left_out()
    if not names:
        text = _("Comparing needs two runs with weights, or recordings. Train another one.")
        with maps.empty(_("Nothing to compare yet"), text):
            st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return
    if not tower_recall.with_towers(names):
        maps.empty(_("One is not enough"), _("Choose at least two."))
        return
    with stage.below():
        st.info(_("Choose at least two, or compare two checkpoints below."))
        tower_recall.panel(names)


def without_common(reason: str, names: list[str], ready: list[Run]) -> None:
    """Say that the runs have different data sets, and offer a run that A can be compared with."""
    space_picker.say_left_out()
    with maps.empty(_("No samples in common"), reason):
        data = {run.name: run.data_key for run in ready}
        other = next((run for run in data if run != names[0] and data[run] == data.get(names[0])), None)
        if other is not None:
            label = _("Compare {a} and {b}").format(a=names[0], b=other)
            st.button(format.plain(label), type="primary", on_click=space_picker.put, args=([names[0], other],))
