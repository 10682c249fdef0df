"""Scores of two towers: recall in both directions, zero-shot accuracy and the modality gap.

All scores use cosines. Similarities are computed BLOCK numbers at a time, so memory stays bounded for 100,000 pairs.
Notes on the scores report duplicate rows and recall at chance.

Two checkpoints of one run are compared by recall@k in both directions and the modality gap, with the paired difference
of each score. Both must have the same images and captions. Captions of one image depend on each other, so the bootstrap
draws images with all their captions (cluster bootstrap: Davison and Hinkley 1997, Bootstrap Methods, section 3.8)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32, Float64, Int64

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, Message, message
from contrastive_core.base.score import Score, Scores, scores_to_json, wilson
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
    """The share of n queries that are answered correctly, its Wilson 95 % interval, and the chance level."""

    value: float
    interval: tuple[float, float]
    chance: float
    n: int


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Retrieval in one direction: `rows` (q) are the row numbers of the queries in the set; `ranks` those of each
    query's best right answer; `recall` by k."""

    rows: Int64[np.ndarray, " q"]
    ranks: Ranks
    recall: dict[int, Share]


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


def repeated(towers: Towers) -> dict[str, tuple[int, int]]:
    """Count the usable rows that are duplicates, and all usable rows, by the name of the tower; towers without
    duplicates are left out."""
    counts = zip(towers.names, row_contents(towers), strict=True)
    return {name: (count, len(content)) for name, content in counts if (count := count_repeated(content))}


def retrieval(towers: Towers, reverse: bool = False, ks: tuple[int, ...] = KS, most: int | None = None) -> Retrieval:
    """Return the ranks of partners and recall@k from tower a to tower b, or from b to a.

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
    ranks, n, recall = partner_ranks(a, b, answers, BLOCK), len(at), {}
    for k in ks:
        right = float(ranks.hits(k).sum())
        recall[k] = Share(right / n, wilson(right, n), float(ranks.chance(k).mean()), n)
    return Retrieval(at, ranks, recall)


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
            share, about = found.recall[k], {"n": found.recall[k].n, "k": k}
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
        shared = next((groups for one in spaces if (groups := _shared_groups(one, reverse)) is not None), None)
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


def _shared_groups(towers: Towers, reverse: bool) -> Int64[np.ndarray, " n"] | None:
    """Return the group of each row, -1 outside of the queries' tower; None if no two queries share one."""
    at, groups = (towers.b, towers.group_b) if reverse else (towers.a, towers.group_a)
    if len(np.unique(groups[groups >= 0])) == (groups >= 0).sum():
        return None
    of_rows = np.full(len(towers.rows), -1)
    of_rows[at] = groups
    return of_rows


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


def zero_shot(
    images: Float32[np.ndarray, "n d"],
    prompts: Float32[np.ndarray, "p d"],
    classes: Int64[np.ndarray, " p"],
    labels: Int64[np.ndarray, " n"],
) -> Share:
    """Return the share of images whose most similar class is their own. A class vector is the mean of its unit prompts
    (p, d), scaled to length 1. Args: classes: of each prompt; labels: of each image, -1 for none.
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
    """Return the distance (0 to 2) between the means of the unit rows of both towers (see `gap_of_means`).
    Raises: CannotScore if a tower has no usable row."""
    parts = [at for at, _ in towers.usable_sides()]
    if not all(len(part) for part in parts):
        raise CannotScore(UNPAIRED)
    return gap_of_means(*(towers.rows.features[part] for part in parts))


def centered(towers: Towers) -> Towers:
    """Subtract the mean of its tower from each unit row, which removes the modality gap. Source: arXiv 2507.19054."""
    features = np.zeros_like(towers.rows.features)
    for at, _ in towers.usable_sides():
        unit = unit_rows(towers.rows.features[at])
        features[at] = unit - unit.mean(0)
    return replace(towers, rows=replace(towers.rows, features=features))


REPEATED = N_("{n} of {all} rows in {name} are duplicates. Retrieving any copy counts as correct.")
AT_CHANCE = N_(
    "Recall is at chance in both directions: Recall@{k} is {value} % (95 % interval {low} to {high}), and a random "
    "order gives {chance} %. Are the rows of both towers in the same order?"
)


@dataclass(frozen=True)
class TowerNotes:
    """Sentences about two towers: `warnings` about recall at chance, `notes` about duplicate rows."""

    warnings: list[Message]
    notes: list[Message]


def tower_notes(towers: Towers, scores: tuple[Scores, Scores] | None = None) -> TowerNotes:
    """Return the notes on two towers. Args: scores: own and chance, from `tower_scores`, if known."""
    own, chance = scores or tower_scores(towers)[:2]
    counts = repeated(towers).items()
    equal = [message(REPEATED, name=name, n=f"{n:,}", all=f"{all_:,}") for name, (n, all_) in counts]
    return TowerNotes(_at_chance(own, chance), equal)


def tower_record(towers: Towers, name: str) -> JsonObject:
    """Return the scores of a file with two towers, in the form of `evaluate_vectors`."""
    own, chance, _ = tower_scores(towers)
    said, usable = tower_notes(towers, (own, chance)), towers_of(towers.rows.take(towers.rows.usable))
    return {
        "file": name,
        "n": len(towers.rows),
        "n_test": sum(len(at) for at, _ in towers.usable_sides()),
        "n_train": 0,
        "pairs": 0 if usable is None else usable.partner_pairs(1)[1],
        "left_out": {reason: len(at) for reason, at in towers.rows.problems.items()},
        "scores": scores_to_json(own),
        "chance": scores_to_json(chance),
        "notes": [str(note) for note in said.warnings + said.notes],
    }


def _at_chance(own: Scores, chance: Scores) -> list[Message]:
    """Warn if no recall exceeds chance, with the largest k whose chance level is at most 0.5."""
    names = [(k, f"recall_{k}_{way}") for k in KS for way in ("forth", "back")]
    known = [(k, own[name], chance[name]) for k, name in names if name in chance and (chance[name].value or 1) <= 0.5]
    if not known or any((score.interval or (0,))[0] > (random.value or 0) for _, score, random in known):
        return []
    k, score, random = known[-2]  # from a to b
    assert score.value is not None
    assert score.interval is not None
    assert random.value is not None
    ends = (score.value, *score.interval, random.value)
    value, low, high, at = (f"{100 * x:.1f}" for x in ends)
    return [message(AT_CHANCE, k=k, value=value, low=low, high=high, chance=at)]


DRAWS, STEP = 2000, 100  # of the bootstrap, and how many at a time
OTHER_ROWS = N_("the checkpoints are of different images or captions")


@dataclass(frozen=True, eq=False)
class CheckpointChange:
    """A score of two checkpoints, and the change from the first to the second with a 95 % interval."""

    name: str
    before: Score
    after: Score
    value: float
    interval: tuple[float, float]


def compare_checkpoints(before: Towers, after: Towers) -> list[CheckpointChange]:
    """Compare recall@k in both directions and the modality gap of two checkpoints.

    Raises: ValueError for different rows; CannotScore if no row has a partner."""
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
    """Return the index (n) of each row's image."""
    return np.unique(towers.rows.columns[PAIR], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the rows of each image (g): hits and queries at each k, and for each tower the sum and number
    of unit rows."""

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
        """Return recall and gap for s bootstrap draws, given the weight of each image in each draw."""
        mean_a, mean_b = ((weight @ total) / np.maximum(weight @ n, 1)[:, None] for total, n in self.means)
        recall = (weight @ self.right) / np.maximum(weight @ self.queries, 1)
        return np.column_stack([recall, np.linalg.norm(mean_a - mean_b, axis=1)])
