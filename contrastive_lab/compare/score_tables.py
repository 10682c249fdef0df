"""Tables of Compare: scores and cost of each space, and all paired tests between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from contrastive_core.base.score import Scores
from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.evaluation import BESIDE, PREFIX, name_of
from contrastive_core.compare.verdicts import ACCURACIES, PairedTest
from contrastive_core.engine import catalog
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import cost_of
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.compare import towers
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.figures import draw_definitions, draw_table
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.score_strip import follow_missing_reference, manage_references, reference_scores

COST = {"seconds": N_("training, s"), "images_per_s": "images/s", "memory_mb": N_("memory, MB")}
COST |= {"parameters": "parameters"}
LABELED = N_("trained with labels")
SHARES = ("knn", "linear_probe", "purity")
LEAST = (0.1, 0.5, 1.0, 2.0, 5.0)  # points
SMALLEST_P = 1e-4  # smaller ones are not told apart
RESULTS = {  # by whether a higher score is better, and the sign of A − B
    (True, 1): N_("✓ A better"),
    (True, -1): N_("✓ B better"),
    (False, 1): N_("✓ B better"),
    (False, -1): N_("✓ A better"),
    (None, 1): N_("✓ A higher"),
    (None, -1): N_("✓ B higher"),
}


def scores_of_references(spaces: list[Space]) -> dict[str, Scores]:
    """Return the scores of raw pixels, the untrained encoder and further references by source, from the first space
    that has them."""
    run = next((run for s in spaces if not s.is_loaded and (run := s.run)), None)
    record = cache.scores(run) if run else None
    own = {PREFIX + space.name for space in spaces}
    named = {source: scores for source, scores in reference_scores(run).items() if source not in own} if run else {}
    return {k: record.scores[k] for k in BESIDE if record and k in record.scores} | named


def of_references(spaces: list[Space]) -> str:
    """Describe the images on which the references are evaluated; "" if unknown."""
    run = next((run for space in spaces if not space.is_loaded and (run := space.run)), None)
    images = format.judged_images(record) if run and (record := cache.scores(run)) else ""
    return _("Raw pixels and other references: {images}").format(images=images) if images else ""


@dataclass(frozen=True)
class ScoreCell:
    """A displayed value with its interval, and their columns in a file."""

    text: str
    columns: dict[str, object]


def table(spaces: list[Space], comparison: Comparison) -> None:
    """Draw a table with a row for each score and cost, and a column for each space and each reference."""
    st.header(_("Scores"))
    names: Sequence[str] = comparison.names
    if len(set(names)) < len(names):  # files that share a name
        names = [f"{number}. {name}" for number, name in enumerate(names, 1)]
    paired = towers.side_by_side([towers.of_towers(space) for space in spaces])
    columns: dict[str, dict[str, ScoreCell]] = {}
    for name, space, scores, recall in zip(names, spaces, comparison.scores, paired, strict=True):
        run = space.run
        labels = {LABELED: ScoreCell(_("yes"), {LABELED: _("yes")})} if run and needs_labels(run) else {}
        cost = {text: cost_of(run).get(key) for key, text in COST.items()} if run else {}
        costs = {text: ScoreCell(f"{value:,g}", {text: value}) for text, value in cost.items() if value is not None}
        columns[name] = labels | _cells(scores | recall) | costs
    columns |= {locale.text(name_of(k)): _cells(scores) for k, scores in scores_of_references(spaces).items()}
    heads = list(dict.fromkeys(head for cells in columns.values() for head in cells))
    rows = []
    for head in heads:
        title = head.removesuffix(", %")
        texts = {k: cells[head].text if head in cells else None for k, cells in columns.items()}
        rows.append({"score": _(title) + head.removeprefix(title), **texts})
    wide = {k: st.column_config.TextColumn(width=_width([k, *(row[k] for row in rows)])) for k in columns}
    wide["score"] = st.column_config.TextColumn(width=_width([row["score"] for row in rows]), pinned=True)
    alt = _("Scores and cost of each run")
    draw_table(rows, hide_index=True, height="content", column_config=wide, placeholder="–", alt=alt)
    if text := of_references(spaces):
        st.caption(format.plain(text))
    if any({*heads} - {*cells} - {LABELED} for cells in columns.values()):
        text = _(
            "–: not known. Recall and modality gap need two towers, zero-shot accuracy also a text tower; cost is "
            "known for trained runs only."
        )
        st.caption(text)
    listed = [
        {"run": name} | {k: v for cell in cells.values() for k, v in cell.columns.items()}
        for name, cells in columns.items()
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _(
            "In parentheses: 95 % intervals over samples, not seeds. Times and memory are those of the machine that "
            "trained."
        )
        st.caption(text)
        st.download_button(_("Table as CSV"), format.table_csv(listed), "compare.csv", "text/csv", on_click="ignore")
        with st.popover(_("Meaning of the scores"), icon=":material/help:"):
            draw_definitions(comparison.scores[0].values() if comparison.scores else ())
        manage_references()
    for run in (run for space in spaces if (run := space.run)):
        if not scored_or_wait(run):  # after the verdict: it needs no reference
            return
    if run := next((run for space in spaces if (run := space.run)), None):
        follow_missing_reference(run)


def needs_labels(run: Run) -> bool:
    """Return whether the run's method uses labels; False if unknown, as for recordings."""
    methods = cache.catalog()["methods"] if catalog.is_ready() else {}
    return bool(methods.get(str(run.config.get("method")), {}).get("needs_labels"))


def _cells(scores: Scores) -> dict[str, ScoreCell]:
    """Return the defined scores of one run by row title, the accuracies first."""
    cells = {}
    first = [scores[name] for name in ACCURACIES if name in scores]
    for score in dict.fromkeys([*first, *scores.values()]):
        if score.value is None:
            continue
        is_share, digits = score.unit == "share", format.decimals_of(score)
        head = score.title + (", %" if is_share else "")
        value = round(100 * score.value if is_share else score.value, digits)
        interval, made_of = format.interval_of(score), score.approximation
        beside = {f"{head} (95 %)": interval, f"{head} (made of)": made_of}
        text = f"{value:,.{digits}f}" + "".join(f" ({locale.text(note)})" for note in beside.values() if note)
        cells[head] = ScoreCell(text, {head: value} | {k: v for k, v in beside.items() if v})
    return cells


def _width(texts: Iterable[str | None]) -> int:
    """Return the width in pixels of a column that shows each text in full."""
    return 24 + max(round(sum(15 if c > "⺀" else 7.5 for c in text or "")) for text in texts)


def tests(comparison: Comparison) -> None:
    """Draw the paired differences of every score between every two spaces, compared with the smallest relevant
    difference."""
    if not comparison.tests:
        st.info(_("No score has a value per sample, so no paired test is possible."))
        return
    st.header(_("Every test"))
    label, help = _("Smallest difference that matters, points"), _("One point is 0.01 of a score.")
    least = query_params.one_of(st.segmented_control, label, LEAST, name="least", default=1.0, help=help)
    of_accuracy = {(d.metric, d.a, d.b): d.interval for d in comparison.differences}  # the verdict's
    rows = []
    for test in comparison.tests:
        interval = of_accuracy.get((test.score, test.a, test.b), (test.low, test.high))
        rows.append(_test(comparison, test, interval, least / 100))
    draw_table(rows, hide_index=True, height="content" if len(rows) < 12 else "auto")
    text = _(
        "✓: the whole 95 % interval is above the smallest difference that matters, and p is below 0.05 after Holm's "
        "correction for {tests} tests. “Too small”: the whole interval is below that difference. “Unclear”: the "
        "interval contains both negligible and relevant differences, or p is not below 0.05. p tests for no "
        "difference at all (McNemar's exact test for right or wrong, otherwise a paired t test) and does not measure "
        "its size."
    )
    st.caption(text.format(tests=len(comparison.tests)))
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _(
            "These results hold for these runs only: intervals and p values contain the variation over samples, not "
            "between seeds. To compare methods, choose three seeds of each."
        )
        st.caption(text)
        st.download_button(_("Table as CSV"), format.table_csv(rows), "tests.csv", "text/csv", on_click="ignore")


def _test(comparison: Comparison, test: PairedTest, interval: tuple[float, float], least: float) -> dict[str, object]:
    """Return one row of the table of tests."""
    score = comparison.scores[0][test.score]
    unit, digits = (100, ".1f") if test.score in SHARES else (1, ".3f")
    p, (low, high) = test.p_corrected, interval
    sign = int(low > least) - int(high < -least)
    result = N_("too small") if max(abs(low), abs(high)) <= least else N_("unclear")
    return {
        "score": (_("{score}, points") if unit == 100 else "{score}").format(score=_(score.title)),
        "A": test.a,
        "B": test.b,
        "A − B": float(f"{unit * test.value:{digits}}"),
        "95 %": format.interval((unit * low, unit * high), digits),
        N_("smallest relevant difference"): unit * least,
        N_("result"): _(RESULTS[score.higher_is_better, sign] if sign and p < 0.05 else result),
        N_("p, corrected"): f"{p:.2g}" if p >= SMALLEST_P else f"< {SMALLEST_P:g}",
    }


def classes(samples: ComparedSamples) -> None:
    """Draw the difference between A and B for each class, the largest first; nothing without labels."""
    table = [
        {
            "class": samples.class_name(d.label),
            "n": d.n,
            "A, %": round(100 * d.accuracies[0], 1),
            "B, %": round(100 * d.accuracies[1], 1),
            N_("A − B, points"): round(100 * d.value, 1),
            "95 %": format.interval((100 * d.interval[0], 100 * d.interval[1]), "+.1f"),
            N_("p, corrected"): f"{d.p:.2g}" if d.p >= SMALLEST_P else f"< {SMALLEST_P:g}",
        }
        for d in samples.comparison.by_class(samples.metric, 0, 1)
    ]
    if not table:
        return
    st.header(_("By class"))
    one = partial(st.column_config.NumberColumn, format="%.1f")
    formats = {"A, %": one(), "B, %": one(), "A − B, points": one(format="%+.1f")}
    draw_table(table, hide_index=True, column_config=formats)
    by_chance = _(
        "{accuracy} on the samples of each class. Each interval is a separate 95 % interval (Agresti–Min, over "
        "samples, not seeds): about one class in twenty excludes zero by chance. p is corrected for the number of "
        "classes (Holm)."
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(by_chance.format(accuracy=locale.text(samples.comparison.titles[samples.metric])))
        st.download_button(_("Table as CSV"), format.table_csv(table), "classes.csv", "text/csv", on_click="ignore")
