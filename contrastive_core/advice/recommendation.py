"""The recommendation in a few sentences: what to take, how sure that is, and what more time would tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from contrastive_core.messages import N_, message
from contrastive_core.records.advice import AnswerRow
from contrastive_core.records.intervals import SEEDS

if TYPE_CHECKING:
    from contrastive_core.advice.search import Search

DISTINCT = 1.3  # times as large: a curve's top lies elsewhere than what was tried


def recommend(rows: list[AnswerRow], best: AnswerRow | None) -> AnswerRow | None:
    """The setting to take: the best where it is shown to be better, else the default."""
    if best is None or best["shown"] == "better":
        return best
    return next((r for r in rows if r["is_default"]), best)


def untried_labels(search: Search) -> list[str]:
    """Settings, one question at a time from the default, that there was no time for."""
    if search.plan.is_curve:
        return []  # the curve speaks for what lies between
    known = {label for t in search.trials.values() for label in t.label.split(", ")}
    return [c.label for found in search.questions.values() for c in found if c.label not in known]


def verdict_text(search: Search, rows: list[AnswerRow], best: AnswerRow | None) -> str:
    """One to four sentences."""
    if best is None:
        return N_("Nothing has been judged yet.")
    if len(rows) == 1:
        return message("Only {label} has been judged so far.", label=best["label"])
    text = _of_the_best(search, rows, best)
    if below := _below_untrained(search, rows):
        text += f" {below}"
    return text


def _of_the_best(search: Search, rows: list[AnswerRow], best: AnswerRow) -> str:
    repeated = [r for r in rows if r["seeds"] >= SEEDS and not r["is_default"]]
    if best["is_default"]:
        text = _of_the_default(search, best)
    elif best["shown"] == "better":
        points, unit = _points(search)
        assert best["difference_interval"] is not None  # shown by it
        low, high = best["difference_interval"]
        text = message(
            "Take {label}: better than the default by {difference}{unit} ({low} to {high}), for each of {seeds} seeds.",
            label=best["label"],
            difference=f"{points * best['difference']:.1f}",
            unit=unit,
            low=f"{points * low:.1f}",
            high=f"{points * high:.1f}",
            seeds=best["seeds"],
        )
    elif best["seeds"] >= SEEDS:
        points, unit = _points(search)
        text = message(
            "No difference that these data can show: {label} came out highest, "
            "{difference}{unit} from the default. Either will do.",
            label=best["label"],
            difference=f"{points * best['difference']:+.1f}",
            unit=unit,
        )
    else:
        return _not_repeated(search, rows, best)
    if not any(r["shown"] == "better" for r in rows):
        text += _smallest(search, repeated)
    return text


def _of_the_default(search: Search, best: AnswerRow) -> str:
    assert search.default is not None
    fitted = search.curve()
    if fitted is None:
        return message("Keep the default, {label}: nothing that was tried came out better.", label=best["label"])
    text = message("Keep the default, {label}: the curve is highest there of what was tried.", label=best["label"])
    top = max(fitted.sampled(), key=lambda row: row["score"])["value"]
    if abs(math.log(top / (search.default.value or top))) > math.log(DISTINCT):
        text += message(" Its top lies near {top}, which more time would try.", top=f"{top:.2g}")
    return text


def _not_repeated(search: Search, rows: list[AnswerRow], best: AnswerRow) -> str:
    """A single seed, or two, show nothing: the default stands until they do."""
    points, unit = _points(search)
    text = message("No difference is shown yet: {label} came out highest", label=best["label"])
    if search.curve() is not None:
        text = message("No difference is shown yet: the curve is highest at {label}", label=best["label"])
    if ties := _as_high(rows, best):
        text += message(", with {ties}", ties=" and ".join(ties))
    text += N_(", with one seed") if best["seeds"] == 1 else message(", with {seeds} seeds", seeds=best["seeds"])
    if "difference" in best:
        text += message(
            " and {difference}{unit} from the default", difference=f"{points * best['difference']:+.1f}", unit=unit
        )
        if interval := best.get("difference_interval"):
            text += message(
                " ({interval} to {second})",
                interval=f"{points * interval[0]:.1f}",
                second=f"{points * interval[1]:.1f}",
            )
    minutes = (SEEDS * 2) * search.cost(search.plan.rungs[-1]) / 60
    return message(
        "{text}. Keep the default until more time has repeated it: three seeds of both take about {value} min.",
        text=text,
        value=max(1, math.ceil(minutes)),
    )


def _as_high(rows: list[AnswerRow], best: AnswerRow) -> list[str]:
    """Labels of others that came out as high."""
    return [
        r["label"]
        for r in rows
        if r["label"] != best["label"]
        and (r["epochs"], r["seeds"]) == (best["epochs"], best["seeds"])
        and abs(r["mean"] - best["mean"]) < 1e-9
    ]


def _below_untrained(search: Search, rows: list[AnswerRow]) -> str:
    """Whether all tries are worse than no training at all."""
    if not search.baselines or search.plan.criterion != "knn":
        return ""
    name, share = max(search.baselines.items(), key=lambda item: item[1])
    if max(number_of(r["mean"]) for r in rows) >= share:
        return ""
    return message(
        "All that was tried is below {name} ({share} %): these tries are too short to choose "
        "by; give them more time and more epochs.",
        name=name,
        share=f"{100 * share:.1f}",
    )


def _smallest(search: Search, repeated: list[AnswerRow]) -> str:
    """How large a difference would have been seen."""
    widths = [(high - low) / 2 for r in repeated if (i := r.get("difference_interval")) for low, high in (i,)]
    if not widths or search.plan.criterion != "knn":
        return ""
    half = 100 * sorted(widths)[len(widths) // 2]
    return message(
        " With {held_out} held-out images a difference below about {half} points cannot be "
        "seen; more images would show it, longer training may change it.",
        held_out=f"{search.plan.held_out:,}",
        half=f"{half:.1f}",
    )


def _points(search: Search) -> tuple[int, str]:
    return (100, " points") if search.plan.criterion == "knn" else (1, "")


def number_of(value: float) -> float:
    """A value to sort by: what is no number comes last."""
    return -math.inf if math.isnan(value) else value
