"""The answer so far: settings with their intervals, which is better than the default, and why. A difference is shown
where three seeds of both exist and its 95 % interval over images and seeds excludes zero (evaluation/verdicts.py).
All else is "no difference that these data can show", with how large a difference would have been seen."""

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from contrastive_core.advice.candidates import Curve
from contrastive_core.advice.held_out import HeldOutScores, Trial
from contrastive_core.advice.search import Search
from contrastive_core.data.datasets import Dataset
from contrastive_core.evaluation.paired_tests import holm, t_test
from contrastive_core.evaluation.verdicts import ALPHA, contrast, interval_and_basis
from contrastive_core.loss_lab.view import trade
from contrastive_core.messages import N_, join, message
from contrastive_core.records import runs
from contrastive_core.records.advice import CRITERIA
from contrastive_core.records.advice_answer import Answer, AnswerRow, CurvePoint, Decision, Regime
from contrastive_core.records.embedding_ref import cached
from contrastive_core.records.score import SEEDS
from contrastive_core.storage.json_files import JsonObject

DISTINCT = 1.3  # times as large: a curve's top lies elsewhere than what was tried
VALUES = 8  # of a factor, above which thirds of it are taken
CLASSES = 3  # classes, or values of factors, that gain and lose most, named
NEGATIVES = 256  # held-out rows that effective negatives are taken of


def answer_of(search: Search) -> Answer:
    """Rows, verdict, curve and reasons as plain values, at any time of the search."""
    decision, regimes = search.decision(), search.regimes()
    curve = search.curve()
    rows = _sorted([_row(search, t, curve) for t in search.trials.values() if t.epochs])
    best = None if regimes else next((row for row in rows if row["epochs"] == rows[0]["epochs"]), None)
    return {
        "plan": search.plan.to_json(),
        "criterion": CRITERIA[search.plan.criterion],
        "rows": rows,
        "best": best,
        "recommended": _recommended(rows, best, decision, regimes),
        "untried": untried_labels(search),
        "baselines": search.baselines,
        "verdict": _verdict(search, rows, best, decision, regimes),
        "curve": _points(search),
        "smooth": curve.sampled() if curve else [],
        "why": reasons(search, best),
        "failed": search.failed,
        "spent": search.spent,
        "test": None,
        "done": False,
        "decision": decision,
        "regimes": regimes,
    }


def _verdict(
    search: Search, rows: list[AnswerRow], best: AnswerRow | None, decision: Decision | None, regimes: list[Regime]
) -> str:
    """The answer in words: whether to train, which method, or which settings."""
    if decision:
        return decision["sentence"]
    if not regimes:
        return verdict_text(search, rows, best)
    said = [message("{title}: {verdict}", title=one["title"], verdict=one["verdict"]) for one in regimes]
    below = _below_untrained(search, rows) if rows else ""
    return join(" ", [*said, *([below] if below else [])])


def _recommended(
    rows: list[AnswerRow], best: AnswerRow | None, decision: Decision | None, regimes: list[Regime]
) -> AnswerRow | None:
    """The row to train for longer; None where nothing is decided, or nothing is to be trained."""
    if decision:
        return _trained_row(rows, decision["answer"])
    if regimes:
        chosen = next((one["best"] for one in reversed(regimes) if one["best"]), "")
        return next((row for row in rows if row["label"] == chosen), None)
    return recommend(rows, best)


def _trained_row(rows: list[AnswerRow], answer: str) -> AnswerRow | None:
    """The row of the training that a decision asks for; None where it asks for none."""
    labels = {"scratch": True, "continue": False}
    return next((row for row in rows if row["is_default"] is labels.get(answer)), None)


def _row(search: Search, trial: Trial, curve: Curve | None) -> AnswerRow:
    """Some settings at the most epochs they were trained for, against the default on the same images and seeds."""
    criterion, default, epochs = search.plan.criterion, search.default, trial.epochs
    scores = trial.of_criterion(epochs, criterion)
    values = [*scores.scores.values()]
    runs = [s.run for s in trial.by_seed(epochs).values()]
    row: AnswerRow = {"label": trial.label, "settings": trial.settings, "is_default": trial.is_default, "shown": ""}
    row |= {"epochs": epochs, "seeds": len(values), "values": values, "runs": runs}
    interval, basis = interval_and_basis(scores)
    row |= {"mean": float(np.mean(values)), "interval": interval, "basis": basis}
    if curve is not None and trial.value is not None and epochs == search.plan.rungs[-1]:
        row["on_curve"] = float(curve.at([trial.value])[0][0])
    usual = default.of_criterion(epochs, criterion) if default and not trial.is_default else None
    if usual is not None and usual.scores:
        pool = [t.of_criterion(epochs, criterion) for t in search.trials.values() if t.epochs == epochs]
        finalists = sum(one.is_repeated for one in pool) - usual.is_repeated
        found = contrast(scores, usual, pool, max(1, finalists))
        row |= {"difference": found.difference, "difference_interval": found.interval, "shown": found.shown}
    return row


def _sorted(rows: list[AnswerRow]) -> list[AnswerRow]:
    """The best first: most epochs, most seeds, shown to be better, highest on the curve or, where there is none, by the
    mean. The default may have more seeds than any other."""
    most = max((r["epochs"] for r in rows), default=0)
    seeds = max((r["seeds"] for r in rows if r["epochs"] == most and not r["is_default"]), default=1)

    def order(row: AnswerRow) -> tuple[float, float, bool, float]:
        height = number_of(row.get("on_curve", row["mean"]))
        return -row["epochs"], -min(row["seeds"], seeds), row["shown"] != "better", -height

    return sorted(rows, key=order)


def _points(search: Search) -> list[CurvePoint]:
    points: list[CurvePoint] = [
        {
            "value": trial.value,
            "label": trial.label,
            "epochs": epochs,
            "seed": seed,
            "score": scores.value(search.plan.criterion),
            "uniformity": scores.value("uniformity"),
            "tolerance": scores.value("tolerance"),
        }
        for trial in search.trials.values()
        for (epochs, seed), scores in trial.scores.items()
        if trial.value is not None and not scores.failure
    ]
    return sorted(points, key=lambda p: (p["epochs"], p["value"], p["seed"]))


def recommend(rows: list[AnswerRow], best: AnswerRow | None) -> AnswerRow | None:
    """The setting to take: the best where it is shown to be better, else the default."""
    if best is None or best["shown"] == "better":
        return best
    return next((r for r in rows if r["is_default"]), best)


def untried_labels(search: Search) -> list[str]:
    """Settings, one question at a time from the default, that there was no time for."""
    if search.plan.is_curve:
        return []  # the curve speaks for what lies between
    tried = search.tried
    return [c.label for found in search.questions.values() for c in found if c.label not in tried]


def verdict_text(search: Search, rows: list[AnswerRow], best: AnswerRow | None) -> str:
    """One to four sentences."""
    if best is None:
        return N_("No decisions yet.")
    if len(rows) == 1:
        return message("Only {label} has been judged so far.", label=best["label"])
    text = _of_the_best(search, rows, best)
    below = _below_untrained(search, rows)
    return text + f" {below}" if below else text


def _of_the_best(search: Search, rows: list[AnswerRow], best: AnswerRow) -> str:
    points, unit = _scale(search)
    values = {"label": best["label"], "seeds": best["seeds"], "unit": unit}
    if best["is_default"]:
        text = _of_the_default(search, best)
    elif best["shown"] == "better":
        assert best["difference_interval"] is not None  # shown by it
        low, high = (f"{points * end:.1f}" for end in best["difference_interval"])
        text = message(
            "Take {label}: better than the default by {difference}{unit} (95 % CI over images and {seeds} seeds: {low} "
            "to {high}).",
            **{**values, "difference": f"{points * best['difference']:.1f}", "low": low, "high": high},
        )
    elif best["seeds"] >= SEEDS:
        template = N_(
            "No significant difference on these data. {label} scored highest, {difference}{unit} from the default. "
            "Use either."
        )
        if "on_curve" in best:
            template = N_(
                "No significant difference on these data. The curve is highest at {label}, {difference}{unit} from "
                "the default. Use either."
            )
        text = message(template, **{**values, "difference": f"{points * best['difference']:+.1f}"})
    else:
        return _not_repeated(search, rows, best)
    return text if any(r["shown"] == "better" for r in rows) else text + _smallest(search, rows)


def _of_the_default(search: Search, best: AnswerRow) -> str:
    assert search.default is not None
    fitted = search.curve()
    if fitted is None:
        return message("Keep the default, {label}: no other setting scored better.", label=best["label"])
    text = message("Keep the default, {label}: it scored highest of the settings tried.", label=best["label"])
    if best["seeds"] > 1:
        template = N_("Keep the default, {label}: it scored highest of the settings tried with {seeds} seeds.")
        text = message(template, label=best["label"], seeds=best["seeds"])
    top = max(fitted.places(), key=lambda value: float(fitted.at([value])[0][0]))
    if abs(math.log(top / (search.default.value or top))) > math.log(DISTINCT):
        text += message(" Its maximum is near {top}. More time would test that value.", top=f"{top:.2g}")
    return text


def _not_repeated(search: Search, rows: list[AnswerRow], best: AnswerRow) -> str:
    """A single seed, or two, show nothing: the default stands until they do."""
    points, unit = _scale(search)
    text = message("No significant difference yet: {label} scored highest", label=best["label"])
    same = [r for r in rows if r["label"] != best["label"] and all(r[k] == best[k] for k in ("epochs", "seeds"))]
    if "on_curve" in best:
        text = message("No significant difference yet: {label} scored highest on the curve", label=best["label"])
    elif ties := [r["label"] for r in same if abs(r["mean"] - best["mean"]) < 1e-9]:
        text += message(", with {ties}", ties=join(", ", ties))
    text += N_(", with one seed") if best["seeds"] == 1 else message(", with {seeds} seeds", seeds=best["seeds"])
    if "difference" in best:
        difference = f"{points * best['difference']:+.1f}"
        text += message(" and {difference}{unit} from the default", difference=difference, unit=unit)
    minutes = (SEEDS * 2) * search.cost(search.plan.rungs[-1]) / 60
    return message(
        "{text}. Keep the default until more seeds confirm it: three seeds of both take about {value} min.",
        text=text,
        value=max(1, math.ceil(minutes)),
    )


def _below_untrained(search: Search, rows: list[AnswerRow]) -> str:
    if not search.baselines or search.plan.criterion != "knn":
        return ""
    name, share = max(search.baselines.items(), key=lambda item: item[1])
    if max(number_of(r["mean"]) for r in rows) >= share:
        return ""
    values = {"name": name, "share": f"{100 * share:.1f}"}
    return message(
        "Every try scores below {name} ({share} %), so these tries are too short to choose from. Give them more time "
        "and more epochs.",
        **values,
    )


def _smallest(search: Search, rows: list[AnswerRow]) -> str:
    """Return the smallest detectable difference, from the settings with every seed."""
    repeated = [r.get("difference_interval") for r in rows if r["seeds"] >= SEEDS and not r["is_default"]]
    widths = sorted(interval[1] - interval[0] for interval in repeated if interval)
    if not widths or search.plan.criterion != "knn":
        return ""
    half = f"{100 * widths[len(widths) // 2] / 2:.1f}"
    values = {"held_out": f"{search.plan.held_out:,}", "seeds": SEEDS, "half": half}
    return message(
        " With {held_out} held-out images and {seeds} seeds, a difference below about {half} points cannot be seen. "
        "More images or seeds would show it; longer training may change it.",
        **values,
    )


def _scale(search: Search) -> tuple[int, str]:
    """Return the factor and the unit of a difference."""
    return (100, N_(" points")) if search.plan.criterion == "knn" else (1, "")


def number_of(value: float) -> float:
    """A value to sort by: what is no number comes last."""
    return -math.inf if math.isnan(value) else value


def reasons(search: Search, best: AnswerRow | None) -> dict[str, list[JsonObject]]:
    """Classes that gain and lose against the default (t tests over images, corrected by Holm), and effective negatives
    over τ."""
    default, why = search.default, dict[str, list[JsonObject]]()
    if best is None or default is None:
        return why
    winner = next(t for t in search.trials.values() if t.label == best["label"])
    usual, mine = (list(t.by_seed(best["epochs"]).values()) for t in (default, winner))
    if not best["is_default"] and usual and mine and mine[0].right is not None:
        gain, groups = _mean_right(mine) - _mean_right(usual), _groups(search.dataset, search.rows)  # (n)
        changes = [(name, known) for name, of in groups if len(known := gain[of][np.isfinite(gain[of])]) > 1]
        corrected = holm([t_test(change, float(change.mean())) for _, change in changes])
        by_group: list[JsonObject] = [
            {"class": name, "change": float(change.mean()), "n": len(change)}
            for (name, change), p in zip(changes, corrected, strict=True)
            if p < ALPHA
        ]
        by_group.sort(key=lambda r: -r["change"])
        why["gain"] = [r for r in by_group if r["change"] > 0][:CLASSES]
        why["lose"] = [r for r in by_group[::-1] if r["change"] < 0][:CLASSES]
    if "temperature" in search.questions and usual:
        why["effective_negatives"] = _effective_negatives(search, usual[0].run)
    return why


def _mean_right(scores: list[HeldOutScores]) -> np.ndarray:
    """How often each held-out image is named right, over runs: (n)."""
    right = [s.right for s in scores if s.right is not None]
    return np.asarray(np.mean(right, 0))


def _groups(dataset: Dataset, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Classes, and values of known factors (of many values: thirds), with who is in each: (n)."""
    labels = dataset.labels[rows]
    for number, name in enumerate(dataset.classes):
        yield name, labels == number
    for factor, values in dataset.factors.items():
        of = np.asarray(values)[rows]
        if of.ndim != 1:
            continue
        if len(several := np.unique(of)) <= VALUES:
            yield from ((f"{factor} {value}", of == value) for value in several)
        elif of.dtype.kind in "fiub":
            low, high = np.quantile(of, [1 / 3, 2 / 3])
            yield message("{factor} up to {low}", factor=factor, low=f"{low:.3g}"), of <= low
            yield message("{factor} above {high}", factor=factor, high=f"{high:.3g}"), of > high


def _effective_negatives(search: Search, run_name: str) -> list[dict[str, float]]:
    """Over how many of a batch's other rows the softmax spreads, at each τ that was tried: exp of
    the entropy of softmax(s/τ), the mean over anchors, in the default run's own z."""
    rows = None
    with contextlib.suppress(ValueError):
        rows = cached(runs.load(run_name), "train", "z")
    if rows is None:
        return []
    z = rows.features[search.rows[:NEGATIVES]].astype(np.float64)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    values = sorted({t.value for t in search.trials.values() if t.value})
    others = len(z) - 1
    return [
        {"value": at.temperature, "negatives": at.spread * others, "of": others}
        for at in trade(z @ z.T, ~np.eye(len(z), dtype=bool), None, tuple(values))
    ]
