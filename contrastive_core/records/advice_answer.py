"""What an adviser answers, as it lies in its folder and as pages show it. Torch-free."""

import math
from pathlib import Path
from typing import NotRequired, TypedDict

from contrastive_core.records.advice import adviser_of, folder_of
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.regular_files import FileCache


class Regime(TypedDict):
    """What the methods scored at equal epochs, or at equal time; `best`: the one to take, "" while not decided."""

    regime: str
    title: str
    rows: list[JsonObject]
    verdict: str
    best: str


class AnswerRow(TypedDict, total=False):
    """Some settings at the most epochs they were trained for. `basis`: what the interval is over; `on_curve`: what the
    curve expects there, where there is one. The last three compare them with the default."""

    label: str
    settings: dict[str, object]
    is_default: bool
    epochs: int
    seeds: int
    values: list[float]
    mean: float
    on_curve: float
    interval: tuple[float, float] | None
    basis: str
    runs: list[str]
    shown: str
    difference: float
    difference_interval: tuple[float, float] | None


class CurvePoint(TypedDict):
    """One run whose settings have a place on an axis."""

    value: float
    label: str
    epochs: int
    seed: int
    score: float
    uniformity: float
    tolerance: float


class CurvePlace(TypedDict):
    """The curve at one value, with its band where enough seeds were trained."""

    value: float
    score: float
    low: float | None
    high: float | None


class Decision(TypedDict):
    """Whether to train: `answer` is one of OPTIONS, "" while it is not decided; `encoder`: the best frozen one's title;
    `rows`: every option with its score; `pairs`: the comparisons that it rests on."""

    answer: str
    sentence: str
    encoder: str
    rows: list[JsonObject]
    pairs: list[JsonObject]


class Answer(TypedDict):
    """The answer so far; `done` after the evaluation on the test images."""

    plan: dict[str, object]
    criterion: str
    rows: list[AnswerRow]
    best: AnswerRow | None
    recommended: AnswerRow | None
    untried: list[str]
    baselines: dict[str, float]
    verdict: str
    curve: list[CurvePoint]
    smooth: list[CurvePlace]
    why: dict[str, list[JsonObject]]
    failed: dict[str, str]
    spent: float
    test: JsonObject | None
    done: bool
    decision: NotRequired[Decision | None]
    regimes: NotRequired[list[Regime]]


def read_answer(name: str) -> Answer | None:
    """The answer so far; None before the first scored run, or where it is damaged."""
    try:
        return Answer(**json_files.read_object(folder_of(name) / "answer.json"))  # type: ignore[typeddict-item]
    except (OSError, ValueError):
        return None


def trial_scores(run: str) -> dict[str, float]:
    """What an adviser scored for one of its tries on the held-out images, by criterion: "knn" as a share, or "lidar"
    where they have no labels. {} of another run, and of a try that was not scored."""
    try:
        name = adviser_of(run)
        return {} if name is None else _trial_scores(folder_of(name) / "scores" / f"{run}.json")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none, or it is damaged
        return {}


def _read_trial_scores(path: Path) -> dict[str, float]:
    known = {key: float(v) for key, v in json_files.read_object(path)["scores"].items() if v is not None}
    return {key: known[key] for key in ("knn", "lidar") if math.isfinite(known.get(key, math.nan))}


_trial_scores = FileCache(_read_trial_scores, 5000)
