"""The answer so far: settings with their intervals, which is better than the default, and why.

A difference counts as shown where its 95 % interval excludes zero for each of three seeds; all else
is "no difference that these data can show", with how large a difference would have been seen.
"""

from __future__ import annotations

import math

import numpy as np

from contrastive_core.advice.reasons import reasons
from contrastive_core.advice.recommendation import number_of, recommend, untried_labels, verdict_text
from contrastive_core.advice.search import Search
from contrastive_core.advice.trials import Trial
from contrastive_core.evaluation.verdicts import contrast, interval_of
from contrastive_core.records.advice import CRITERIA, Answer, AnswerRow, CurvePoint
from contrastive_core.records.intervals import wilson


def answer_of(search: Search) -> Answer:
    """Rows, verdict, curve and reasons as plain values, at any time of the search."""
    rows = [_row(search, t) for t in search.trials.values() if t.epochs]
    rows.sort(key=lambda r: (-r["epochs"], -r["seeds"], -number_of(r["mean"])))
    best, curve = _best(search, rows), search.curve()
    return {
        "plan": search.plan.to_json(),
        "criterion": CRITERIA[search.plan.criterion],
        "rows": rows,
        "best": best,
        "recommended": recommend(rows, best),
        "untried": untried_labels(search),
        "baselines": search.baselines,
        "verdict": verdict_text(search, rows, best),
        "curve": _points(search),
        "smooth": curve.sampled() if curve else [],
        "why": reasons(search, best),
        "failed": search.failed,
        "spent": search.spent,
        "test": None,
        "done": False,
    }


def _row(search: Search, trial: Trial) -> AnswerRow:
    """Some settings at the most epochs they were trained for, against the default on the same images and seeds."""
    criterion, default, epochs = search.plan.criterion, search.default, trial.epochs
    scores = trial.of_criterion(epochs, criterion)
    values = [*scores.scores.values()]
    row: AnswerRow = {
        "label": trial.label,
        "settings": trial.settings,
        "is_default": trial.is_default,
        "epochs": epochs,
        "seeds": len(values),
        "values": values,
        "mean": float(np.mean(values)),
        "interval": interval_of(scores),
        "runs": [s.run for s in trial.by_seed(epochs).values()],
        "shown": "",
    }
    if default is None or trial.is_default:
        return row
    if (found := contrast(scores, default.of_criterion(epochs, criterion))) is not None:
        row |= {
            "difference": found.difference,
            "difference_interval": found.interval,
            "per_seed": [*found.per_seed],
            "shown": found.shown,
        }
    return row


def _best(search: Search, rows: list[AnswerRow]) -> AnswerRow | None:
    """Of the settings with the most epochs, and the seeds of the finalists: the highest mean, or the highest on the
    curve."""
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


def _points(search: Search) -> list[CurvePoint]:
    """Every run whose settings have a place on an axis."""
    points: list[CurvePoint] = [
        {
            "value": trial.value,
            "label": trial.label,
            "epochs": epochs,
            "seed": seed,
            "score": scores.value(search.plan.criterion),
            "interval": None if scores.right is None else wilson(int(np.nansum(scores.right)), len(scores.right)),
            "uniformity": scores.value("uniformity"),
            "tolerance": scores.value("tolerance"),
        }
        for trial in search.trials.values()
        for (epochs, seed), scores in trial.scores.items()
        if trial.value is not None and not scores.failure
    ]
    return sorted(points, key=lambda p: (p["epochs"], p["value"], p["seed"]))
