"""Scores of two towers: recall in both directions, zero-shot accuracy and the modality gap.

All scores use cosines. Similarities are computed BLOCK numbers at a time, so memory stays bounded for 100,000 pairs.
Notes on the scores report duplicate rows and recall at chance."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int64

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_, Message, message
from contrastive_core.base.score import Score, Scores, wilson
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
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PAIR, TEXT, Towers, towers_of

KS = (1, 5, 10)
SIDES = (N_("first tower"), N_("second tower"))  # if the spaces have different names for them
UNPAIRED = N_("no usable row has a partner in the other tower")
RECALL = N_("Recall@{k}, {a} → {b}")
MRR = N_("MRR@{k}, {a} → {b}")
READING = N_(
    "Of the rows of {a} with a partner, the share whose partner is among the {k} most similar rows of {b}. "
    "Duplicates, and the partners of duplicates, also count as right; own rank on Samples counts only the row's own "
    "partner. Higher is better. Chance is the recall of a random order."
)
GAP = N_(
    "The distance between the means of the unit vectors of both towers, 0 to 2. At 0 the towers share one region; a "
    "large gap separates them even where partners match."
)
REPEATED = N_("{n} of {all} rows in {name} are duplicates. Retrieving any copy counts as correct.")
AT_CHANCE = N_(
    "Recall is at chance in both directions: Recall@{k} is {value} % (95 % interval {low} to {high}), and a random "
    "order gives {chance} %. Are the rows of both towers in the same order?"
)
DRAWS, STEP = 2000, 100  # of the bootstrap, and how many at a time


@dataclass(frozen=True)
class Share:
    """The share of n queries that are answered correctly, its Wilson 95 % interval, and the chance level."""

    value: float
    interval: tuple[float, float]
    chance: float
    n: int


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Retrieval in one direction: `rows` (q) are the row numbers of the queries in the set; `ranks` those of each
    query's best right answer."""

    rows: Int64[np.ndarray, " q"]
    ranks: Ranks

    def recall(self, k: int) -> Share:
        """Return recall@k."""
        n, right = len(self.rows), float(self.ranks.hits(k).sum())
        return Share(right / n, wilson(right, n), float(self.ranks.chance(k).mean()), n)


def row_contents(towers: Towers) -> list[Int64[np.ndarray, " k"]]:
    """Number the contents of the usable rows of towers a and b: equal texts, or equal vectors if no row has a text,
    share a number."""
    texts = towers.rows.columns.get(TEXT)
    texts = texts if texts is not None and (texts != "").any() else None
    sides = towers.usable_sides()
    return [contents(towers.rows.features[at], None if texts is None else texts[at]) for at, _ in sides]


def right_answers(towers: Towers) -> RightAnswers:
    """Return the right answers in b for each usable row of a: its partners and their duplicates."""
    (_, group), (_, other_group) = towers.usable_sides()
    return RightAnswers.of(group, other_group, *row_contents(towers))


def retrieval(towers: Towers, reverse: bool = False, most: int | None = None) -> Retrieval:
    """Return the ranks of partners from tower a to tower b, or from b to a.

    At most `most` evenly spaced queries are ranked among all candidates. A query is right at k if one of its right
    answers (`right_answers`) is among the k most similar rows; ties count with the probability of a random order. Rows
    without a partner are not queries, but remain candidates. Rows that are zero or not finite are left out.
    Source: CLIP, arXiv 2103.00020. Raises: CannotScore if no row has a partner."""
    sides, answers = towers.usable_sides(), right_answers(towers)
    (rows, group), (others, other_group) = sides[::-1] if reverse else sides
    chosen = np.flatnonzero((group >= 0) & np.isin(group, other_group))
    if most is not None and len(chosen) > most:
        chosen = chosen[np.linspace(0, len(chosen) - 1, most).round().astype(np.int64)]
    if not len(chosen):
        raise CannotScore(UNPAIRED)
    at, answers = rows[chosen], (answers.reversed if reverse else answers).take(chosen)
    a, b = (unit_rows(towers.rows.features[part]) for part in (at, others))
    return Retrieval(at, partner_ranks(a, b, answers, BLOCK))


@dataclass(frozen=True)
class Partner:
    """A row's partner in the other tower, their cosine, and the rank (from 1) of the partner for the row and of the row
    for the partner."""

    row: int
    similarity: float
    rank: float
    rank_back: float


def tower_scores(towers: Towers) -> tuple[Scores, Scores, Float64[np.ndarray, " n"]]:
    """Return recall@k in both directions and the modality gap; the chance levels; and the expected rank of each row's
    best right answer, -1 without one."""
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
            share = found.recall(k)
            about = {"n": share.n, "k": k}
            own[name] = Score(title, reading, share.value, share.interval, "share", True, extras=about)
            chance[name] = Score(title, reading, share.chance, unit="share")
    gap = N_("Gap between the towers") if towers.are_texts else N_("Modality gap")
    try:
        own["modality_gap"] = Score(gap, GAP, modality_gap(towers))
    except CannotScore as error:
        own["modality_gap"] = Score(gap, GAP, missing=str(error))
    return own, chance, ranks


def recall_of_rows(
    spaces: Sequence[Towers],
) -> dict[str, tuple[Message, Float64[np.ndarray, "s n"], Int64[np.ndarray, " n"] | None]]:
    """Return recall@1 and MRR@10 of several spaces of the same n rows: from tower a to b, and back if the rows of b do
    not share partners. The values per row are the probability that the most similar row is right, or the expected
    reciprocal rank; NaN for rows that are not queries. Queries that share partners are not independent samples for a
    test: the last part is the group of each row, None if all are independent."""
    names, found, graded = spaces[0].names, {}, {}
    if any(one.names != names for one in spaces):
        names = SIDES
    for way, reverse in (("forth", False), ("back", True)):
        a, b = names[::-1] if reverse else names
        hits, reciprocal = np.full((2, len(spaces), len(spaces[0].rows)), np.nan)
        shared = None
        for one in spaces:
            at, groups = (one.b, one.group_b) if reverse else (one.a, one.group_a)
            if shared is None and len(np.unique(groups[groups >= 0])) < (groups >= 0).sum():
                shared = np.full(len(one.rows), -1)
                shared[at] = groups
        if reverse and shared is not None:
            continue
        for number, towers in enumerate(spaces):
            with suppress(CannotScore):
                answers = retrieval(towers, reverse)
                hits[number, answers.rows] = answers.ranks.hits(1)
                reciprocal[number, answers.rows] = answers.ranks.reciprocal(10)
        if not np.isnan(hits).all(1).any():
            found[f"recall_1_{way}"] = message(RECALL, k=1, a=a, b=b), hits, shared
            graded[f"mrr_10_{way}"] = message(MRR, k=10, a=a, b=b), reciprocal, shared
    return found | graded


def most_similar(towers: Towers, rows: Int64[np.ndarray, " q"]) -> Int64[np.ndarray, " q"]:
    """Return the most similar usable row of the other tower for each of `rows`; -1 if there is none."""
    x, lengths, found = towers.rows.features, towers.rows.lengths, np.full(len(rows), -1)
    (a, _), (b, _) = towers.usable_sides()
    for own, others in ((a, b), (b, a)):
        at = np.flatnonzero(np.isin(rows, own)) if len(others) else np.empty(0, np.int64)
        for part in np.array_split(at, 1 + len(at) * len(others) // BLOCK):
            found[part] = others[(x[rows[part]] @ x[others].T / lengths[others]).argmax(1)] if len(part) else -1
    return found


def answers_of(rows: EmbeddingSet, ids: Sequence[str]) -> list[str]:
    """Return the text, or else the id, of the other tower's most similar row for each id; "" for rows of one tower."""
    if (towers := towers_of(rows)) is None:
        return [""] * len(ids)
    place, texts = {name: q for q, name in enumerate(rows.ids)}, rows.columns.get(TEXT, rows.ids)
    found = most_similar(towers, np.array([place[name] for name in ids], np.int64))
    return [str(texts[q]) or rows.ids[q] if q >= 0 else "" for q in found.tolist()]


def partners_of(towers: Towers, row: int, most: int = 20) -> list[Partner]:
    """Return the partners of a row, the most similar first, with ranks as in `retrieval` in which its other right
    answers are not counted; [] without a partner."""
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


def modality_gap(towers: Towers) -> float:
    """Return the distance (0 to 2) between the means of the unit rows of both towers (see `gap_of_means`).
    Raises: CannotScore if a tower has no usable row."""
    parts = [at for at, _ in towers.usable_sides()]
    if not all(len(part) for part in parts):
        raise CannotScore(UNPAIRED)
    return gap_of_means(*(towers.rows.features[part] for part in parts))


def tower_notes(towers: Towers, scores: tuple[Scores, Scores] | None = None) -> dict[str, list[Message]]:
    """Return sentences about two towers: `warnings`, that no recall exceeds chance, and `notes` on duplicate rows.
    Args: scores: own and chance, from `tower_scores`, if known."""
    own, chance = scores or tower_scores(towers)[:2]
    notes, warnings = list[Message](), list[Message]()
    for name, content in zip(towers.names, row_contents(towers), strict=True):
        if n := count_repeated(content):
            notes.append(message(REPEATED, name=name, n=f"{n:,}", all=f"{len(content):,}"))
    names = [(k, f"recall_{k}_{way}") for k in KS for way in ("forth", "back")]
    known = [(k, own[name], chance[name]) for k, name in names if name in chance and (chance[name].value or 1) <= 0.5]
    if known and all((score.interval or (0,))[0] <= (random.value or 0) for _, score, random in known):
        k, score, random = known[-2]  # the largest k whose chance is at most 0.5, from a to b
        ends = {"value": score.value, "chance": random.value}
        ends["low"], ends["high"] = score.interval or (None, None)
        warnings.append(message(AT_CHANCE, k=k, **{end: f"{100 * (value or 0):.1f}" for end, value in ends.items()}))
    return {"warnings": warnings, "notes": notes}


def compare_centered(towers: Towers) -> tuple[Scores, Scores, dict[str, tuple[float, float, float]]]:
    """Return recall and modality gap before and after the mean of its tower is subtracted from each unit row, which
    removes the gap, and of each the difference and its 95 % interval. Source: arXiv 2507.19054.

    Captions of one image depend on each other, so the bootstrap draws images with all their captions (cluster
    bootstrap: Davison and Hinkley 1997, Bootstrap Methods, section 3.8). Raises CannotScore without a partner."""
    features = np.zeros_like(towers.rows.features)
    for at, _ in towers.usable_sides():
        unit = unit_rows(towers.rows.features[at])
        features[at] = unit - unit.mean(0)
    both = towers, replace(towers, rows=replace(towers.rows, features=features))
    before, after = (tower_scores(one)[0] for one in both)
    cluster = np.unique(towers.rows.columns[PAIR], return_inverse=True)[1]  # (n), the image of each row
    sums, rng, drawn = [_sums(one, cluster) for one in both], np.random.default_rng(0), []
    clusters = int(cluster.max()) + 1
    for _ in range(0, DRAWS, STEP):
        weight = rng.multinomial(clusters, np.full(clusters, 1 / clusters), STEP).astype(np.float64)  # (s, g)
        drawn.append(_drawn_figures(*sums[1], weight) - _drawn_figures(*sums[0], weight))
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975], axis=0).tolist()
    names = [f"recall_{k}_{way}" for way in ("forth", "back") for k in KS] + ["modality_gap"]
    values = [(after[name].value or 0.0) - (before[name].value or 0.0) for name in names]
    return before, after, dict(zip(names, zip(values, low, high, strict=True), strict=True))


def _sums(towers: Towers, cluster: Int64[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return for each image (g) the hits (g, 6) and queries (g, 6) at each k in both directions, and for each tower the
    sum of its unit rows, with their number as last column (g, d + 1)."""
    clusters, right, queries, rows = int(cluster.max()) + 1, [], [], []
    for reverse in (False, True):
        found = retrieval(towers, reverse)
        right += [np.bincount(cluster[found.rows], found.ranks.hits(k), clusters) for k in KS]
        queries += [np.bincount(cluster[found.rows], minlength=clusters)] * len(KS)
    for at, _ in towers.usable_sides():
        total = np.zeros((clusters, towers.rows.width + 1))
        np.add.at(total, cluster[at], np.pad(unit_rows(towers.rows.features[at]), ((0, 0), (0, 1)), constant_values=1))
        rows.append(total)
    return np.stack(right, 1), np.stack(queries, 1), rows


def _drawn_figures(
    right: np.ndarray, queries: np.ndarray, rows: list[np.ndarray], weight: Float64[np.ndarray, "s g"]
) -> Float64[np.ndarray, "s 7"]:
    """Return recall and gap for s draws of images, from the `_sums` of towers."""
    a, b = (total[:, :-1] / np.maximum(total[:, -1:], 1) for total in (weight @ one for one in rows))
    recall = (weight @ right) / np.maximum(weight @ queries, 1)
    return np.column_stack([recall, np.linalg.norm(a - b, axis=1)])
