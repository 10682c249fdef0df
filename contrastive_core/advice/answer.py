"""What the search has shown: settings with their intervals, what is better than the default, why.

A difference counts as shown where its 95 % interval excludes zero for each of three seeds; all else
is "no difference that these data can show", with how large a difference would have been seen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from contrastive_core.advice.judge import CRITERIA, Judged
from contrastive_core.advice.reasons import reasons
from contrastive_core.advice.search import Search
from contrastive_core.advice.tried import Tried
from contrastive_core.advice.verdict import number_of, recommended, untried, verdict
from contrastive_core.evaluation.paired_tests import Z95, difference
from contrastive_core.ops.intervals import SEEDS, over_seeds, wilson

__all__ = ["answer"]


def answer(search: Search) -> dict[str, Any]:
    """Plain values: rows, verdict, curve, and why. May be asked for at any time."""
    default = search.default
    rows = [_row(search, t, default) for t in search.tried.values() if t.judged]
    rows.sort(key=lambda r: (-r["epochs"], -r["seeds"], -number_of(r["mean"])))
    best = _best(search, rows)
    drawn = search.curve()
    return {
        "plan": search.plan.to_json(),
        "criterion": CRITERIA[search.plan.criterion],
        "rows": rows,
        "best": best,
        "recommended": recommended(rows, best),
        "untried": untried(search),
        "baselines": search.baselines,
        "verdict": verdict(search, rows, best),
        "curve": _curve(search),
        "smooth": drawn.drawn() if drawn else [],
        "why": reasons(search, best),
        "failed": search.failed,
        "spent": search.spent,
        "test": None,
    }


def _row(search: Search, tried: Tried, default: Tried | None) -> dict[str, Any]:
    """What was seen of some settings at the most epochs they were trained for."""
    criterion = search.plan.criterion
    epochs = max(e for e, _ in tried.judged)
    by_seed = tried.at(epochs)
    values = [j.value(criterion) for j in by_seed.values()]
    row: dict[str, Any] = {
        "label": tried.label, "settings": tried.settings, "is_default": tried.is_default,
        "epochs": epochs, "seeds": len(values), "values": values,
        "mean": float(np.mean(values)), "interval": _interval(list(by_seed.values()), values),
        "runs": [j.run for j in by_seed.values()], "shown": "",
    }  # fmt: skip
    if default is not None and not tried.is_default:
        row |= _against(by_seed, default.at(epochs), criterion)
    return row


def _interval(judged: list[Judged], values: list[float]) -> tuple[float, float] | None:
    """Of the held-out images, and of the seeds where there are three."""
    n = len(judged[0].right) if judged[0].right is not None else 0
    if not n:
        return over_seeds(values)
    right = np.mean([np.nan_to_num(j.right) for j in judged if j.right is not None], 0)
    low, high = wilson(round(float(right.sum())), n)
    between = over_seeds(values)
    if between is None:
        return low, high
    half = math.hypot((high - low) / 2, (between[1] - between[0]) / 2)
    mean = float(np.mean(values))
    return mean - half, mean + half


def _against(mine: dict[int, Judged], usual: dict[int, Judged], criterion: str) -> dict[str, Any]:
    """The difference from the default on the same images and seeds."""
    both = sorted(mine.keys() & usual.keys())
    if not both:
        return {}
    pairs = [(mine[s], usual[s]) for s in both]
    differences = [a.value(criterion) - b.value(criterion) for a, b in pairs]
    each = [
        difference(a.right, b.right)[1]
        for a, b in pairs
        if a.right is not None and b.right is not None
    ]
    row: dict[str, Any] = {"difference": float(np.mean(differences)), "per_seed": each}
    if len(each) == len(both):
        means = np.mean([a.right - b.right for a, b in pairs if a.right is not None], 0)
        half = Z95 * float(np.nanstd(means, ddof=1)) / math.sqrt(max(1, np.isfinite(means).sum()))
        between = over_seeds(differences)
        half = math.hypot(half, (between[1] - between[0]) / 2) if between else half
        row["difference_interval"] = (row["difference"] - half, row["difference"] + half)
        above, below = all(low > 0 for low, _ in each), all(high < 0 for _, high in each)
    else:
        between = over_seeds(differences)
        row["difference_interval"] = between
        above = between is not None and between[0] > 0
        below = between is not None and between[1] < 0
    if len(both) >= SEEDS:
        row["shown"] = "better" if above else "worse" if below else "no difference shown"
    else:
        row["shown"] = "worse so far" if below else "not repeated"
    return row


def _best(search: Search, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Of the settings with the most epochs, and the seeds of the finalists: the highest mean, or
    the highest on the curve."""
    if not rows:
        return None
    epochs = max(r["epochs"] for r in rows)
    full = [r for r in rows if r["epochs"] == epochs]
    seeds = max((r["seeds"] for r in full if not r["is_default"]), default=1)
    order = {t.label: -place for place, t in enumerate(search.ranking())}
    finalists = [r for r in full if r["seeds"] >= seeds]
    if search.curve() is not None:
        return max(finalists, key=lambda r: order.get(r["label"], -math.inf))
    return max(finalists, key=lambda r: number_of(r["mean"]))


def _curve(search: Search) -> list[dict[str, Any]]:
    """Every run whose settings have a place on an axis: value, epochs, seed, score, interval."""
    points = []
    for tried in search.tried.values():
        if tried.value is None:
            continue
        for (epochs, seed), judged in sorted(tried.judged.items()):
            score = judged.value(search.plan.criterion)
            interval = None
            if judged.right is not None:
                interval = wilson(int(np.nansum(judged.right)), len(judged.right))
            points.append({
                "value": tried.value, "label": tried.label, "epochs": epochs, "seed": seed,
                "score": score, "interval": interval,
                "uniformity": judged.value("uniformity"), "tolerance": judged.value("tolerance"),
                "alignment": judged.value("alignment"), "rankme": judged.value("rankme"),
                "lidar": judged.value("lidar"), "alpha_req": judged.value("alpha_req"),
            })  # fmt: skip
    return sorted(points, key=lambda p: (p["epochs"], p["value"], p["seed"]))
