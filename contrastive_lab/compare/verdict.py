"""Compare's verdict: which space is better, by how much and why; a warning where test labels look wrong."""

from itertools import permutations

import numpy as np
import streamlit as st

from contrastive_core.engine import questions
from contrastive_core.engine.training import Task
from contrastive_core.records.comparison import ACCURACIES, Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.evaluation import SOURCES, name_of
from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_lab import cache, format, locale, state
from contrastive_lab.compare import score_tables, tower_recall
from contrastive_lab.compare.comparison_request import CLAIMED, comparison_of
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait, scored_or_wait
from contrastive_lab.samples.cut_off import START
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.label_audit import recalibrated


def comparable(spaces: list[EmbeddingRef]) -> bool:
    """Whether they can have samples in common; says so where they cannot."""
    data = {state.data_of(s) for s in spaces if not s.is_loaded}
    if len(data) > 1:
        names = format.plain(", ".join(sorted(d.strip() for d in data)))
        text = _("These runs have no samples in common: they are of {data_names}. Choose runs of one data set.")
        st.warning(text.format(data_names=names))
    return len(data) < 2


def verdict(spaces: list[EmbeddingRef]) -> Comparison | None:
    """Who is better, by how much; None while it is not known. The untrained encoder and raw pixels can wait."""
    runs = [run for space in spaces if (run := space.run)]
    large = [run for run in runs if isinstance(questions.evaluation(run), Task)]  # tasks that outlive the app
    if not all(scored_or_wait(run) for run in large):  # a line for each that is not
        return None
    result = cache.result("comparison", comparison_of(spaces)) or answer_or_wait(
        "comparison", comparison_of(spaces, every_score=False), message("Comparing")
    )
    if result is None:
        return None
    comparison = Comparison.of(result.meta, result.arrays)
    seeds = [text for text in comparison.seeds.values() if text]  # of methods that have three each
    first, *more = [*seeds, *(list(comparison.verdicts.values()) or [comparison.verdict])]
    st.header(format.plain(first), help=_(CLAIMED))
    for text in more:
        st.markdown(format.plain(text))
    if comparison.accuracy:
        st.markdown(_accuracies(spaces, comparison, next(iter(comparison.accuracy))))
        samples = ComparedSamples(spaces[0], comparison)
        st.markdown(format.plain(comparison.largest_by_class(samples.class_name)))
    has_recall = tower_recall.show(comparison.names, spaces)
    _warn(spaces, comparison)
    st.caption(_rests_on(comparison, spaces, has_recall))
    return comparison


def _accuracies(spaces: list[EmbeddingRef], comparison: Comparison, metric: str) -> str:
    """Show the accuracy of each space and of the references."""
    shown = [*zip(comparison.names, comparison.accuracy[metric], strict=True)]
    references = score_tables.references(spaces).items()
    shown += [
        (locale.text(name_of(k)), value)
        for k, s in references
        if metric in s and (value := s[metric].value) is not None
    ]
    return f"{_(ACCURACIES[metric])}: " + " · ".join(f"{format.plain(n)} **{100 * v:.1f} %**" for n, v in shown)


def with_scores(spaces: list[EmbeddingRef], comparison: Comparison) -> Comparison | None:
    """The comparison with every score and its test; None while they are taken."""
    if comparison.scores:
        return comparison
    result = answer_or_wait("comparison", comparison_of(spaces), message("Computing every score"))
    return None if result is None else Comparison.of(result.meta, result.arrays)


def _rests_on(comparison: Comparison, spaces: list[EmbeddingRef], has_recall: bool) -> str:
    """How many samples and which features the verdict is of, who saw labels, and what varies in the intervals."""
    n, whole = comparison.n_judged, max(len(rows) for s in spaces if (rows := cache.embedding(s)))
    template = _("Judged on {n} samples of {whole}. ") if n < whole else _("Judged on {n} samples. ")
    text = template.format(n=f"{n:,}", whole=f"{whole:,}")
    if n < whole:
        text += _("The other rows teach, have no label, or are not in every space. ")
        text += _("Recall and the modality gap are of all rows of each space. ") if has_recall else ""
    layer = next((s.layer for s in spaces if not s.is_loaded), None)
    text += _("Features: {sources}. ").format(sources=_(SOURCES[layer])) if layer else ""
    if with_labels := [s.title for s in spaces if (run := s.run) and score_tables.needs_labels(run)]:
        names = format.plain(", ".join(with_labels))
        text += _("Trained with labels: {names}. ").format(names=names)
    text += _("Intervals contain the variation over samples, not between seeds.")
    return f"{text} {score_tables.of_references(spaces)}".strip()


def _warn(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Warn where undecided suspects among scored test labels could change the order of the runs."""
    runs = [run for space in spaces if (run := space.run) and run.weights.exists()]
    requests = (request_of(run.name, "test", str(run.config.get("loss"))) for run in runs)
    request = next((r for r in requests if r.path().exists()), None)
    if request is None or comparison.right is None:
        return
    suspects = undecided(request)
    doubtful = np.isin(np.array(comparison.ids), suspects)
    if not any(order_may_change(right, doubtful) for right in comparison.correct.values()):
        return
    count = int(doubtful.sum())
    labels = _("1 test label is") if count == 1 else _("{count} test labels are").format(count=f"{count:,}")
    text = _("{labels} likely wrong and undecided: enough to change the order of these runs.")
    st.warning(text.format(labels=labels), icon=":material/label:")
    address = {"run": request.name, "split": "test", "list": "mislabeled", "cut": str(START), "sample": suspects[0]}
    st.page_link("pages/samples.py", label=_("Review them"), icon=":material/image_search:", query_params=address)


def undecided(request: SampleRequest) -> list[str]:
    """Ids whose label is more likely wrong than right by what Samples shows, and that nobody decided on; in order."""
    table = cache.sample_table(request, str(request.path()))
    findings = recalibrated(Findings((request,), (table,)))
    rows, score = table.ranked("mislabeled"), findings.tables[0].score("mislabeled")
    return [name for row in rows[score[rows] > START].tolist() if (name := findings.id(row)) not in findings.marked]


def order_may_change(right: np.ndarray, doubtful: np.ndarray) -> bool:
    """Whether other labels of some samples (n) bool could undo a run's lead over another, from who is right (runs, n).

    Where the leader alone is right the lead can fall by two, where both are wrong by one; where both are right they
    said the same, and are wrong together."""
    is_right = np.asarray(right) > 0.5
    for a, b in permutations(is_right, 2):
        lead = int(a.sum()) - int(b.sum())
        fall = 2 * int((a & ~b)[doubtful].sum()) + int((~a & ~b)[doubtful].sum())
        if lead > 0 and fall >= lead:
            return True
    return False
