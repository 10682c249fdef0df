"""Ranks of partners between two towers, block by block.

Rows with the same content, for instance two equal captions, are right answers to the same queries. Rows of different
content with equal similarity (to TIE) are ranked in random order: a rank is its expected value, a hit at k its
probability."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int64

BLOCK = 1 << 24  # similarities that are held together
TIE = 1e-6  # cosines closer than this are equal: float32 products of equal rows differ by their place


def contents(rows: Float[np.ndarray, "n d"], texts: np.ndarray | None = None) -> Int64[np.ndarray, " n"]:
    """Return a content number for each row: of its text, or else of its bit pattern. A blank text is equal to no other;
    if all vectors of a tower are equal, it has collapsed, and every row counts as different."""
    if texts is None:
        keys = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in np.ascontiguousarray(rows)]
        number = dict.fromkeys(keys)
        numbers = dict(zip(number, range(len(number)), strict=True))
        return np.arange(len(rows)) if len(number) < 2 else np.array([numbers[key] for key in keys], np.int64)
    found, number_of = np.unique(texts, return_inverse=True)
    blank = texts == ""
    return np.where(blank, len(found) + np.arange(len(texts)), number_of).astype(np.int64)


def count_repeated(content: Int[np.ndarray, " n"]) -> int:
    """Return how many rows have the content of another row."""
    _, counts = np.unique(content, return_counts=True)
    return int(counts[counts > 1].sum())


@dataclass(frozen=True, eq=False)
class RightAnswers:
    """The right rows of the other tower for each query. A row is right if its content shares a group with the query's
    content. `content` (q) of the queries, `other_content` (m), from 0; `groups` and `other_groups`: sparse boolean
    matrices (contents × groups) that say which content occurs in which group."""

    content: Int64[np.ndarray, " q"]
    other_content: Int64[np.ndarray, " m"]
    groups: Any
    other_groups: Any

    @classmethod
    def of(
        cls,
        group: Int[np.ndarray, " q"],
        other_group: Int[np.ndarray, " m"],
        content: Int[np.ndarray, " q"] | None = None,
        other_content: Int[np.ndarray, " m"] | None = None,
    ) -> "RightAnswers":
        """Build the right answers. Args: group, other_group: rows of one group are partners, -1 is no group; content,
        other_content: as from `contents`; None: all rows differ in content."""
        from scipy.sparse import csr_array  # 13 MB, which the server spares

        number = 1 + max(group.max(initial=-1), other_group.max(initial=-1))
        made = []
        for of_group, given in ((group, content), (other_group, other_content)):
            key = np.arange(len(of_group)) if given is None else np.unique(given, return_inverse=True)[1]
            has = of_group >= 0
            at = (np.ones(has.sum(), bool), (key[has], of_group[has]))
            made.append((key, csr_array(at, shape=(key.max(initial=-1) + 1, number))))
        (key, groups), (other_key, other_groups) = made
        return cls(key, other_key, groups, other_groups)

    def take(self, queries: np.ndarray) -> "RightAnswers":
        """Return the right answers of some queries."""
        return replace(self, content=self.content[queries])

    @property
    def reversed(self) -> "RightAnswers":
        """The right answers with the other tower's rows as queries."""
        return RightAnswers(self.other_content, self.content, self.other_groups, self.groups)

    def rows(self, queries: slice | np.ndarray) -> Bool[np.ndarray, "r m"]:
        """Return a boolean matrix (r, m): which rows of the other tower are right for these queries."""
        shared = (self.groups[self.content[queries]] @ self.other_groups.T).toarray()  # (r, contents)
        return shared if self._is_one_each else shared[:, self.other_content]

    @cached_property
    def _is_one_each(self) -> bool:
        """Whether every row of the other tower has a content of its own, in order."""
        return np.array_equal(self.other_content, np.arange(len(self.other_content)))


@dataclass(frozen=True, eq=False)
class Ranks:
    """The counts that give each of q queries its rank among m rows: `above`, wrong rows more similar than the best
    right one; `tied`, wrong rows as similar; `tied_right`, right rows as similar; `right`, all right rows."""

    above: Int64[np.ndarray, " q"]
    tied: Int64[np.ndarray, " q"]
    tied_right: Int64[np.ndarray, " q"]
    right: Int64[np.ndarray, " q"]
    others: int

    @property
    def expected(self) -> Float64[np.ndarray, " q"]:
        """Return the expected rank, from 1, of the best right row among the wrong ones."""
        return 1 + self.above + self.tied / (self.tied_right + 1)

    def hits(self, k: int) -> Float64[np.ndarray, " q"]:
        """Return the probability that a right row is among the k most similar ones."""
        return _found(self.tied_right, self.tied + self.tied_right, np.maximum(k - self.above, 0), k)

    def reciprocal(self, k: int) -> Float64[np.ndarray, " q"]:
        """Return the expected 1 / rank of the best right row, 0 beyond k."""
        hits = np.stack([np.zeros(len(self.right)), *(self.hits(rank) for rank in range(1, k + 1))])
        return (np.diff(hits, axis=0) / np.arange(1, k + 1)[:, None]).sum(0)

    def chance(self, k: int) -> Float64[np.ndarray, " q"]:
        """Return the expected recall for rows in random order."""
        return _found(self.right, np.full(len(self.right), self.others), np.full(len(self.right), k), k)


def _found(right: np.ndarray, rows: np.ndarray, drawn: np.ndarray, most: int) -> np.ndarray:
    """Return the probability (q) that a random draw of `drawn` (at most `most`) of `rows` contains a `right` one."""
    missed = np.ones(len(right))
    for i in range(most):
        missed *= np.where(i < drawn, np.maximum(rows - right - i, 0) / np.maximum(rows - i, 1), 1)
    return 1 - missed


def similarity_blocks(
    queries: Float[np.ndarray, "q d"], others: Float[np.ndarray, "m d"], answers: RightAnswers, block: int = BLOCK
) -> Iterator[tuple[slice, Float[np.ndarray, "r m"], Bool[np.ndarray, "r m"]]]:
    """Yield, for each block of queries, its slice, its similarities (r, m), and which of the others are right."""
    step = max(1, block // len(others))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        yield part, queries[part] @ others.T, answers.rows(part)


def partner_ranks(
    queries: Float[np.ndarray, "q d"], others: Float[np.ndarray, "m d"], answers: RightAnswers, block: int = BLOCK
) -> Ranks:
    """Return the ranks of the best right row of each query. Args: queries, others: unit rows."""
    parts = [ranks_in(s, is_right) for _, s, is_right in similarity_blocks(queries, others, answers, block)]
    counts = zip(*((r.above, r.tied, r.tied_right, r.right) for r in parts), strict=True)
    above, tied, tied_right, right = map(np.concatenate, counts)
    return Ranks(above, tied, tied_right, right, len(others))


def ranks_in(
    s: Float[np.ndarray, "q m"], is_right: Bool[np.ndarray, "q m"], own: Float[np.ndarray, " q"] | None = None
) -> Ranks:
    """Return the ranks of the best right row of each query, or of one right row by its similarity `own`."""
    best = (np.where(is_right, s, -np.inf).max(1) if own is None else own)[:, None]
    near = s >= best - TIE
    above = s > best + TIE
    wrong_above, wrong_near = (above & ~is_right).sum(1), (near & ~is_right).sum(1)
    tied_right = (near & is_right).sum(1) if own is None else np.ones(len(s), np.int64)
    return Ranks(wrong_above, wrong_near - wrong_above, tied_right, is_right.sum(1), s.shape[1])


def unit_rows(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Scale rows to length 1; a zero row stays zero."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def gap_of_means(a: Float[np.ndarray, "n d"], b: Float[np.ndarray, "m d"]) -> float:
    """Return the modality gap: the distance (0 to 2) between the means of the unit rows of two towers.
    Source: Liang et al. 2022, arXiv 2203.02053."""
    mean_a, mean_b = (unit_rows(x).mean(0, dtype=np.float64) for x in (a, b))
    return float(np.linalg.norm(mean_a - mean_b))
