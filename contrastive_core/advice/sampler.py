"""Settings that the adviser tries beyond its plan, where time is left.

Optuna's GPSampler and TPESampler were tried: over 12 played searches each, their choice lost 0.98 points to the best
temperature and 1.61 points to the best of three questions; this one loses 1.01 and 1.22, in a third of the time.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from contrastive_core.advice.candidates import Candidate
from contrastive_core.advice.curve import Curve
from contrastive_core.advice.trials import trial_of

NEAR = 1.05  # a value within this factor of one that was tried tells nothing new
PLACES = 200  # of a curve that are looked at
Questions = Mapping[str, Sequence[Candidate]]


def next_on_curve(found: Sequence[Candidate], curve: Curve, tried: Collection[float]) -> Candidate | None:
    """A value that may be the best by the curve: the highest upper end of its interval. None where every place is
    near one that was tried."""
    values = [c.value for c in found if c.value is not None]
    places = sorted({float(f"{v:.2g}") for v in np.geomspace(min(values), max(values), PLACES)})
    places = [v for v in places if all(max(v / t, t / v) > NEAR for t in tried)]
    if not places:
        return None
    mean, half = curve.at(places)
    value = places[int(np.argmax(mean + half))]
    known = next((c for c in found if c.value == value), None)
    sign, key = found[0].label.rpartition(" ")[0], next(iter(found[-1].settings))
    return known or Candidate("temperature", f"{sign} {value:g}", {key: value}, value)


def best_combination(
    questions: Questions, scores: Mapping[str, float], tried: Collection[str]
) -> dict[str, Candidate] | None:
    """The untried combination that is best if the effects of single answers add up: least squares over all trials.

    Args: scores: by label of a trial; tried: keys of trials. Returns: None where every combination was tried.
    """
    answers = [(q, c.label) for q, found in questions.items() for c in found]
    column = {answer: i for i, answer in enumerate(answers)}
    combinations = [dict(zip(questions, c, strict=True)) for c in itertools.product(*questions.values())]
    design = np.zeros((len(combinations), len(answers)))
    for row, choice in enumerate(combinations):
        design[row, [column[q, c.label] for q, c in choice.items()]] = 1
    trials = [trial_of(choice) for choice in combinations]
    at = [row for row, trial in enumerate(trials) if np.isfinite(scores.get(trial.label, np.nan))]
    if not at:
        return None
    y = np.array([scores[trials[row].label] for row in at])
    effects = np.linalg.lstsq(design[at], y - y.mean(), rcond=None)[0]
    order = np.argsort(-(design @ effects), kind="stable")
    return next((combinations[row] for row in order if trials[row].key not in tried), None)


def planned_choices(questions: Questions, places: Sequence[Candidate] | None = None) -> list[dict[str, Candidate]]:
    """The default, then one question at a time away from it; places: of the only question, those to try."""
    usual = {q: found[0] for q, found in questions.items()}
    steps = [(q, c) for q, found in questions.items() for c in (found[1:] if places is None else places)]
    return [usual, *({**usual, q: c} for q, c in steps)]
