"""Pairs of two towers: mismatched pairs, and false negatives across towers.

A pair is a row of the tower that has more rows with a partner, called the query (usually a caption), with the most
similar of its partners. Cosines only; `s` is the similarity between towers.

- mismatch: how unlikely a query and its own partner belong together. It sums three signs, each minus its median and
  divided by its interquartile range, weighted 1, ½, ½: (1) 2s minus the mean similarity of the query, and of its
  partner, to their K nearest wrong rows of the other tower (CSLS: Conneau et al. 2018, arXiv 1710.04087), so a vague
  caption that is similar to nothing is not a suspect; (2) the similarity of the partners of the K nearest queries to
  its own partner; (3) the similarity of the queries of the K nearest partners to it. The neighbors are those of LEMoN
  (Zhang et al. 2024, arXiv 2407.18941), which adds them to s. Rows are centered by tower for (2) and (3).
- false_negative: how similar two pairs (q, p) and (q', p') of different groups are that a loss pushes apart: the mean
  of the cosines of q to q' and of p to p' (centered), minus half of the amount by which the smaller of s(q, p') and
  s(q', p) is below the larger of s(q, p) and s(q', p'). 1: both queries fit both partners. The last term excludes
  mismatched pairs: their partner matches no query as well as its own. q' is one of the K nearest queries.

Time grows with pairs times rows; memory is bounded."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.compare.towers import right_answers
from contrastive_core.ops.partner_ranks import RightAnswers, ranks_in, similarity_blocks, unit_rows
from contrastive_core.samples.sample_table import standardized
from contrastive_core.spaces.towers import Towers

K = 10  # neighbors
FEWEST = 4  # groups: of fewer no score stands out
BLOCK = 1 << 24  # similarities, and numbers of gathered rows, that are held together
FEW_GROUPS = N_("{count} groups have usable rows in both towers; at least {fewest} are needed")
Pair = tuple[np.ndarray, np.ndarray]  # rows (n, d) of queries and of partners; rows and their groups (n)
Found = tuple[np.ndarray, np.ndarray]  # similarities (q, k), -inf where there are fewer, and indices (q, k)


@dataclass(frozen=True, eq=False)
class TowerPairs:
    """n pairs with scores and evidence. Row numbers refer to the embedding set; higher scores are more suspicious."""

    query: Int64[np.ndarray, " n"]
    partner: Int64[np.ndarray, " n"]
    query_tower: int  # 0: queries are of tower a; 1: of b
    mismatch: Float64[np.ndarray, " n"]
    similarity: Float64[np.ndarray, " n"]  # of the query to its partner
    rank: Float64[np.ndarray, " n"]  # of the partner among the other tower's wrong rows, for the query; from 1
    rank_back: Float64[np.ndarray, " n"]  # of the query, for its partner
    better: Int64[np.ndarray, " n"]  # the most similar wrong row; of another group where every row is right
    better_similarity: Float64[np.ndarray, " n"]
    of_queries: Float64[np.ndarray, " n"]  # sign (2), a mean cosine
    of_partners: Float64[np.ndarray, " n"]  # sign (3), a mean cosine
    false_negative: Float64[np.ndarray, " n"]  # the largest over q'
    twin: Int64[np.ndarray, " n"]  # the pair of that q', a place in these arrays
    candidates: tuple[int, int]  # rows that `rank` and `rank_back` count
    left_out: dict[str, int]  # rows by reason: `zero`, `not_finite`, `unpaired`, or only given `negatives`

    def mismatched(self) -> Int64[np.ndarray, " n"]:
        """Return the indices of pairs, most suspicious first."""
        return np.argsort(-self.mismatch, kind="stable")

    def false_negatives(self) -> Int64[np.ndarray, "k 2"]:
        """Return the indices of two pairs that match each other, strongest first, each combination once."""
        order = np.argsort(-self.false_negative, kind="stable")
        both = np.sort(np.stack([order, self.twin[order]], 1), 1)
        first = np.unique(both, axis=0, return_index=True)[1]
        return both[np.sort(first)]


def find_tower_pairs(towers: Towers) -> TowerPairs:
    """Return every pair with its scores and evidence. Raises CannotScore with fewer than 4 groups that have usable rows
    in both towers."""
    sides = towers.usable_sides()
    shared = np.setdiff1d(np.intersect1d(sides[0][1], sides[1][1]), [-1])
    if len(shared) < FEWEST:
        raise CannotScore(FEW_GROUPS, count=len(shared), fewest=FEWEST)
    paired = [np.isin(group, shared) for _, group in sides]
    query_tower = int(paired[1].sum() >= paired[0].sum())
    (rows_q, group_q), (rows_p, group_p) = sides[query_tower], sides[1 - query_tower]
    with np.errstate(invalid="ignore"):  # rows without a direction are not used
        unit = (towers.rows.features / towers.rows.lengths[:, None]).astype(np.float32)
    chosen = np.flatnonzero(paired[query_tower])
    query, group = rows_q[chosen], group_q[chosen]
    answers = right_answers(towers).reversed if query_tower else right_answers(towers)
    forth = _across((unit[query], group), (unit[rows_p], group_p), answers.take(chosen))
    partner = rows_p[forth.at]
    back = _across((unit[partner], group), (unit[rows_q], group_q), answers.reversed.take(forth.at), forth.own)
    q, p = (unit_rows(unit[pairs] - unit[rows].mean(0)) for rows, pairs in ((rows_q, query), (rows_p, partner)))
    near_q, near_p = (_nearest(x, group) for x in (q, p))
    of_queries, of_partners = _agreement(p, near_q), _agreement(q, near_p)
    relative = 2 * forth.own - _mean(forth.nearest[0]) - _mean(back.nearest[0])
    false_negative, twin = _twins((unit[query], unit[partner]), (q, p), forth.own, near_q)
    problems = {name: len(at) for name, at in towers.rows.problems.items()}
    spare = np.concatenate([rows[~each] for (rows, _), each in zip(sides, paired, strict=True)])
    is_negative = np.isin(spare, towers.given_negatives()[:, 0])
    return TowerPairs(
        query=query,
        partner=partner,
        query_tower=query_tower,
        mismatch=-(standardized(relative) + standardized(of_queries) / 2 + standardized(of_partners) / 2),
        similarity=forth.own,
        rank=forth.rank,
        rank_back=back.rank,
        better=rows_p[forth.better],
        better_similarity=forth.better_similarity,
        of_queries=of_queries,
        of_partners=of_partners,
        false_negative=false_negative,
        twin=twin,
        candidates=(len(rows_p), len(rows_q)),
        left_out={**problems, "unpaired": int((~is_negative).sum()), "negatives": int(is_negative.sum())},
    )


@dataclass(frozen=True, eq=False)
class _Across:
    """Comparison of n rows with the rows of the other tower: `own`, the similarity to the best partner; its index `at`
    and its `rank`; the K nearest wrong rows; and the better match, as in `TowerPairs.better`."""

    own: Float64[np.ndarray, " n"]
    at: Int64[np.ndarray, " n"]
    rank: Float64[np.ndarray, " n"]
    nearest: Found
    better: Int64[np.ndarray, " n"]
    better_similarity: Float64[np.ndarray, " n"]


def _across(queries: Pair, others: Pair, answers: RightAnswers, own: np.ndarray | None = None) -> _Across:
    """Compare queries with the rows of the other tower. Args: queries, others: unit rows and the group of each; own:
    similarity to the partner, if known."""
    (x, group), (rows, other_group) = queries, others
    parts = []
    for part, s, is_right in similarity_blocks(x, rows, answers, BLOCK):
        is_partner = group[part, None] == other_group[None]
        at = np.where(is_partner, s, -np.inf).argmax(1)
        best = np.take_along_axis(s, at[:, None], 1)[:, 0] if own is None else own[part]
        rank = ranks_in(s, is_right, best).expected
        s[is_partner] = -np.inf
        found = _top(s, 1)
        s[is_right] = -np.inf
        nearest = _top(s, min(K, len(rows)))
        is_any = ~np.isfinite(nearest[0][:, 0])  # every row is a right answer
        better = [np.where(is_any, every[:, 0], wrong[:, 0]) for every, wrong in zip(found, nearest, strict=True)]
        parts.append((best, at, rank, *nearest, *better))
    best, at, rank, near_s, near_at, better_s, better_at = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _Across(best.astype(np.float64), at, rank, (near_s, near_at), better_at, better_s.astype(np.float64))


def _nearest(x: np.ndarray, group: np.ndarray) -> Found:
    """Return the K nearest pairs of other groups."""
    n, k = len(x), min(K, len(x) - 1)
    found = np.empty((n, k), np.float32), np.empty((n, k), np.int64)
    for part in _blocks(n, n):
        s = x[part] @ x.T
        s[group[part, None] == group[None]] = -np.inf
        found[0][part], found[1][part] = _top(s, k)
    return found


def _top(s: np.ndarray, k: int) -> Found:
    """Return the k largest values of each row, sorted."""
    values, at = torch.from_numpy(s).topk(k, dim=1)
    return values.numpy(), at.numpy()


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, BLOCK // width)
    return [slice(start, start + step) for start in range(0, n, step)]


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean (n) of the finite values in each row; with two groups at least one value is finite."""
    known = np.isfinite(values)
    return np.where(known, values, 0).sum(1, dtype=np.float64) / np.maximum(known.sum(1), 1)


def _agreement(rows: np.ndarray, near: Found) -> np.ndarray:
    """Return the mean cosine (n) of each row to the rows of its near pairs."""
    s = _products(rows, rows, near[1])
    return _mean(np.where(np.isfinite(near[0]), s, -np.inf))


def _twins(rows: Pair, centered: Pair, own: np.ndarray, near: Found) -> tuple[np.ndarray, np.ndarray]:
    """Return each pair's false-negative score (n) and the other pair's index. `rows`: unit queries and partners."""
    (q, p), at = rows, near[1]
    alike = (near[0] + _products(centered[1], centered[1], at)) / 2  # (n, k)
    lower = np.minimum(_products(q, p, at), _products(p, q, at)) - np.maximum(own[:, None], own[at])
    score = np.where(np.isfinite(near[0]), alike + np.minimum(lower, 0) / 2, -np.inf)
    best = score.argmax(1)[:, None]
    return np.take_along_axis(score, best, 1)[:, 0], np.take_along_axis(at, best, 1)[:, 0]


def _products(x: np.ndarray, others: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the products (n, k) of each row of x (n, d) with the rows `at` (n, k) of `others`."""
    blocks = _blocks(len(x), at.shape[1] * x.shape[1])
    return np.concatenate([np.einsum("rd,rkd->rk", x[part], others[at[part]]) for part in blocks])
