"""Compare's tables: scores and cost of each space, and every paired test between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_core.engine import catalog
from contrastive_core.records.comparison import ACCURACIES, Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.evaluation import BESIDE, name_of
from contrastive_core.records.run import Run
from contrastive_core.records.run_metrics import cost_of
from contrastive_core.records.score import Scores
from contrastive_lab import cache, format, frozen_encoders, locale, query_params
from contrastive_lab.compare import frozen_differences, tower_recall
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.tables import draw_definitions, draw_table

COST = {"seconds": N_("training, s"), "images_per_s": "images/s", "memory_mb": N_("memory, MB")}
COST |= {"parameters": "parameters"}
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


def references(spaces: list[EmbeddingRef]) -> dict[str, Scores]:
    """Scores of raw pixels, of the untrained encoder and of frozen ones, by source, of the first space that has
    them."""
    run = next((run for s in spaces if not s.is_loaded and (run := s.run)), None)
    record = cache.scores(run) if run else None
    frozen = frozen_encoders.known(run) if run else {}
    return {k: record.scores[k] for k in BESIDE if record and k in record.scores} | frozen


def of_references(spaces: list[EmbeddingRef]) -> str:
    """Name the images that the references are judged on; "" where that is not known."""
    run = next((run for space in spaces if not space.is_loaded and (run := space.run)), None)
    images = format.judged_images(record) if run and (record := cache.scores(run)) else ""
    return _("Raw pixels and other references: {images}").format(images=images) if images else ""


def table(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """A row for each score and cost, a column for each space and each reference."""
    names = _distinct(comparison.names)
    columns, of_pairs = {}, [tower_recall.of_towers(space) for space in spaces]
    paired = tower_recall.side_by_side(of_pairs)
    for name, space, scores, recall in zip(names, spaces, comparison.scores, paired, strict=True):
        cost: Mapping[str, Any] = cost_of(run) if (run := space.run) else {}
        labels = {N_("trained with labels"): _("yes")} if run and needs_labels(run) else {}
        columns[name] = {
            **labels,
            **_cells(scores | recall),
            **{text: v for k, text in COST.items() if (v := cost.get(k)) is not None},
        }
    columns |= {locale.text(name_of(k)): _cells(scores) for k, scores in references(spaces).items()}
    heads = [h for h in dict.fromkeys(h for cells in columns.values() for h in cells) if not h.endswith(BEHIND)]
    rows = [{"score": _name(head), **{k: _shown(cells, head) for k, cells in columns.items()}} for head in heads]
    wide = {k: st.column_config.TextColumn(width=_width([k, *(row[k] for row in rows)])) for k in columns}
    wide["score"] = st.column_config.TextColumn(width=_width([row["score"] for row in rows]), pinned=True)
    alt = _("Scores and cost of each run")
    draw_table(rows, hide_index=True, height="content", column_config=wide, placeholder="–", alt=alt)
    for text in filter(None, [of_references(spaces), _why_empty(columns, heads, paired)]):
        st.caption(format.plain(text))
    listed = [{"run": name, **cells} for name, cells in columns.items()]
    with st.container(horizontal=True, vertical_alignment="center"):
        text = _(
            "In parentheses: 95 % intervals over samples, not seeds. Times and memory are those of the machine that "
            "trained."
        )
        st.caption(text)
        st.download_button(_("Table as CSV"), format.table_csv(listed), "compare.csv", "text/csv", on_click="ignore")
        with st.popover(_("Meaning of the scores"), icon=":material/help:"):
            draw_definitions(comparison.scores[0].values() if comparison.scores else ())
        frozen_encoders.manage()
    for run in (run for space in spaces if (run := space.run)):
        if not scored_or_wait(run):  # after the verdict: it needs no reference
            return
    if run := next((run for space in spaces if (run := space.run)), None):
        frozen_encoders.follow_missing(run)
    frozen_differences.draw(spaces)


def _distinct(names: Sequence[str]) -> Sequence[str]:
    """The names, numbered where files share one."""
    return names if len(set(names)) == len(names) else [f"{number}. {name}" for number, name in enumerate(names, 1)]


def _why_empty(columns: Mapping[str, Mapping[str, Any]], heads: list[str], paired: Iterable[Scores]) -> str:
    """Say why cells of the table are empty. "trained with labels" is empty where no label was used."""
    of_pairs = {head for recall in paired for head in _cells(recall)}
    empty = {name: {*heads} - {*cells} - {"trained with labels"} for name, cells in columns.items()}
    return tower_recall.why_empty(empty, of_pairs, {*COST.values()})


def needs_labels(run: Run) -> bool:
    """Whether its method learns from labels; of recordings nobody knows."""
    methods = cache.catalog()["methods"] if catalog.is_ready() else {}
    return bool(methods.get(str(run.config.get("method")), {}).get("needs_labels"))


BEHIND = (" (95 %)", " (made of)")  # what stands behind a value


def _cells(scores: Scores) -> dict[str, Any]:
    """Values and intervals of one run's scores, by the heads of their columns."""
    row: dict[str, Any] = {}
    first = [scores[name] for name in ACCURACIES if name in scores]
    for score in dict.fromkeys([*first, *scores.values()]):
        if score.value is None:
            continue
        is_share = score.unit == "share"
        head = score.title + (", %" if is_share else "")
        row[head] = round(100 * score.value, 1) if is_share else round(score.value, format.decimals_of(score))
        if score.interval:
            row[head + BEHIND[0]] = format.interval_of(score)
        if score.approximation:
            row[head + BEHIND[1]] = score.approximation
    return row


def _shown(cells: Mapping[str, Any], head: str) -> str | None:
    """A value with its interval and what it is made of, as one cell."""
    if (value := cells.get(head)) is None:
        return None
    behind = [locale.text(cells[head + name]) for name in BEHIND if head + name in cells]
    if not isinstance(value, str):
        value = f"{value:,g}" if head in COST.values() else f"{value:,.{_decimals(cells, head)}f}"
    return value + "".join(f" ({text})" for text in behind)


def _decimals(cells: Mapping[str, Any], head: str) -> int:
    """Decimals of a value, as its interval has them."""
    if head.endswith(", %"):
        return 1
    interval = cells.get(head + BEHIND[0])
    return format.decimals(cells[head], *(interval.ends if interval else ()))


def _name(head: str) -> str:
    """The head of a column as a page shows it."""
    title = head.removesuffix(", %")
    return _(title) + (", %" if title != head else "")


def _width(texts: Iterable[str | None]) -> int:
    """Pixels of a column that holds each text whole."""
    return 24 + max(round(sum(15 if c > "⺀" else 7.5 for c in text or "")) for text in texts)


def tests(comparison: Comparison) -> None:
    """Paired differences of every score between every two runs, against the smallest that matters."""
    if not comparison.tests:
        st.info(_("No score has a value per sample, so no paired test is possible."))
        return
    label, help = _("Smallest difference that matters, points"), _("One point is 0.01 of a score.")
    least = query_params.one_of(st.segmented_control, label, LEAST, name="least", default=1.0, help=help)
    of_accuracy = {(d.metric, d.a, d.b): d.interval for d in comparison.differences}  # the verdict's
    rows = []
    for test in comparison.tests:
        interval = of_accuracy.get((test["score"], test["a"], test["b"]), (test["low"], test["high"]))
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
            "These rows are about these runs: intervals and p contain the variation over samples, not between seeds. "
            "For a statement about methods, choose three seeds of both."
        )
        st.caption(text)
        st.download_button(_("Table as CSV"), format.table_csv(rows), "tests.csv", "text/csv", on_click="ignore")


def _test(
    comparison: Comparison, test: Mapping[str, Any], interval: tuple[float, float], least: float
) -> dict[str, Any]:
    """One row of the tests."""
    score = comparison.scores[0][test["score"]]
    unit, digits = (100, ".1f") if test["score"] in SHARES else (1, ".3f")
    p, (low, high) = test["p_corrected"], interval
    sign = int(low > least) - int(high < -least)
    result = N_("too small") if max(abs(low), abs(high)) <= least else N_("unclear")
    return {
        "score": _(score.title) + (_(", points") if unit == 100 else ""),
        "A": test["a"],
        "B": test["b"],
        "A − B": float(f"{unit * test['value']:{digits}}"),
        "95 %": format.interval((unit * low, unit * high), digits),
        N_("matters from"): unit * least,
        N_("result"): _(RESULTS[score.higher_is_better, sign] if sign and p < 0.05 else result),
        N_("p, corrected"): f"{p:.2g}" if p >= SMALLEST_P else f"< {SMALLEST_P:g}",
    }
