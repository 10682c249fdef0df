"""Detect whether a training has turned: a score was best at an earlier step and has fallen significantly since.
Torch-free.

The mean of the last three values is compared with the best mean of three earlier values. The noise is estimated from
the differences between successive values (von Neumann 1941, Ann. Math. Stat. 12, 367), by their median so that the
steep start does not count. Its variance is doubled because successive values depend on each other. Of n fixed rows at
least as many as the fall changed, which bounds the variance from below. At the t-th value the level is 0.05 / t (t +
1), which sums to 0.05 over the whole training. Falls below two points are not reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from contrastive_core.base.messages import N_, message

WINDOW = 3  # values of a mean
ALPHA, LEAST = 0.05, 0.02  # for a whole training; of a share
MEDIAN = 0.455  # of the square of a standard normal
SHARES = {  # by preference: of fixed rows, then of each step's own
    ("probe_knn",): N_("kNN of the probe set"),
    ("knn_train_sample",): N_("kNN of the training sample"),
    ("recall_1_forth", "recall_1_back"): N_("Recall@1 of the rows"),
    ("knn",): N_("kNN of the rows"),
}
FALLEN = N_("{score} was best at {unit} {best} ({before} %) and has fallen significantly to {now} % by {unit} {newest}")
OF_RANK = N_(
    "The effective rank was {before} at step {best} and is {now} at step {newest}, and the rows have become less "
    "uniform. Without labels or partners, this may be a collapse"
)


def fall(values: Sequence[float], n: int | None = None, least: float = 0.0) -> tuple[int, float, float] | None:
    """Return the middle of the best window, its mean and that of the last window, if values (t) have fallen
    significantly by more than `least`; else None. `n`: the number of rows behind a share, if they are the same each
    time."""
    x = np.asarray(values, np.float64)
    if (t := len(x)) < 4 * WINDOW:
        return None
    means = np.convolve(x, np.full(WINDOW, 1 / WINDOW), "valid")
    best = int(means[: t - 2 * WINDOW + 1].argmax())
    fallen = float(means[best] - means[-1])
    variance = max(2 * float(np.median(np.diff(x) ** 2)) / MEDIAN / WINDOW, fallen / n if n else 0.0)
    if fallen <= max(least, 0.0) or fallen <= -stdtrit(2 * t / 3, ALPHA / (t * (t + 1))) * variance**0.5:
        return None
    return best + WINDOW // 2, float(means[best]), float(means[-1])


def turned(lines: Iterable[Mapping[str, Any]], n: int | None = None, unit: str = "step") -> str:
    """Return a sentence with the step of the best score if it has fallen since; else "". Args: lines: of metrics, in
    the order of steps; n: labeled rows of the fixed sample; unit: "step" or "epoch", the unit of the lines."""
    every = [line for line in lines if line.get(unit) is not None]
    for names, score in SHARES.items():
        known = [line for line in every if all(line.get(name) is not None for name in names)]
        if len(known) < 4 * WINDOW:
            continue
        values = [sum(line[name] for name in names) / len(names) for line in known]
        is_fixed = names[0] in ("probe_knn", "knn_train_sample")
        if (found := fall(values, n if is_fixed else None, LEAST)) is None:
            return ""
        shares = {"before": f"{100 * found[1]:.1f}", "now": f"{100 * found[2]:.1f}"}
        steps = {"best": f"{known[found[0]][unit]:,}", "newest": f"{known[-1][unit]:,}"}
        return message(FALLEN, score=score, unit=message(unit), **shares, **steps)
    known = [line for line in every if line.get("rankme") is not None and line.get("uniformity") is not None]
    rank = fall([line["rankme"] for line in known])
    if rank is None or rank[2] > rank[1] / 2 or fall([-line["uniformity"] for line in known]) is None:
        return ""
    steps = {"best": f"{known[rank[0]]['step']:,}", "newest": f"{known[-1]['step']:,}"}
    return message(OF_RANK, before=f"{rank[1]:.1f}", now=f"{rank[2]:.1f}", **steps)
