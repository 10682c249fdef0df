"""Scores of two towers: recall in both directions, zero-shot accuracy, and the gap between the towers.

All are of cosines. Similarities are taken BLOCK numbers at a time, so memory stays bounded for 100,000 pairs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from contrastive_core.errors import CannotScore
from contrastive_core.messages import N_, message
from contrastive_core.ops.partner_ranks import BLOCK, gap_of_means, partner_ranks, unit_rows
from contrastive_core.records.score import Score, Scores, scores_to_json, wilson
from contrastive_core.records.towers import Towers
from contrastive_core.storage.json_files import JsonObject

KS = (1, 5, 10)
UNPAIRED = N_("no usable row has a partner in the other tower")
RECALL = N_("Recall@{k}, {a} → {b}")
READING = N_(
    "Of the rows of {a} with a partner, the share whose partner is among the {k} most similar rows of {b}. Higher is "
    "better. Chance is the recall of a random order."
)
GAP = N_(
    "The distance between the means of the unit vectors of both towers, 0 to 2. At 0 the towers share one region; a "
    "large gap separates them even where partners match."
)
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


def retrieval(towers: Towers, reverse: bool = False, ks: tuple[int, ...] = KS, most: int | None = None) -> Retrieval:
    """Return the ranks of partners and recall@k from tower a to tower b, or from b to a; of at most `most` queries,
    spread evenly, each among all candidates.

    A query is right at k where any of its partners is among the k most similar rows. Rows without a partner are no
    queries, but stay among the candidates. Rows that are zero or not finite are left out. Another row as similar as
    the best partner comes before it, so a collapsed encoder scores 0. Source: CLIP, arXiv 2103.00020.
    Raises: CannotScore where no row has a partner."""
    sides = towers.usable_sides()
    (at, group), (others, other_group) = sides[::-1] if reverse else sides
    is_query = (group >= 0) & np.isin(group, other_group)
    at, group = at[is_query], group[is_query]
    if most is not None and len(at) > most:
        chosen = np.linspace(0, len(at) - 1, most).round().astype(np.int64)
        at, group = at[chosen], group[chosen]
    if not len(at):
        raise CannotScore(UNPAIRED)
    ranks = partner_ranks(
        unit_rows(towers.rows.features[at]), unit_rows(towers.rows.features[others]), group, other_group, BLOCK
    )
    partners = np.bincount(other_group[other_group >= 0], minlength=group.max() + 1)[group]
    n, recall = len(at), {}
    for k in ks:
        right = int((ranks <= k).sum())
        recall[k] = Share(right / n, wilson(right, n), float(_chance(partners, len(others), k).mean()), n)
    return Retrieval(at, ranks, recall)


@dataclass(frozen=True)
class Partner:
    """A row's partner in the other tower, their cosine, and the rank (from 1) of each among the other's rows."""

    row: int
    similarity: float
    rank: int
    rank_back: int


def tower_scores(towers: Towers) -> tuple[Scores, Scores, Int64[np.ndarray, " n"]]:
    """Return recall@k in both directions and the modality gap; what chance gives; and the rank of each row's best
    partner, -1 for a row without one."""
    own: Scores = {}
    chance: Scores = {}
    ranks = np.full(len(towers.rows), -1)
    for reverse in (False, True):
        a, b = towers.names[::-1] if reverse else towers.names
        try:
            found, missing = retrieval(towers, reverse), ""
        except CannotScore as error:
            found, missing = None, str(error)
        if found is not None:
            ranks[found.rows] = found.ranks
        for k in KS:
            name, words = f"recall_{k}_{'back' if reverse else 'forth'}", {"k": k, "a": a, "b": b}
            title, reading = message(RECALL, **words), message(READING, **words)
            if found is None:
                own[name] = Score(title, reading, missing=missing)
                continue
            share, about = found.recall[k], {"n": found.recall[k].n, "k": k}
            own[name] = Score(title, reading, share.value, share.interval, "share", True, extras=about)
            chance[name] = Score(title, reading, share.chance, unit="share")
    try:
        own["modality_gap"] = Score(N_("Modality gap"), GAP, modality_gap(towers))
    except CannotScore as error:
        own["modality_gap"] = Score(N_("Modality gap"), GAP, missing=str(error))
    return own, chance, ranks


def tower_record(towers: Towers, name: str) -> JsonObject:
    """Return the scores of a file of two towers, as `evaluate_file` does for one."""
    own, chance, _ = tower_scores(towers)
    return {
        "file": name,
        "n": len(towers.rows),
        "n_test": sum(len(at) for at, _ in towers.usable_sides()),
        "n_train": 0,
        "left_out": {reason: len(at) for reason, at in towers.rows.problems.items()},
        "scores": scores_to_json(own),
        "chance": scores_to_json(chance),
    }


def partners_of(towers: Towers, row: int, most: int = 20) -> list[Partner]:
    """Return the partners of a row, the most similar first; ranks as of `retrieval`. [] for a row without one."""
    (own, group), (others, other_group) = towers.usable_sides()
    if row not in own:
        (own, group), (others, other_group) = (others, other_group), (own, group)
    if row not in own or (of_row := group[own == row][0]) < 0:
        return []
    rows, partners = towers.rows, others[other_group == of_row]
    s = rows.features @ rows.features[row] / rows.lengths / rows.lengths[row]  # (n)
    partners = partners[np.argsort(-s[partners], kind="stable")][:most]
    back = rows.features @ rows.features[partners].T / rows.lengths[:, None] / rows.lengths[partners]  # (n, partners)
    rivals, rivals_back = others[other_group != of_row], own[group != of_row]
    return [
        Partner(
            int(j),
            float(s[j]),
            1 + int((s[rivals] >= s[j]).sum()),
            1 + int((back[rivals_back, q] >= back[row, q]).sum()),
        )
        for q, j in enumerate(partners)
    ]


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
    unit = unit_rows(prompts)
    means = unit_rows(np.stack([unit[classes == c].mean(0) for c in named]))
    predicted = named[(unit_rows(images[judged]) @ means.T).argmax(1)]
    right, n = int((predicted == labels[judged]).sum()), int(judged.sum())
    return Share(right / n, wilson(right, n), 1 / len(named), n)


def modality_gap(towers: Towers) -> float:
    """Return the distance (0 to 2) between the means of the unit rows of both towers, as of `gap_of_means`.
    Raises: CannotScore where a tower has no usable row."""
    parts = [at for at, _ in towers.usable_sides()]
    if not all(len(part) for part in parts):
        raise CannotScore(UNPAIRED)
    return gap_of_means(*(towers.rows.features[part] for part in parts))


def _chance(partners: np.ndarray, m: int, k: int) -> Float64[np.ndarray, " q"]:
    """Probability (q) that k of m rows drawn at random hold one of so many partners (q)."""
    missed = np.ones(len(partners))
    for drawn in range(min(k, m)):
        missed *= np.maximum(m - partners - drawn, 0) / (m - drawn)
    return 1 - missed
