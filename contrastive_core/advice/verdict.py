"""What to take, how sure that is, and what more time would tell: in a few sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from contrastive_core.ops.intervals import SEEDS

if TYPE_CHECKING:
    from contrastive_core.advice.search import Search

__all__ = ["number_of", "recommended", "untried", "verdict"]

APART = 1.3  # times as large: a curve's top lies elsewhere than what was tried


def recommended(rows: list[dict[str, Any]], best: dict[str, Any] | None) -> dict[str, Any] | None:
    """What is to be taken: the best where it is shown to be better, else the default."""
    if best is None or best["shown"] == "better":
        return best
    return next((r for r in rows if r["is_default"]), best)


def untried(search: Search) -> list[str]:
    """Settings, one question at a time from the default, that there was no time for."""
    if search.plan.is_curve:
        return []  # the curve speaks for what lies between
    tried = {label for t in search.tried.values() for label in t.label.split(", ")}
    return [c.label for found in search.questions.values() for c in found if c.label not in tried]


def verdict(search: Search, rows: list[dict[str, Any]], best: dict[str, Any] | None) -> str:
    """One to four sentences."""
    if best is None:
        return "Nothing has been judged yet."
    if len(rows) == 1:
        return f"Only {best['label']} has been judged so far."
    text = _of_the_best(search, rows, best)
    if below := _below_untrained(search, rows):
        text += f" {below}"
    return text


def _of_the_best(search: Search, rows: list[dict[str, Any]], best: dict[str, Any]) -> str:
    repeated = [r for r in rows if r["seeds"] >= SEEDS and not r["is_default"]]
    if best["is_default"]:
        text = _of_the_default(search, best)
    elif best["shown"] == "better":
        points, unit = _points(search)
        low, high = best["difference_interval"]
        text = (
            f"Take {best['label']}: better than the default by {points * best['difference']:.1f}"
            f"{unit} ({points * low:.1f} to {points * high:.1f}), "
            f"for each of {best['seeds']} seeds."
        )
    elif best["seeds"] >= SEEDS:
        points, unit = _points(search)
        text = (
            f"No difference that these data can show: {best['label']} came out highest, "
            f"{points * best['difference']:+.1f}{unit} from the default. Either will do."
        )
    else:
        return _not_repeated(search, rows, best)
    if not any(r["shown"] == "better" for r in rows):
        text += _smallest(search, repeated)
    return text


def _of_the_default(search: Search, best: dict[str, Any]) -> str:
    assert search.default is not None
    drawn = search.curve()
    if drawn is None:
        return f"Keep the default, {best['label']}: nothing that was tried came out better."
    text = f"Keep the default, {best['label']}: the curve is highest there of what was tried."
    top = max(drawn.drawn(), key=lambda row: row["score"])["value"]
    if abs(math.log(top / (search.default.value or top))) > math.log(APART):
        text += f" Its top lies near {top:.2g}, which more time would try."
    return text


def _not_repeated(search: Search, rows: list[dict[str, Any]], best: dict[str, Any]) -> str:
    """A single seed, or two, show nothing: the default stands until they do."""
    points, unit = _points(search)
    text = f"No difference is shown yet: {best['label']} came out highest"
    if search.curve() is not None:
        text = f"No difference is shown yet: the curve is highest at {best['label']}"
    if ties := _as_high(rows, best):
        text += f", with {' and '.join(ties)}"
    text += ", with one seed" if best["seeds"] == 1 else f", with {best['seeds']} seeds"
    if "difference" in best:
        text += f" and {points * best['difference']:+.1f}{unit} from the default"
        if interval := best.get("difference_interval"):
            text += f" ({points * interval[0]:.1f} to {points * interval[1]:.1f})"
    minutes = (SEEDS * 2) * search.cost(search.plan.rungs[-1]) / 60
    return (
        f"{text}. Keep the default until more time has repeated it: three seeds of both take about "
        f"{max(1, math.ceil(minutes))} min."
    )


def _as_high(rows: list[dict[str, Any]], best: dict[str, Any]) -> list[str]:
    """Labels of others that came out as high."""
    return [
        r["label"]
        for r in rows
        if r["label"] != best["label"]
        and (r["epochs"], r["seeds"]) == (best["epochs"], best["seeds"])
        and abs(r["mean"] - best["mean"]) < 1e-9
    ]


def _below_untrained(search: Search, rows: list[dict[str, Any]]) -> str:
    """Whether all tries are worse than no training at all."""
    if not search.baselines or search.plan.criterion != "knn":
        return ""
    name, share = max(search.baselines.items(), key=lambda item: item[1])
    if max(number_of(r["mean"]) for r in rows) >= share:
        return ""
    return (
        f"All that was tried is below {name} ({100 * share:.1f} %): these tries are too short to "
        "choose by; give them more time and more epochs."
    )


def _smallest(search: Search, repeated: list[dict[str, Any]]) -> str:
    """How large a difference would have been seen."""
    widths = [
        (high - low) / 2
        for r in repeated
        if (i := r.get("difference_interval"))
        for low, high in (i,)
    ]
    if not widths or search.plan.criterion != "knn":
        return ""
    half = 100 * sorted(widths)[len(widths) // 2]
    return (
        f" With {search.plan.held_out:,} held-out images a difference below about "
        f"{half:.1f} points cannot be seen; more images would show it, "
        "longer training may change it."
    )


def _points(search: Search) -> tuple[int, str]:
    return (100, " points") if search.plan.criterion == "knn" else (1, "")


def number_of(value: float) -> float:
    """A value to sort by: what is no number comes last."""
    return -math.inf if math.isnan(value) else value
