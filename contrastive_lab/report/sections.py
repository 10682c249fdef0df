"""The report's tables and sentences: verdict, scores with their intervals, settings."""

from __future__ import annotations

from collections.abc import Sequence

from contrastive_core.records.comparison import ACCURACIES, Comparison
from contrastive_core.records.evaluation import SOURCES
from contrastive_core.records.score import Score
from contrastive_lab import format
from contrastive_lab.compare.comparison_request import CLAIMED
from contrastive_lab.report.contents import Contents, RunPart
from contrastive_lab.report.markup import Html, el


def verdict(contents: Contents) -> Html | None:
    """Which run is better and by how much; None where there is one run."""
    comparison = contents.comparison
    if comparison is None:
        return el("section", el("p", contents.apart, class_="note")) if contents.apart else None
    others = [text for metric, text in comparison.verdicts.items() if text != comparison.verdict]
    return el(
        "section",
        el("h2", comparison.verdict, class_="verdict"),
        *(el("p", f"By the linear probe: {text}") for text in others),
        *(el("p", el("strong", text)) for text in comparison.seeds.values() if text),
        _differences(comparison) if comparison.differences else None,
        el("p", f"{len(comparison.ids):,} samples that all share. {CLAIMED}", class_="about"),
    )


def _differences(comparison: Comparison) -> Html:
    rows = [
        (
            ACCURACIES[d.metric],
            d.a,
            d.b,
            f"{100 * d.value:+.1f}",
            f"{100 * d.interval[0]:+.1f} to {100 * d.interval[1]:+.1f}",
            f"{d.p_corrected:.2g}",
            "yes" if d.claimed else "no",
        )
        for d in comparison.differences
    ]
    head = ("", "A", "B", "A − B, points", "95 %", "p, corrected", "claimed")
    return _table(head, rows, "Differences of accuracy between two runs")


def scores(part: RunPart) -> Html:
    """Each score of the run with its interval, beside the other layer and the references."""
    if part.evaluation is None:
        return el("p", "This split has not been scored.", class_="note")
    known = part.evaluation.scores
    sources = [part.layer, *(s for s in SOURCES if s != part.layer and s in known)]
    names = list(dict.fromkeys(name for s in sources for name in known.get(s, {})))
    rows = []
    for name in names:
        by_source = [known.get(s, {}).get(name) for s in sources]
        first = next(s for s in by_source if s is not None)
        rows.append((_title(first), *map(_figure, by_source)))
    return _table(("", *(SOURCES[s] for s in sources)), rows, f"Scores of {part.title}")


def _title(score: Score) -> Html:
    """What was taken, and how: an accuracy without its k says nothing."""
    used = {
        k: v for k, v in score.extras.items() if isinstance(v, str | int | float) and k not in ("n", "sample", "recall")
    }
    how = ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in used.items())
    return el("span", score.title, el("small", how) if how else None)


def _figure(score: Score | None) -> Html | str:
    """A figure, its interval and what it is made of below it."""
    if score is None or score.value is None:
        return "–"
    notes = filter(None, [format.interval_of(score), score.approximation])
    return el("span", format.figure_of(score), *(el("small", note) for note in notes))


def settings(part: RunPart) -> Html:
    """What the run was trained with."""
    pairs = [el("div", el("dt", name), el("dd", value)) for name, value in part.settings]
    return el("dl", *pairs, class_="settings")


def map_caption(part: RunPart) -> str:
    """How the map was made and how far it can be believed."""
    used, quality = part.map_about["settings"], part.map_about["quality"]
    text = format.map_of(used)
    if len(part.shown) < len(part.rows):
        text += f"{len(part.shown):,} of {len(part.rows):,} samples, drawn by lot. "
    return text + format.quality_of(quality) + "Scores are computed in the embedding, never on the map."


def _table(head: Sequence[str], rows: Sequence[Sequence[Html | str]], alt: str) -> Html:
    """A table that can be scrolled sideways where the screen is narrow."""
    lines = [el("tr", el("th", row[0], scope="row"), *(el("td", cell) for cell in row[1:])) for row in rows]
    top = el("tr", *(el("th", text, scope="col") for text in head))
    table = el("table", el("thead", top), el("tbody", *lines), aria_label=alt)
    return el("div", table, class_="wide", tabindex="0", role="region", aria_label=alt)
