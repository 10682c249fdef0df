"""Given negatives that are probably matches: rows that a file lists as negatives of a query. Torch-free.

The score of a negative is the mean of two cosines: to its query, and the mean cosine to the query's answers. All rows
are centered by their tower and scaled to length 1. Answers say what a match of this query looks like, where the query
itself is short; the cosine to the query keeps answers to other questions down."""

import numpy as np
from jaxtyping import Float64, Int64

from contrastive_core.ops.partner_ranks import BLOCK, unit_rows
from contrastive_core.spaces.towers import Towers


def find_given_negatives(
    towers: Towers, query: Int64[np.ndarray, " n"]
) -> tuple[Int64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Return a given negative of each pair and its score: the row (-1 for none) and NaN for none. The pairs of a query
    have its negatives in the order of the score, each negative once. Args: query: the row of tower a of each pair."""
    group, features = np.full(len(towers.rows), -1), towers.rows.features
    group[towers.a] = towers.group_a
    match = np.zeros((group.max() + 1, features.shape[1]))  # the mean query of each group plus its mean answer
    for rows, of in towers.usable_sides():  # queries, then answers
        unit, sums, is_paired = unit_rows(features[rows]), np.zeros_like(match), of >= 0
        center = unit.mean(0)
        np.add.at(sums, of[is_paired], unit_rows(unit - center)[is_paired])
        match += sums / np.maximum(1, np.bincount(of[is_paired], minlength=len(match)))[:, None]
    given = towers.given_negatives()
    given = given[np.isin(given[:, 0], towers.rows.usable)]
    score, step = np.empty(len(given)), max(1, BLOCK // features.shape[1])
    for i in range(0, len(given), step):
        negative, of = given[i : i + step].T
        score[i : i + step] = np.einsum("kd,kd->k", unit_rows(unit_rows(features[negative]) - center), match[of]) / 2
    found, value = np.full(len(query), -1), np.full(len(query), np.nan)
    given, score = (x[np.lexsort((-score, given[:, 1]))] for x in (given, score))
    pair = np.argsort(group[query], kind="stable")
    of = group[query][pair]
    at = np.searchsorted(given[:, 1], of) + np.arange(len(of)) - np.searchsorted(of, of)
    has = (at < np.searchsorted(given[:, 1], of, "right")) & (of >= 0)
    found[pair[has]], value[pair[has]] = given[at[has], 0], score[at[has]]
    return found, value
