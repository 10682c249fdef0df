"""Scores of two towers: recall in both directions, zero-shot accuracy, and the gap between the towers.

All are of cosines. Similarities are taken BLOCK numbers at a time, so memory stays bounded for 100,000 pairs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from contrastive_core.errors import CannotScore
from contrastive_core.messages import N_
from contrastive_core.records.score import wilson
from contrastive_core.records.towers import Towers

KS = (1, 5, 10)
BLOCK = 1 << 24  # similarities that are held together
UNPAIRED = N_("no usable row has a partner in the other tower")
UNLABELED = N_("zero-shot accuracy needs a labeled image and a prompt for its class")


@dataclass(frozen=True)
class Share:
    """A share of n queries that are right, its Wilson 95 % interval, and what chance gives."""

    value: float
    interval: tuple[float, float]
    chance: float
    n: int


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Ranks of one direction: `rows` (q), the set's row numbers of the queries; `ranks` (q), from 1, of the best
    partner of each; `recall` by k."""

    rows: Int64[np.ndarray, " q"]
    ranks: Int64[np.ndarray, " q"]
    recall: dict[int, Share]


def retrieval(towers: Towers, reverse: bool = False, ks: tuple[int, ...] = KS) -> Retrieval:
    """Return the ranks of partners and recall@k from tower a to tower b, or from b to a.

    A query is right at k where any of its partners is among the k most similar rows. Rows without a partner are no
    queries, but stay among the candidates. Rows that are zero or not finite are left out. Another row as similar as
    the best partner comes before it, so a collapsed encoder scores 0. Source: CLIP, arXiv 2103.00020.
    Raises: CannotScore where no row has a partner."""
    sides = [(towers.a, towers.group_a), (towers.b, towers.group_b)]
    (at, group), (others, other_group) = (_usable(towers, *side) for side in (sides[::-1] if reverse else sides))
    is_query = (group >= 0) & np.isin(group, other_group)
    at, group = at[is_query], group[is_query]
    if not len(at):
        raise CannotScore(UNPAIRED)
    ranks = _ranks(_unit(towers.rows.features[at]), _unit(towers.rows.features[others]), group, other_group)
    partners = np.bincount(other_group[other_group >= 0], minlength=group.max() + 1)[group]
    n, recall = len(at), {}
    for k in ks:
        right = int((ranks <= k).sum())
        recall[k] = Share(right / n, wilson(right, n), float(_chance(partners, len(others), k).mean()), n)
    return Retrieval(at, ranks, recall)


def zero_shot(
    images: Float32[np.ndarray, "n d"],
    prompts: Float32[np.ndarray, "p d"],
    classes: Int64[np.ndarray, " p"],
    labels: Int64[np.ndarray, " n"],
) -> Share:
    """Return the share of images whose most similar class is their own. The vector of a class is the mean of its unit
    prompts (p, d), at length 1. Args: classes: of each prompt; labels: of each image, -1 for none.
    Source: CLIP, arXiv 2103.00020. Raises: CannotScore without a labeled image of a class that has a prompt."""
    named = np.unique(classes)
    judged = np.isin(labels, named) & np.isfinite(images).all(1) & images.any(1)
    if not judged.any():
        raise CannotScore(UNLABELED)
    unit = _unit(prompts)
    means = _unit(np.stack([unit[classes == c].mean(0) for c in named]))
    predicted = named[(_unit(images[judged]) @ means.T).argmax(1)]
    right, n = int((predicted == labels[judged]).sum()), int(judged.sum())
    return Share(right / n, wilson(right, n), 1 / len(named), n)


def modality_gap(towers: Towers) -> float:
    """Return the distance (0 to 2) between the means of the unit rows of both towers.
    Source: Liang et al. 2022, arXiv 2203.02053. Raises: CannotScore where a tower has no usable row."""
    parts = [_usable(towers, *side)[0] for side in ((towers.a, towers.group_a), (towers.b, towers.group_b))]
    if not all(len(part) for part in parts):
        raise CannotScore(UNPAIRED)
    mean_a, mean_b = (_unit(towers.rows.features[part]).mean(0, dtype=np.float64) for part in parts)
    return float(np.linalg.norm(mean_a - mean_b))


def _usable(towers: Towers, at: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers and groups of the rows that have a direction."""
    kept = np.isin(at, towers.rows.usable)
    return at[kept], group[kept]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _ranks(queries: np.ndarray, others: np.ndarray, group: np.ndarray, other_group: np.ndarray) -> np.ndarray:
    """Rank (q), from 1, of the best partner of each query among the others (m) that are no partners or as good."""
    ranks = np.empty(len(queries), np.int64)
    step = max(1, BLOCK // len(others))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        s = queries[part] @ others.T  # (step, m)
        is_partner = group[part, None] == other_group[None]
        best = np.where(is_partner, s, -np.inf).max(1)
        ranks[part] = 1 + ((s >= best[:, None]) & ~is_partner).sum(1)
    return ranks


def _chance(partners: np.ndarray, m: int, k: int) -> Float64[np.ndarray, " q"]:
    """Probability (q) that k of m rows drawn at random hold one of so many partners (q)."""
    missed = np.ones(len(partners))
    for drawn in range(min(k, m)):
        missed *= np.maximum(m - partners - drawn, 0) / (m - drawn)
    return 1 - missed
