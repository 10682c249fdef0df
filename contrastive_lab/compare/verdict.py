"""The verdict of Compare: the best space, its lead and the reason, with a warning if test labels look wrong; and its
dumbbells, a plot of the scores and classes of several spaces on one axis. The axis spans the values, and says where it
begins. Each space has a marker shape. The line between A and B is thick if their difference is significant."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np
import streamlit as st

from contrastive_core.compare.comparison import CLAIMED, MARGIN, Comparison, comparison_request
from contrastive_core.compare.evaluation import SOURCES, name_of
from contrastive_core.compare.verdicts import ACCURACIES, Contrast
from contrastive_core.engine import jobs
from contrastive_core.samples.sample_table import SampleRequest, request_of
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale
from contrastive_lab.compare import score_tables, space_picker
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.compare.space_picker import SHAPES, A, B
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.samples.findings import Findings, recalibrated
from contrastive_lab.samples.lists import START
from contrastive_lab.setting_names import changes_in_words

NAMES = {"knn": N_("kNN accuracy"), "linear_probe": N_("Linear probe")}
CLASSES = 10  # in the dumbbells
STEPS = {2: 10, 5: 25, 10: 50, 20: 100}  # points from one line of the axis to the next: the longest axis with them


def request(spaces: list[Space], every_score: bool = True) -> Values:
    """Return the request for a comparison, with the relevance judgments that the page names."""
    return comparison_request(spaces, every_score, space_picker.judgments() or "")


def known(spaces: list[Space], waits: bool = False) -> Comparison | None:
    """Return the comparison; None while it is computed. `waits`: compute it and show the progress, first without
    untrained encoder and pixels."""
    first = request(spaces, every_score=False)
    result = cache.result("comparison", request(spaces)) or cache.result("comparison", first)
    if result is None and waits:
        result = answer_or_wait("comparison", first, message("Comparing"))
    return None if result is None else Comparison.of(result.meta, result.arrays)


def is_coming(spaces: list[Space]) -> bool:
    """Return whether the comparison is being computed; it is not after a failure."""
    return jobs.analysis("comparison", request(spaces, every_score=False)).is_running()


def draw(spaces: list[Space], comparison: Comparison, metric: str) -> None:
    """Draw the verdict with the difference; its help gives the basis."""
    head, below = headline(comparison, metric)
    seeds = [text for text in comparison.seeds.values() if text]  # of methods that have three each
    said = [*seeds, *(list(comparison.verdicts.values()) or [comparison.verdict])]
    if metric:
        template = _("{score}, {n} samples") if metric in ACCURACIES else _("{score}, {n} queries")
        st.caption(template.format(score=locale.text(comparison.titles[metric]), n=f"{comparison.n_judged:,}"))
    st.header(head)
    st.caption(below, help="\n\n".join([*map(format.plain, [*said, CLAIMED]), _rests_on(comparison, spaces)]))
    if metric and metric not in ACCURACIES:
        st.caption(format.plain(locale.text(contrast(comparison, metric, 0, 1).against(MARGIN))))
    for text in seeds:
        st.markdown(format.plain(text))
    for shape, space in zip(SHAPES, spaces, strict=False):
        if (run := space.run) and (text := changes_in_words(run.changes())):
            st.caption(format.plain(_("{shape} changed while it trained: {changes}").format(shape=shape, changes=text)))
    _warn(spaces, comparison)


def headline(comparison: Comparison, metric: str) -> tuple[str, str]:
    """Return the best space with its marker and its lead over the next, and the interval of the lead. Without a
    significant lead the difference keeps its sign: the first space minus the second, as in the rows below."""
    if not metric:
        share = f"{100 * comparison.overlap[0, 1]:.0f}"
        return _("They share {share} % of neighbors").format(share=share), locale.text(comparison.verdict)
    first, second = sorted(np.argsort(comparison.accuracy[metric])[::-1][:2].tolist())
    lead, shapes = contrast(comparison, metric, first, second), (SHAPES[first], SHAPES[second])
    if lead.sign < 0:
        lead, shapes = lead.of(lead.second), shapes[::-1]
    low, high = (f"{100 * end:.1f}".replace("-", "−") for end in lead.interval or (0.0, 0.0))
    points = f"{100 * lead.difference:.1f}".replace("-0.0", "0.0").replace("-", "−")
    values = {"first": shapes[0], "second": shapes[1], "points": points}
    template = _("{low} to {high} (95 % interval over samples, not seeds)")
    if metric not in ACCURACIES:
        template = _("{low} to {high} (95 % interval over queries, not seeds)")
    below = template.format(low=low, high=high)
    if lead.sign:
        if len(comparison.names) > 2:
            below = _("{first} over {second}: {interval}").format(**values, interval=below)
        return _("{first} wins by {points} points").format(**values), below
    below = _("{first} − {second}: {points} points, {interval}").format(**values, interval=below)
    if lead.interval is not None and lead.interval[0] * lead.interval[1] > 0:  # no contradiction: the test decides too
        tests = len(comparison.differences)
        template = ngettext("{text}. p = {p} in one test.", "{text}. p = {p}, corrected for {n} tests.", tests)
        below = template.format(text=below, p=f"{lead.p:.2g}", n=tests)
    return _("No significant difference"), below


def contrast(comparison: Comparison, metric: str, first: int, second: int) -> Contrast:
    """Return the difference between two spaces, identified by index because names may be equal."""
    pairs = combinations(range(len(comparison.names)), 2)
    differences = (d for d in comparison.differences if d.metric == metric)
    return dict(zip(pairs, differences, strict=True))[first, second].contrast


def with_scores(spaces: list[Space], comparison: Comparison) -> Comparison | None:
    """Return the comparison with all scores and tests; None while they are computed."""
    if comparison.scores:
        return comparison
    result = answer_or_wait("comparison", request(spaces), message("Computing every score"))
    return None if result is None else Comparison.of(result.meta, result.arrays)


def _rests_on(comparison: Comparison, spaces: list[Space]) -> str:
    """Describe the samples, features, labels and variation behind the verdict."""
    n = comparison.n_judged
    whole = max((len(rows) for s in spaces if (rows := cache.embedding(s))), default=n)
    template = _("Judged on {n} samples of {whole}. ") if n < whole else _("Judged on {n} samples. ")
    text = template.format(n=f"{n:,}", whole=f"{whole:,}")
    if n < whole:
        text += _("The other rows are used for training, have no label, or are not in every space. ")
        text += _("Recall and the modality gap are computed on all rows of each space. ")
    layer = next((s.layer for s in spaces if not s.is_loaded), None)
    text += _("Features: {sources}. ").format(sources=_(SOURCES[layer])) if layer else ""
    if with_labels := [s.title for s in spaces if (run := s.run) and score_tables.needs_labels(run)]:
        names = format.plain(", ".join(with_labels))
        text += _("Trained with labels: {names}. ").format(names=names)
    changes = ("exclude", "relabel")
    if changed := [s.title for s in spaces if (run := s.run) and any(map(run.config.get, changes))]:
        names = format.plain(", ".join(changed))
        text += _("Trained with other labels or fewer images: {names}. ").format(names=names)
    text += _("Intervals contain the variation over samples, not between seeds.")
    return f"{text} {score_tables.images_of_references(spaces)}".strip()


def _warn(spaces: list[Space], comparison: Comparison) -> None:
    """Warn if undecided suspects among scored test labels could change the order of the runs."""
    runs = [run for space in spaces if (run := space.run) and run.weights.exists()]
    requests = (request_of(run.name, "test") for run in runs)
    request = next((r for r in requests if r.path().exists()), None)
    if request is None or comparison.right is None:
        return
    suspects = undecided(request)
    doubtful = np.isin(np.array(comparison.ids), suspects)
    if not any(order_may_change(right, doubtful) for right in comparison.correct.values()):
        return
    text = _(
        "Some test labels are suspect and have not been reviewed. If they are wrong, the order of these runs can "
        "change."
    )
    st.warning(text, icon=":material/label:")
    address = {"run": request.name, "split": "test", "list": "mislabeled", "cut": str(START), "sample": suspects[0]}
    st.page_link("pages/samples.py", label=_("Review them"), icon=":material/image_search:", query_params=address)


def undecided(request: SampleRequest) -> list[str]:
    """Return the ids of undecided samples whose label is more probably wrong than right, in order."""
    table = cache.sample_table(request, str(request.path()))
    findings, _audits = recalibrated(Findings((request,), (table,)))
    rows, score = table.ranked("mislabeled"), findings.tables[0].score("mislabeled")
    return [name for row in rows[score[rows] > START].tolist() if (name := findings.id(row)) not in findings.marked]


def order_may_change(right: np.ndarray, doubtful: np.ndarray) -> bool:
    """Return whether corrected labels of the `doubtful` samples (n) could undo a run's lead over another, from the
    correctness `right` (runs, n).

    If only the leader is right on a sample, the lead can fall by two; if both are wrong, by one. If both are right,
    they gave the same answer and would be wrong together."""
    is_right = np.asarray(right) > 0.5
    for a, b in permutations(is_right, 2):
        lead = int(a.sum()) - int(b.sum())
        fall = 2 * int((a & ~b)[doubtful].sum()) + int((~a & ~b)[doubtful].sum())
        if lead > 0 and fall >= lead:
            return True
    return False


# --- its dumbbells ---


@dataclass(frozen=True)
class Dumbbell:
    """A row of the plot: a share for each space, the difference of the first two, with its interval and its p value,
    and the references' shares."""

    title: str
    values: Sequence[float | None]
    difference: float | None = None
    interval: tuple[float, float] | None = None
    ticks: dict[str, float] = field(default_factory=dict)  # by source
    p: float | None = None  # corrected

    @property
    def is_significant(self) -> bool:
        """Return whether the difference is significant, as in the headline."""
        return bool(Contrast(A, B, self.difference or 0.0, self.interval, p=self.p).sign)


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


def dumbbells(scores: Sequence[Dumbbell], classes: Sequence[Dumbbell], names: Sequence[str]) -> str:
    """Return the rows of the scores and, below a line, those of the classes, as HTML with escaped texts."""
    axis = axis_of([*scores, *classes])
    steps = "".join(
        f'<span style="left:{axis.place(at / 100):.1f}%">{at}</span>'
        for at in range(axis.low, axis.high + 1, axis.step)
    )
    head = f'<span class="unit">%</span><span class="track">{steps}</span><span>{A} − {B}</span>'
    rows = [_bell(row, names, axis, "score", "") for row in scores]
    rows += [_bell(row, names, axis, "", "" if q else "classes") for q, row in enumerate(classes)]
    key = _(" · ").join(f"{shape} {name}" for shape, name in zip(SHAPES, names, strict=False))
    key += _(" · thick: significant difference")
    if axis.low:
        key += _(" · the axis begins at {low} %, not at 0").format(low=axis.low)
    sources = dict.fromkeys(source for row in scores for source in row.ticks)
    marks = "".join(f"<span>{_tick(source)}{html.escape(locale.text(name_of(source)))}</span>" for source in sources)
    grid = f"--step: {100 * axis.step / (axis.high - axis.low):.2f}%"
    inside = f'<div class="axis">{head}</div>{"".join(rows)}<p>{marks}{html.escape(key)}</p>'
    return f'<div class="dumbbells" style="{grid}">{inside}</div>'


def _tick(source: str, style: str = "", text: str = "") -> str:
    """Return the mark of a reference as HTML."""
    return f'<i class="tick {source.partition(":")[0]}" style="{style}" title="{text}"></i>'


def _bell(row: Dumbbell, names: Sequence[str], axis: ShareAxis, kind: str, look: str) -> str:
    """Return one row as HTML: its name, the dots on their track, and the difference of A and B in points."""
    title, value = html.escape(locale.text(row.title)), ""
    if row.difference is not None:
        value = f"{100 * row.difference:+.1f}".replace("-", "−")
        value = value.lstrip("+−") if float(value.lstrip("+−")) == 0 else value
    references = [(name_of(source), share) for source, share in row.ticks.items()]
    known = [(name, share) for name, share in zip(names, row.values, strict=True) if share is not None]
    parts = [f"{name} {100 * share:.1f} %" for name, share in [*known, *references]]
    if row.interval is not None and row.difference is not None:
        ends = format.interval((100 * row.interval[0], 100 * row.interval[1]), ".1f")
        template = _("difference {points} points (95 %: {interval})")
        parts.append(template.format(points=f"{100 * row.difference:+.1f}", interval=ends))
    spoken = html.escape(f"{locale.text(row.title)}: {', '.join(map(locale.text, parts))}")
    marks = ""  # references as ticks, the line from A to B, and a dot for each space; A is on top
    for source, share in row.ticks.items():
        text = html.escape(f"{locale.text(name_of(source))} {100 * share:.1f} %")
        marks += _tick(source, f"left:{axis.place(share):.1f}%", text)
    a, b, *_others = (*row.values, None, None)
    if a is not None and b is not None:
        low, high = sorted((axis.place(a), axis.place(b)))
        marks += f'<i class="line" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>'
    for q, share_of in reversed([*enumerate(row.values)]):
        if share_of is not None:
            marks += f'<i class="dot {"abcdefgh"[q]}" style="left:{axis.place(share_of):.1f}%">{SHAPES[q]}</i>'
    return (
        f'<div class="{look} {"significant" * row.is_significant}">'
        f'<span class="name {kind}" title="{title}">{title}</span>'
        f'<span class="track" role="img" aria-label="{spoken}">{marks}</span><span class="value">{value}</span></div>'
    )


def draw_dumbbells(spaces: list[Space], samples: ComparedSamples) -> None:
    """Draw a row for each accuracy, with the references, and for the classes with the largest differences between A and
    B; the tables have all classes."""
    comparison, metric = samples.comparison, samples.metric
    references, scores = score_tables.scores_of_references(spaces), list[Dumbbell]()
    for name, values in comparison.accuracy.items():
        pair, found = contrast(comparison, name, 0, 1), {k: v[name].value for k, v in references.items() if name in v}
        ticks = {source: value for source, value in found.items() if value is not None}
        title = NAMES.get(name, comparison.titles[name])
        scores.append(Dumbbell(title, values, pair.difference, pair.interval, ticks, pair.p))
    classes = list[Dumbbell]()
    differences = comparison.by_class(metric)
    for d in differences[:CLASSES]:
        members = comparison.judged[metric] & (comparison.labels == d.label)
        values = comparison.correct[metric][:, members].mean(1).tolist()
        classes.append(Dumbbell(samples.class_name(d.label), values, d.value, d.interval, p=d.p))
    st.html(dumbbells(scores, classes, comparison.names))
    if len(differences) > CLASSES:
        st.caption(_("{more} more classes are in the tables.").format(more=len(differences) - CLASSES))
