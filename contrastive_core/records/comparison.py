"""What a comparison of some spaces gives: who is right, differences, matrices, and it in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_core.messages import N_, message
from contrastive_core.records.score import Scores, scores_from_json, scores_to_json
from contrastive_core.storage.json_files import JsonObject

ACCURACIES = {"knn": N_("kNN accuracy"), "linear_probe": N_("linear probe accuracy")}


@dataclass(frozen=True)
class Difference:
    """Accuracy of `a` less that of `b` on the same samples, with interval and p values."""

    metric: str
    a: str
    b: str
    value: float
    interval: tuple[float, float]
    p: float
    p_corrected: float
    only_a: int  # samples that a has right and b wrong
    only_b: int

    @property
    def claimed(self) -> bool:
        """Whether the data show a difference."""
        low, high = self.interval
        return (low > 0 or high < 0) and self.p_corrected < 0.05


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything that the Compare page draws. Matrices are (runs, runs)."""

    names: list[str]
    ids: tuple[str, ...]
    labels: np.ndarray | None
    correct: dict[str, np.ndarray]  # by accuracy: (runs, n), who is right
    accuracy: dict[str, list[float]]  # by accuracy: of each run
    differences: list[Difference]  # of each accuracy and pair of runs
    cka: np.ndarray
    overlap: np.ndarray
    procrustes: np.ndarray
    k: int
    graphs: np.ndarray  # (runs, n, k): the nearest rows of each sample
    tests: list[JsonObject]  # paired tests of every score, corrected together
    scores: list[Scores]  # every score of each run, if they were asked for
    seeds: dict[str, str] = field(default_factory=dict)  # what the seeds say of two methods
    made_of: dict[str, list[str]] = field(default_factory=dict)  # by accuracy: what each run's is
    # made of, where some are of a sample or of approximate neighbors (Score.approximation)
    recall: float | None = None  # of the graphs, where they are approximate

    @property
    def right(self) -> np.ndarray | None:
        """(runs, n): who is right by the first accuracy; None without labels."""
        return next(iter(self.correct.values()), None)

    @property
    def verdict(self) -> str:
        """One sentence: the winner by the first accuracy, or that there is none."""
        return next(iter(self.verdicts.values()), "") or (
            N_("Without labels no space is better than another; below is how alike they are.")
        )

    @property
    def verdicts(self) -> dict[str, str]:
        """By accuracy: the winner, the difference and its interval, or that there is none."""
        return {
            metric: _verdict(self.names, accuracy, [d for d in self.differences if d.metric == metric])
            for metric, accuracy in self.accuracy.items()
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """What is not plain values, by name."""
        names = ("labels", "cka", "overlap", "procrustes", "graphs")
        arrays = {k: v for k in names if (v := getattr(self, k)) is not None}
        return arrays | {f"correct:{metric}": v for metric, v in self.correct.items()}

    def plain(self) -> JsonObject:
        """The rest, as plain values."""
        names = ("names", "ids", "accuracy", "k", "tests", "seeds", "made_of", "recall")
        return {
            **{k: getattr(self, k) for k in names},
            "scores": [scores_to_json(scores) for scores in self.scores],
            "differences": [dataclasses.asdict(d) for d in self.differences],
        }

    @classmethod
    def of(cls, plain: JsonObject, arrays: Mapping[str, Any]) -> Comparison:
        """The comparison that gave `plain()` and `arrays()`."""
        fields = {
            **plain,
            "ids": tuple(plain["ids"]),
            "scores": [scores_from_json(scores) for scores in plain["scores"]],
            "differences": [Difference(**{**d, "interval": tuple(d["interval"])}) for d in plain["differences"]],
        }
        correct = {metric: arrays[f"correct:{metric}"] for metric in plain["accuracy"]}
        matrices = {k: arrays[k] for k in ("cka", "overlap", "procrustes", "graphs")}
        return cls(labels=arrays.get("labels"), correct=correct, **fields, **matrices)


def _verdict(names: Sequence[str], accuracy: Sequence[float], differences: list[Difference]) -> str:
    best = names[int(np.argmax(accuracy))]
    claimed = [d for d in differences if d.claimed]
    if not claimed:
        return N_("No difference that these data can show.")
    of_best = [d for d in differences if best in (d.a, d.b)]
    beaten = [d for d in of_best if d.claimed]
    if not beaten:
        first = max(claimed, key=lambda d: abs(d.value))
        return message("No winner that these data can show, but {sentence}", sentence=_sentence(first))
    text = _sentence(min(beaten, key=lambda d: abs(d.value)))
    if len(beaten) == 2:
        text += message(" It is better than the other too.")
    elif len(beaten) > 2:
        text += message(" It is better than {others} others too.", others=len(beaten) - 1)
    undecided = [d.b if d.a == best else d.a for d in of_best if not d.claimed]
    if undecided:
        who = ", ".join(undecided)
        if len(undecided) > 1:
            who = message("{undecided} others ({listed})", undecided=len(undecided), listed=who)
        text += message(" Between it and {who} there is no difference that these data can show.", who=who)
    return text


def _sentence(d: Difference) -> str:
    """The better one, the difference and its interval."""
    better, worse, sign = (d.a, d.b, 1) if d.value > 0 else (d.b, d.a, -1)
    low, high = sorted(100 * sign * v for v in d.interval)
    values = {"better": better, "worse": worse, "accuracies": ACCURACIES[d.metric]}
    values |= {"sign": f"{100 * sign * d.value:.1f}", "low": f"{low:.1f}", "high": f"{high:.1f}"}
    return message(
        "{better} is better than {worse} by {sign} points of {accuracies} (95 %: {low} to {high}).", **values
    )
