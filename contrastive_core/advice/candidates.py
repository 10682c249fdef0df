"""The candidates of each question: the settings to try, including the default.

A candidate is a label and the settings that `train --set` takes. The curve through the scores of one number rests on
values side by side scoring about the same: a Gaussian process (Rasmussen and Williams 2006, chapter 2) over the
number's logarithm, with fixed length. Its noise is that of one run: the binomial's, or the spread of the seeds at one
value where that is larger. Its height follows the scores. Its band contains seeds and images; there is none before one
value has three seeds.
"""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from contrastive_core import losses, methods
from contrastive_core.advice.fitting_methods import fitting_methods
from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.evaluation.paired_tests import Z95
from contrastive_core.evaluation.verdicts import ALPHA
from contrastive_core.messages import N_, message
from contrastive_core.records.advice import QUESTIONS, START
from contrastive_core.records.advice_answer import CurvePlace
from contrastive_core.records.recipe import Recipe
from contrastive_core.records.score import SEEDS
from contrastive_core.training.defaults import usual_settings

TEMPERATURES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
MARGINS = (0.05, 0.1, 0.2, 0.5, 1.0)
HEAD = {"nonlinear": N_("nonlinear head"), "linear": N_("linear head"), "none": N_("no head")}
NEAR = 1.2  # a value within this factor of the default is the default
FEWEST = 3  # places that a curve needs
PLACES = 200  # of a curve that are looked at
NEW = 1.05  # a value within this factor of one that was tried tells nothing new
LENGTH = float(np.log(4))  # of the logarithm, over which scores stay alike
AMPLITUDE = 2.0  # of the curve at least, in standard deviations of one run's score


@dataclass(frozen=True)
class Candidate:
    """One answer to one question. `settings` are {} for the default."""

    question: str
    label: str
    settings: dict[str, object]
    value: float | None = None  # where it stands on a curve


def check_questions(names: Sequence[str]) -> list[str]:
    """The names, each once. Raises BadSetting for one that is no question."""
    for name in names:
        if name not in QUESTIONS:
            raise BadSetting(f"--choose takes {', '.join(QUESTIONS)}; got {name!r}")
    if not names:
        raise BadSetting(f"--choose takes at least one of {', '.join(QUESTIONS)}")
    if START in names and len(set(names)) > 1:
        raise BadSetting("{start} is asked alone: whether to train comes before how", start=START)
    return list(dict.fromkeys(names))


def candidates(question: str, method: str, dataset: Dataset, among: Sequence[str] = ()) -> list[Candidate]:
    """What is tried for a question, the default first. Raises BadSetting where the method's loss has none.
    Args: among: methods to choose from; (): all that fit."""
    cls, usual = methods.get(method), usual_settings(method, dataset)
    others: dict[str, dict[str, object]]
    match question:
        case "temperature":
            loss = usual.get("loss") or cls.card.default_loss
            return _of_the_loss(loss, losses.knobs(loss), usual.get("loss_knobs", cls.card.loss_knobs))
        case "batch":
            batch = int(usual.get("batch_size") or 128)
            sizes = [b for b in (batch // 4, batch // 2, 2 * batch) if 8 <= b <= len(dataset) // 4]
            first = Candidate(question, message("batch {batch}", batch=batch), {}, batch)
            labels = [message("batch {second}", second=b) for b in sizes]
            return [first, *(Candidate(question, x, {"batch_size": b}, b) for x, b in zip(labels, sizes, strict=True))]
        case "method":
            names = among or fitting_methods(dataset)[0]
            default, others = cls.card.title, {methods.get(m).card.title: {"method": m} for m in names if m != method}
        case "start":
            default, others = N_("from scratch"), {}  # going on from an encoder is known once these are judged
        case "head":
            head = {"head": "nonlinear", **usual.get("method_knobs", {})}["head"]
            default, others = HEAD[head], {HEAD[h]: {"method.head": h} for h in HEAD if h != head}
        case _:
            default = N_("usual views")
            others = _recipe_changes(dataclasses.asdict(usual.get("recipe", Recipe())), dataset)
    return [Candidate(question, default, {}), *(Candidate(question, x, settings) for x, settings in others.items())]


def _of_the_loss(loss: str, knobs: Any, usual: Mapping[str, Any]) -> list[Candidate]:
    name, grid = ("temperature", TEMPERATURES) if "temperature" in knobs else ("margin", MARGINS)
    if name not in knobs:
        raise BadSetting("{loss} has no temperature or margin to choose", loss=loss)
    default = usual.get(name, knobs[name].default)
    sign = "τ" if name == "temperature" else "margin"
    if not isinstance(default, (int, float)):
        raise BadSetting("the {name} of {loss} is learned by default; there is nothing to choose", name=name, loss=loss)
    others = [v for v in grid if max(v / default, default / v) > NEAR]
    return [
        Candidate("temperature", f"{sign} {default:g}", {}, float(default)),
        *(Candidate("temperature", f"{sign} {v:g}", {f"loss.{name}": v}, v) for v in others),
    ]


def _recipe_changes(usual: Mapping[str, Any], dataset: Dataset) -> dict[str, dict[str, object]]:
    """One step away from the usual recipe at a time: settings by label."""
    _, c, h, _ = dataset.images.shape
    changes: dict[str, dict[str, object]] = {}
    changes["no mirroring" if usual["flip"] else "mirroring"] = {"flip": 0.0 if usual["flip"] else 0.5}
    if usual["crop"]:
        low = usual["crop_low"]
        changes["smaller crops"] = {"crop_low": round(max(0.08, low / 2), 2)}
        changes["larger crops"] = {"crop_low": round(min(0.9, (1 + low) / 2), 2)}
    if c == 3 and (usual["hue"] or usual["gray"]) and usual["jitter"]:
        changes["no hue shift, no gray"] = {"hue": 0.0, "gray": 0.0}
    if usual["jitter"]:
        changes["no color steps"] = {"jitter": 0.0, "gray": 0.0}
    if h >= 16 and not usual["blur"]:
        changes["with blur"] = {"blur": 0.5}
    return {label: {f"recipe.{k}": v for k, v in change.items()} for label, change in changes.items()}


# --- the curve through the scores of one number ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Curve:
    """The expected score at each value."""

    process: GaussianProcessRegressor
    mean: float
    low: float  # the values that were tried lie between
    high: float
    images: float  # standard deviation of a score over images: that of all runs, which are judged on the same
    freedom: int  # of the spread between seeds; 0 where no value has three

    def at(self, values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Expected score and half its 95 % interval: (n), (n)."""
        x = np.log(np.asarray(values, dtype=np.float64))[:, None]
        mean, sd = self.process.predict(x, return_std=True)
        return mean + self.mean, Z95 * sd

    def places(self, points: int = 41) -> list[float]:
        """Evenly spaced places on the logarithm between the values that were tried."""
        return [float(value) for value in np.geomspace(self.low, self.high, points)]

    def sampled(self, points: int = 41) -> list[CurvePlace]:
        """The curve with its band. `low` and `high` are None where too few seeds were trained."""
        values = self.places(points)
        mean, half = self.at(values)
        rows: list[CurvePlace] = []
        for value, score, of_seeds in zip(values, mean.tolist(), half.tolist(), strict=True):
            row: CurvePlace = {"value": value, "score": score, "low": None, "high": None}
            if self.freedom:
                of_seeds *= -stdtrit(self.freedom, ALPHA / 2) / Z95
                both = math.hypot(of_seeds, Z95 * self.images)
                row["low"], row["high"] = score - both, score + both
            rows.append(row)
        return rows


def fit_curve(points: Sequence[tuple[float, float, np.ndarray | None]]) -> Curve | None:
    """The curve of runs.
    Args: points: of each run its value, its score, and whether each held-out image was named right (n), or None.
    Returns: None where fewer than `FEWEST` values have a score."""
    runs = [(v, s, right) for v, s, right in points if np.isfinite(s)]
    values = np.array([v for v, _, _ in runs])
    if len(np.unique(values)) < FEWEST:
        return None
    scores = np.array([s for _, s, _ in runs])
    mean = float(scores.mean())
    (between, freedom), images = _spread_of_seeds(values, scores), _noise(scores, runs[0][2])
    noise = max(images, between)
    amplitude = max(AMPLITUDE * noise, float(scores.std()))
    kernel = ConstantKernel(amplitude**2, "fixed") * RBF(LENGTH, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=noise**2, optimizer=None)
    process.fit(np.log(values)[:, None], scores - mean)
    images = 0.0 if runs[0][2] is None else images
    return Curve(process, mean, float(values.min()), float(values.max()), images, freedom)


def _noise(scores: np.ndarray, right: np.ndarray | None) -> float:
    """Standard deviation of one run's score: of a share, the binomial's; else a guess."""
    if right is None:
        return max(float(scores.std()) / AMPLITUDE, 1e-6)
    share = float(np.clip(scores.mean(), 0.02, 0.98))
    return float(np.sqrt(share * (1 - share) / max(1, len(right))))


def _spread_of_seeds(values: np.ndarray, scores: np.ndarray) -> tuple[float, int]:
    """Standard deviation between seeds, pooled over the values that were trained more than once (0 where none was), and
    its degrees of freedom, 0 where no value has three seeds."""
    groups = [scores[values == v] for v in np.unique(values)]
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
    is_known = max(map(len, groups)) >= SEEDS
    return math.sqrt(squares / freedom) if freedom else 0.0, freedom if is_known else 0


def spread(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The first, then always the one that lies farthest from those before it."""
    left, chosen = list(candidates[1:]), [candidates[0]]
    while left:
        far = max(left, key=lambda c: min(abs(np.log(_value(c) / _value(other))) for other in chosen))
        left.remove(far)
        chosen.append(far)
    return chosen


def _value(candidate: Candidate) -> float:
    assert candidate.value is not None
    return candidate.value


def next_on_curve(found: Sequence[Candidate], fitted: Curve, tried: Collection[float]) -> Candidate | None:
    """The value whose interval on the curve has the highest upper end; None where every place was tried nearby."""
    values = [c.value for c in found if c.value is not None]
    places = sorted({float(f"{v:.2g}") for v in np.geomspace(min(values), max(values), PLACES)})
    places = [v for v in places if all(max(v / t, t / v) > NEW for t in tried)]
    if not places:
        return None
    mean, half = fitted.at(places)
    value = places[int(np.argmax(mean + half))]
    known = next((c for c in found if c.value == value), None)
    sign, key = found[0].label.rpartition(" ")[0], next(iter(found[-1].settings))
    return known or Candidate("temperature", f"{sign} {value:g}", {key: value}, value)
