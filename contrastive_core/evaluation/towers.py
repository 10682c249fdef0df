"""Scores of two towers: recall in both directions, zero-shot accuracy, and the gap between the towers.

All are of cosines. Similarities are taken BLOCK numbers at a time, so memory stays bounded for 100,000 pairs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from contrastive_core.errors import CannotScore
from contrastive_core.messages import N_, message
from contrastive_core.ops.partner_ranks import (
    BLOCK,
    Ranks,
    RightAnswers,
    contents,
    count_repeated,
    gap_of_means,
    partner_ranks,
    ranks_in,
    unit_rows,
)
from contrastive_core.records.score import Score, Scores, wilson
from contrastive_core.records.towers import TEXT, Towers

KS = (1, 5, 10)
UNPAIRED = N_("no usable row has a partner in the other tower")
RECALL = N_("Recall@{k}, {a} → {b}")
READING = N_(
    "Of the rows of {a} with a partner, the share whose partner is among the {k} most similar rows of {b}. Equal "
    "captions, and the partners of equal captions, also count as right; own rank on Samples counts only the row's own "
    "partner. Higher is better. Chance is the recall of a random order."
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
    """One direction: `rows` (q), the set's row numbers of the queries; `ranks`, those of the best right answer of each;
    `recall` by k."""

    rows: Int64[np.ndarray, " q"]
    ranks: Ranks
    recall: dict[int, Share]


def row_contents(towers: Towers) -> list[Int64[np.ndarray, " k"]]:
    """Return the number of the content of each usable row of a, and of b: by their texts where any row has one, else
    by their vectors."""
    texts = towers.rows.columns.get(TEXT)
    texts = texts if texts is not None and (texts != "").any() else None
    sides = towers.usable_sides()
    return [contents(towers.rows.features[at], None if texts is None else texts[at]) for at, _ in sides]


def right_answers(towers: Towers) -> RightAnswers:
    """Return which usable rows of b are right for each usable row of a: its partners, and rows equal to them."""
    (_, group), (_, other_group) = towers.usable_sides()
    return RightAnswers.of(group, other_group, *row_contents(towers))


def repeated(towers: Towers) -> dict[str, tuple[int, int]]:
    """Return, by the name of a tower with equal rows, how many rows equal another, and how many usable ones there
    are."""
    counts = zip(towers.names, row_contents(towers), strict=True)
    return {name: (count, len(content)) for name, content in counts if (count := count_repeated(content))}


def retrieval(towers: Towers, reverse: bool = False, ks: tuple[int, ...] = KS, most: int | None = None) -> Retrieval:
    """Return the ranks of partners and recall@k from tower a to tower b, or from b to a; of at most `most` queries,
    spread evenly, each among all candidates.

    A query is right at k where one of its right answers (`right_answers`) is among the k most similar rows; of equally
    similar rows, with the probability of a random order. Rows without a partner are no queries, but stay among the
    candidates. Rows that are zero or not finite are left out. Source: CLIP, arXiv 2103.00020.
    Raises: CannotScore where no row has a partner."""
    sides, answers = towers.usable_sides(), right_answers(towers)
    (rows, group), (others, other_group) = sides[::-1] if reverse else sides
    chosen = np.flatnonzero((group >= 0) & np.isin(group, other_group))
    if most is not None and len(chosen) > most:
        chosen = chosen[np.linspace(0, len(chosen) - 1, most).round().astype(np.int64)]
    if not len(chosen):
        raise CannotScore(UNPAIRED)
    at, answers = rows[chosen], (answers.reversed if reverse else answers).take(chosen)
    a, b = (unit_rows(towers.rows.features[part]) for part in (at, others))
    ranks, n, recall = partner_ranks(a, b, answers, BLOCK), len(at), {}
    for k in ks:
        right = float(ranks.hits(k).sum())
        recall[k] = Share(right / n, wilson(right, n), float(ranks.chance(k).mean()), n)
    return Retrieval(at, ranks, recall)


@dataclass(frozen=True)
class Partner:
    """A row's partner in the other tower, their cosine, and the rank (from 1) of each among the other's rows."""

    row: int
    similarity: float
    rank: float
    rank_back: float


def tower_scores(towers: Towers) -> tuple[Scores, Scores, Float64[np.ndarray, " n"]]:
    """Return recall@k in both directions and the modality gap; what chance gives; and the expected rank of each row's
    best right answer, -1 for a row without one."""
    own: Scores = {}
    chance: Scores = {}
    ranks = np.full(len(towers.rows), -1.0)
    for reverse in (False, True):
        a, b = towers.names[::-1] if reverse else towers.names
        try:
            found, missing = retrieval(towers, reverse), ""
        except CannotScore as error:
            found, missing = None, str(error)
        if found is not None:
            ranks[found.rows] = found.ranks.expected
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


def partners_of(towers: Towers, row: int, most: int = 20) -> list[Partner]:
    """Return the partners of a row, the most similar first; ranks as of `retrieval`, with its other right answers not
    counted. [] for a row without one."""
    (own, group), (others, other_group) = towers.usable_sides()
    answers = right_answers(towers)
    if row not in own:
        (own, group), (others, other_group), answers = (others, other_group), (own, group), answers.reversed
    if row not in own or (of_row := group[own == row][0]) < 0:
        return []
    rows, query = towers.rows, np.flatnonzero(own == row)
    s = rows.features[others] @ rows.features[row] / rows.lengths[others] / rows.lengths[row]  # (m)
    at = np.flatnonzero(other_group == of_row)
    at = at[np.argsort(-s[at], kind="stable")][:most]
    back = unit_rows(rows.features[others[at]]) @ unit_rows(rows.features[own]).T  # (partners, n)
    forth = ranks_in(np.tile(s, (len(at), 1)), np.tile(answers.rows(query), (len(at), 1)), s[at])
    backward = ranks_in(back, answers.reversed.rows(at), back[:, query[0]])
    places = zip(others[at].tolist(), s[at].tolist(), forth.expected.tolist(), backward.expected.tolist(), strict=True)
    return [Partner(*place) for place in places]


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
