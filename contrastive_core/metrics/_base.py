"""Base class of metrics, their results, and confidence intervals. Units: "share" (0..1, shown in per cent), "nats",
"dimensions", "squared distance", "similarity" or ""."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import rows_of_sample, sample_text
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.score import INFLUENCE, Z95, wilson
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

PREDICTED = "predicted"  # the array of a class for each row
AMONG = 100_000  # rows among which all find their nearest in some minutes


@dataclass(frozen=True, eq=False)
class MetricResult:
    """Result of a metric. `per_sample` (n) has one value per test row, NaN where a row has none. `interval` is a 95 %
    interval if the score estimates a population value. `extras` holds plain values for the record; `arrays` holds the
    data of figures (curves, predictions, matrices)."""

    value: float
    per_sample: np.ndarray | None = None
    interval: tuple[float, float] | None = None
    unit: str = ""
    extras: JsonObject = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """Base class of a score of `test` rows that may use `train` rows. Fields made by `knob` are settings."""

    title: ClassVar[str]
    reading: ClassVar[str]  # one sentence on how to read the number
    paper: ClassVar[str] = ""
    needs_labels: ClassVar[bool] = False
    needs_train: ClassVar[bool] = False
    unit_rows: ClassVar[bool] = True  # works on rows of length 1, so a zero row has no place
    higher_is_better: ClassVar[bool | None] = True
    most: ClassVar[int | None] = None  # rows that are judged; of more, `drawn` at random, or `most`
    drawn: ClassVar[int | None] = None

    def __call__(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs | None = None) -> MetricResult:
        """Return the score of `test`. Raises CannotScore, with the reason, if it is undefined."""
        graphs = graphs or Graphs()
        if self.needs_train and train is None:
            raise CannotScore("{title} needs training rows", title=self.title)
        if self.needs_train and train is not None:
            self._check(train)
        self._check(test)
        if self.needs_train and train is not None and train.width != test.width:
            values = {"width": train.width, "test_width": test.width}
            raise CannotScore("training rows have {width} dimensions, but test rows have {test_width}", **values)
        if self.most is None or test.views is not None or len(test) <= self.most:
            return self.score(train, test, graphs)
        drawn = rows_of_sample(len(test), self.drawn or self.most)
        result = self.score(train, test.take(drawn), graphs)
        arrays = dict(result.arrays)
        if PREDICTED in arrays:
            arrays[PREDICTED] = placed(arrays[PREDICTED], drawn, len(test), -1)
        if INFLUENCE in arrays:
            arrays[INFLUENCE] = placed(arrays[INFLUENCE], drawn, len(test))
        per_sample = None if result.per_sample is None else placed(result.per_sample, drawn, len(test))
        samples = filter(None, [sample_text(len(drawn), len(test)), result.extras.get("sample")])
        extras = result.extras | {"sample": join(", ", samples)}
        return replace(result, per_sample=per_sample, arrays=arrays, extras=extras)

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        """Compute the score; the input has been checked."""
        raise NotImplementedError

    def _check(self, rows: EmbeddingSet) -> None:
        not_finite, zero = len(rows.problems["not_finite"]), len(rows.problems["zero"])
        name = message("{split} rows", split=rows.split) if rows.split else "rows"
        if not_finite:
            text = N_("{not_finite} {where} hold values that are not finite")
            raise CannotScore(text, not_finite=not_finite, where=name)
        if zero and self.unit_rows:
            raise CannotScore("{count} {where} are all zeros and have no direction", count=zero, where=name)
        if self.needs_labels:
            labels_of(rows, self.title)


def labels_of(rows: EmbeddingSet, title: str) -> np.ndarray:
    """Return the labels (n) of rows that have at least two classes. Raises CannotScore for other rows."""
    if rows.labels is None:
        raise CannotScore("{title} needs labels", title=title)
    if len(np.unique(rows.labels[rows.labels >= 0])) < 2:
        raise CannotScore("{title} needs at least two classes; got one", title=title)
    return rows.labels


def placed(values: np.ndarray, at: np.ndarray, n: int, missing: float = np.nan) -> np.ndarray:
    """Return an array (n) with `values` at the rows `at` and `missing` elsewhere."""
    of_all = np.full(n, missing, values.dtype)
    of_all[at] = values
    return of_all


def sampled(drawn: np.ndarray, n: int) -> dict[str, str]:
    """Return the sample size to record when only some of n rows were used; empty if all were."""
    return {"sample": sample_text(len(drawn), n)} if len(drawn) < n else {}


def mean_interval(influence: np.ndarray, value: float | None = None) -> tuple[float, float] | None:
    """Return the normal 95 % interval of a mean, or of the score `value`; None for fewer than two rows.

    `influence` (n): independent values, or, if the rows' values depend on each other, the score plus each row's
    influence on it. NaN for a row without a value."""
    influence = influence[~np.isnan(influence)]
    if len(influence) < 2:
        return None
    middle = float(influence.mean()) if value is None else value
    half = Z95 * float(influence.std(ddof=1)) / math.sqrt(len(influence))
    return middle - half, middle + half


def share_interval(influence: np.ndarray, value: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, with the number of independent rows that have the same variance. The
    normal interval would be empty if all rows are right. `influence`: as for `mean_interval`."""
    influence = influence[~np.isnan(influence)]
    n, variance = float(len(influence)), float(influence.var(ddof=1)) if len(influence) > 1 else 0.0
    if variance > 0 and 0 < value < 1:
        n *= value * (1 - value) / variance
    return wilson(value * n, n)


def moved_by(neighbors: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Sum each row's changes over the rows that have it as a neighbor. `neighbors`, `change`: (n, k); returns (n)."""
    return np.bincount(neighbors.ravel(), change.ravel(), minlength=len(neighbors))


def pairs_influence(value: float, per_sample: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """Return each row's influence (n) on a mean over pairs of rows, a U-statistic of order two (Hoeffding 1948): the
    mean, plus twice the deviation of the row's own mean, weighted by its number of partners. `per_sample` (n): mean
    over a row's pairs; `partners` (n): their number."""
    share = partners / partners[partners > 0].mean()
    return np.where(partners > 0, value + 2 * share * (per_sample - value), np.nan)
