"""Two checkpoints of one run with two towers: recall@k in both directions and the modality gap of each, and the paired
difference of each figure.

Both are of the same images and captions. Captions of one image depend on each other, so the bootstrap draws images,
each with its captions (cluster bootstrap: Davison and Hinkley 1997, Bootstrap Methods, section 3.8)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from contrastive_core.evaluation.towers import KS, retrieval, tower_scores
from contrastive_core.messages import N_
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.records.score import Score
from contrastive_core.records.towers import PAIR, Towers

DRAWS, STEP = 2000, 100  # of the bootstrap, and how many at a time
OTHER_ROWS = N_("the checkpoints are of different images or captions")


@dataclass(frozen=True, eq=False)
class CheckpointChange:
    """A figure of both checkpoints, and the second less the first with its 95 % interval."""

    name: str
    before: Score
    after: Score
    value: float
    interval: tuple[float, float]


def compare_checkpoints(before: Towers, after: Towers) -> list[CheckpointChange]:
    """Return recall@k in both directions and the modality gap of two checkpoints, with their differences.

    Raises: ValueError where they are not of the same rows; CannotScore where no row has a partner."""
    if before.rows.ids != after.rows.ids or not np.array_equal(before.rows.columns[PAIR], after.rows.columns[PAIR]):
        raise ValueError(OTHER_ROWS)
    (first, _, _), (second, _, _) = map(tower_scores, (before, after))
    names = [f"recall_{k}_{way}" for way in ("forth", "back") for k in KS] + ["modality_gap"]
    rng = np.random.default_rng(0)
    clusters = int(_clusters(before).max()) + 1
    sums = [_Sums.of(towers, clusters) for towers in (before, after)]
    drawn = []
    for _ in range(0, DRAWS, STEP):
        weight = rng.multinomial(clusters, np.full(clusters, 1 / clusters), STEP).astype(np.float64)
        drawn.append(sums[1].figures(weight) - sums[0].figures(weight))
    ends = np.quantile(np.concatenate(drawn), [0.025, 0.975], axis=0)  # (2, figures)
    changes = []
    for name, low, high in zip(names, *ends.tolist(), strict=True):
        a, b = first[name], second[name]
        if a.value is not None and b.value is not None:
            changes.append(CheckpointChange(name, a, b, b.value - a.value, (low, high)))
    return changes


def _clusters(towers: Towers) -> np.ndarray:
    """The number (n) of each row's image."""
    return np.unique(towers.rows.columns[PAIR], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the rows of each image (g): the hits at each k, and how many there are; unit rows
    and their number, of each tower."""

    right: Float64[np.ndarray, "g 6"]
    queries: Float64[np.ndarray, "g 6"]
    means: tuple[tuple[Float64[np.ndarray, "g d"], Float64[np.ndarray, " g"]], ...]

    @classmethod
    def of(cls, towers: Towers, clusters: int) -> "_Sums":
        cluster, right, queries, means = _clusters(towers), [], [], []
        for reverse in (False, True):
            found = retrieval(towers, reverse)
            of = cluster[found.rows]
            right += [np.bincount(of, found.ranks.hits(k), clusters) for k in KS]
            queries += [np.bincount(of, minlength=clusters).astype(np.float64)] * len(KS)
        for rows, _ in towers.usable_sides():
            total = np.zeros((clusters, towers.rows.width))
            np.add.at(total, cluster[rows], unit_rows(towers.rows.features[rows]))
            means.append((total, np.bincount(cluster[rows], minlength=clusters).astype(np.float64)))
        return cls(np.stack(right, 1), np.stack(queries, 1), tuple(means))

    def figures(self, weight: Float64[np.ndarray, "s g"]) -> Float64[np.ndarray, "s 7"]:
        """Recall and gap where each image counts so often, for each of s draws."""
        mean_a, mean_b = ((weight @ total) / np.maximum(weight @ n, 1)[:, None] for total, n in self.means)
        recall = (weight @ self.right) / np.maximum(weight @ self.queries, 1)
        return np.column_stack([recall, np.linalg.norm(mean_a - mean_b, axis=1)])
