"""The verdict of Compare: the best space, its lead and the reason; with a warning if test labels look wrong."""

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import streamlit as st

from contrastive_core.compare.comparison import CLAIMED, MARGIN, Comparison, comparison_request
from contrastive_core.compare.evaluation import SOURCES
from contrastive_core.compare.verdicts import ACCURACIES, Contrast
from contrastive_core.samples.sample_table import SampleRequest, request_of
from contrastive_core.spaces.label_files import judgments_file
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale, state
from contrastive_lab.compare import score_tables
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.locale import _, message
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.samples.findings import Findings
from contrastive_lab.samples.label_audit import recalibrated
from contrastive_lab.samples.lists import START
from contrastive_lab.setting_names import changes_in_words

QRELS = "compare: judgments"  # of the session: the path of their file, "" for none


def comparable(spaces: list[Space]) -> str:
    """Return the reason why spaces have no samples in common; "" if they may have some."""
    data = {state.data_of(s) for s in spaces if not s.is_loaded}
    if len(data) < 2:
        return ""
    text = _("These runs have no samples in common: they use {data_names}. Choose runs of one data set.")
    return text.format(data_names=format.plain(", ".join(sorted(d.strip() for d in data))))


def are_towers(spaces: list[Space]) -> bool:
    """Return whether all spaces are files with two towers."""
    sets = [cache.embedding(space) if space.is_file else None for space in spaces]
    return all(rows is not None and cache.towers(rows) is not None for rows in sets)


def choose_judgments(spaces: list[Space]) -> None:
    """Draw a field for the file of relevance judgments if all spaces hold queries and documents."""
    st.session_state[QRELS] = ""
    if are_towers(spaces):
        with st.popover(_("Judgments")):
            about = _(
                "Relevance of documents to queries: a .tsv of BEIR, a file of TREC, or .json. Without a file, partners "
                "count as relevant."
            )
            st.session_state[QRELS] = path_input(_("Relevance judgments"), "qrels", "/path/to/qrels/test.tsv", about)


def request(spaces: list[Space], every_score: bool = True) -> Values:
    """Return the request for a comparison, with the relevance judgments that the page names."""
    return comparison_request(spaces, every_score, judgments() or "")


def judgments() -> Path | None:
    """Return the file of relevance judgments that the page names; None if there is no such file."""
    path = judgments_file(Path(st.session_state.get(QRELS, "")).expanduser())
    return path if path.is_absolute() and path.is_file() else None


def known(spaces: list[Space], waits: bool = False) -> Comparison | None:
    """Return the comparison; None while it is computed. `waits`: compute it and show the progress, first without
    untrained encoder and pixels."""
    first = request(spaces, every_score=False)
    result = cache.result("comparison", request(spaces)) or cache.result("comparison", first)
    if result is None and waits:
        result = answer_or_wait("comparison", first, message("Comparing"))
    return None if result is None else Comparison.of(result.meta, result.arrays)


def draw(spaces: list[Space], comparison: Comparison, metric: str) -> None:
    """Draw the verdict with the difference; its help gives the basis."""
    head, below = headline(comparison, metric)
    seeds = [text for text in comparison.seeds.values() if text]  # of methods that have three each
    said = [*seeds, *(list(comparison.verdicts.values()) or [comparison.verdict])]
    if metric:
        template = _("{score}, {n} samples") if metric in ACCURACIES else _("{score}, {n} queries")
        st.caption(template.format(score=locale.text(comparison.titles[metric]), n=f"{comparison.n_judged:,}"))
    st.header(head)
    rests = _rests_on(comparison, spaces)
    st.caption(below, help="\n\n".join([*map(format.plain, [*said, CLAIMED]), rests]))
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
        below = _("{text}. The corrected p value is {p}.").format(text=below, p=f"{lead.p:.2g}")
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
    return f"{text} {score_tables.of_references(spaces)}".strip()


def _warn(spaces: list[Space], comparison: Comparison) -> None:
    """Warn if undecided suspects among scored test labels could change the order of the runs."""
    runs = [run for space in spaces if (run := space.run) and run.weights.exists()]
    requests = (request_of(run.name, "test", str(run.config.get("loss"))) for run in runs)
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
    findings = recalibrated(Findings((request,), (table,)))
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
