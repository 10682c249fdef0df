"""nDCG@10, MRR@10, recall@10 and average precision of each query, by relevance judgments. Torch-free.

The values equal those of `ir-measures`, including its order of equally similar documents: nDCG, recall and average
precision (from trec_eval) put the alphabetically last id first; MRR@10 (from MS MARCO's script) puts the first id
first. The gain of a document is its grade. Documents with bit-identical vectors are equally similar to each query."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int64, UInt64

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_
from contrastive_core.base.safe_files import printable
from contrastive_core.ops.partner_ranks import BLOCK, unit_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.label_files import Qrels, check_ids
from contrastive_core.spaces.towers import Towers, towers_of

K = 10
COUNTED = 8  # relevant documents up to which counting takes less time than a sort
FIGURES = {"ndcg_10": N_("nDCG@10"), "mrr_10": N_("MRR@10"), "recall_10": N_("Recall@10"), "map": N_("MAP")}
NO_PARTNER = N_("no row of {name} has a partner that could be its answer")
NOT_TOWERS = N_("judgments need vectors of queries and of documents; {name} has one set of vectors")
OTHER_DOCUMENTS = N_(
    "{a} and {b} hold different documents: {count} are in only one of them, for example {example}. Ranks among "
    "different documents cannot be compared"
)


@dataclass(frozen=True, eq=False)
class Relevant:
    """The relevant documents of queries. `rows` (q) are the rows of the queries; `documents` (m) are rows in descending
    order of their ids. For each relevant document, `query` (r) is the ascending index of its query, `place` (r) its
    index in `documents`, and `grade` (r) its grade, above 0."""

    rows: Int64[np.ndarray, " q"]
    documents: Int64[np.ndarray, " m"]
    query: Int64[np.ndarray, " r"]
    place: Int64[np.ndarray, " r"]
    grade: Float64[np.ndarray, " r"]

    @classmethod
    def of(cls, towers: Towers, qrels: Qrels, name: str) -> "Relevant":
        """Match judgments with the rows of two towers by id. Queries without a relevant document are left out.
        Args: name: of the file of judgments. Raises: UnusableEmbedding for ids that the towers lack."""
        queries, documents = rows_by_id(towers, qrels)
        check_ids(qrels, queries, documents, name)
        names = sorted(documents, reverse=True)
        place = {name: number for number, name in enumerate(names)}
        graded = {q: found for q, grades in qrels.items() if (found := [(d, g) for d, g in grades.items() if g > 0])}
        flat = [(number, place[d], g) for number, found in enumerate(graded.values()) for d, g in found]
        query, at, grade = np.array(flat, np.int64).T
        rows = np.array([queries[q] for q in graded])
        return cls(rows, np.array([documents[name] for name in names]), query, at, grade.astype(np.float64))

    @classmethod
    def of_partners(cls, towers: Towers) -> "Relevant":
        """Take the rows of tower a with a partner as queries, and their partners as relevant, with grade 1."""
        (a, group), (b, other) = towers.usable_sides()
        order = np.array(sorted(range(len(b)), key=lambda row: towers.rows.ids[b[row]], reverse=True))
        b, other = b[order], other[order]
        of_group: dict[int, list[int]] = {}
        for place, number in enumerate(other.tolist()):
            of_group.setdefault(number, []).append(place)
        kept = np.flatnonzero((group >= 0) & np.isin(group, other))
        if not len(kept):
            raise UnusableEmbedding(NO_PARTNER, name=towers.names[0])
        flat = [(number, place) for number, g in enumerate(group[kept].tolist()) for place in of_group[g]]
        query, place = np.array(flat, np.int64).T
        return cls(a[kept], b, query, place, np.ones(len(query)))

    def take(self, queries: Int64[np.ndarray, " k"]) -> "Relevant":
        """Return the judgments of some queries, by ascending index."""
        kept = np.isin(self.query, queries)
        query = np.searchsorted(queries, self.query[kept])
        return Relevant(self.rows[queries], self.documents, query, self.place[kept], self.grade[kept])

    def at_most(self, count: int) -> "Relevant":
        """Return the judgments of at most `count` evenly spaced queries."""
        n = len(self.rows)
        return self if n <= count else self.take(np.linspace(0, n - 1, count).round().astype(np.int64))


def rows_by_id(towers: Towers, qrels: Qrels) -> list[dict[str, int]]:
    """Return the rows of the queries by id, and of the documents. The tower with more ids of judged queries holds the
    queries. The prefix with the tower's name, added if both towers have equal ids, is removed."""
    sides = []
    for (at, _), tower in zip(towers.usable_sides(), towers.names, strict=True):
        names = [towers.rows.ids[row] for row in at.tolist()]
        start = f"{tower}:" if all(name.startswith(f"{tower}:") for name in names) else ""
        sides.append({name.removeprefix(start): row for name, row in zip(names, at.tolist(), strict=True)})
    return sorted(sides, key=lambda side: -len(qrels.keys() & side))


def check_documents(names: Sequence[str], sets: Sequence[EmbeddingSet], qrels: Qrels) -> None:
    """Raise UnusableEmbedding if a space lacks two towers or the spaces have different documents."""
    found = []
    for name, rows in zip(names, sets, strict=True):
        if (towers := towers_of(rows)) is None:
            raise UnusableEmbedding(NOT_TOWERS, name=printable(name))
        found.append({*rows_by_id(towers, qrels)[1]})
        if other := found[0] ^ found[-1]:
            values = {"a": printable(names[0]), "b": printable(name), "count": f"{len(other):,}"}
            raise UnusableEmbedding(OTHER_DOCUMENTS, **values, example=repr(printable(min(other), 80)))


def figures_of_rows(spaces: Sequence[Towers], qrels: Qrels, name: str) -> dict[str, Float64[np.ndarray, "s n"]]:
    """Return each metric for several spaces of the same n rows; NaN for rows that are not queries with a relevant
    document. Raises: UnusableEmbedding as in `Relevant.of`."""
    relevant = Relevant.of(spaces[0], qrels, name)
    found = {key: np.full((len(spaces), len(spaces[0].rows)), np.nan) for key in FIGURES}
    for number, towers in enumerate(spaces):
        x = towers.rows.features
        for key, values in figures(relevant, unit_rows(x[relevant.rows]), unit_rows(x[relevant.documents])).items():
            found[key][number, relevant.rows] = values
    return found


def figures(
    relevant: Relevant,
    queries: Float[np.ndarray, "q d"],
    documents: Float[np.ndarray, "m d"] | UInt64[np.ndarray, "m w"],
    score: Callable[[np.ndarray], np.ndarray] | None = None,
) -> dict[str, Float64[np.ndarray, " q"]]:
    """Return each metric (0 to 1) of each query. Args: queries, documents: in the order of `relevant`, with unit rows
    for cosines, or codes; score: of some queries (b, d), their similarities (b, m); default: inner products."""
    query, grade = relevant.query, relevant.grade
    ranks = _ranks(relevant, queries, documents, score or (lambda some: some @ documents.T))
    rank, rank_by_first_id = np.concatenate([*ranks], 1)
    found, best, n = rank <= K, _places(query, -grade), np.bincount(query)
    gain = np.bincount(query, np.where(found, grade / np.log2(rank + 1), 0))
    most = np.bincount(query, np.where(best <= K, grade / np.log2(best + 1), 0))
    reciprocal = np.zeros(len(n))
    np.maximum.at(reciprocal, query, np.where(rank_by_first_id <= K, 1 / rank_by_first_id, 0))
    precision = np.bincount(query, _places(query, rank) / rank)
    return dict(zip(FIGURES, (gain / most, reciprocal, np.bincount(query, found) / n, precision / n), strict=True))


def _places(query: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the rank (r), from 1, of each value among the values of its query, in ascending order."""
    order = np.lexsort((value, query))
    places = np.empty(len(query), np.int64)
    places[order] = np.arange(len(query)) - np.searchsorted(query, query[order]) + 1
    return places


def _ranks(
    relevant: Relevant, queries: np.ndarray, documents: np.ndarray, score: Callable[[np.ndarray], np.ndarray]
) -> Iterator[Int64[np.ndarray, "2 k"]]:
    """Yield the ranks, from 1, of each query's relevant documents, with ties by descending and by ascending id."""
    bits = documents.view(np.uint32)
    factors = np.random.default_rng(0).integers(1 << 63, size=bits.shape[1], dtype=np.uint64)
    keys = np.einsum("md,d->m", bits, factors)  # equal for bit-identical rows
    _, first, own = np.unique(keys, return_index=True, return_inverse=True)
    bounds, step = np.searchsorted(relevant.query, np.arange(len(queries) + 1)), max(1, BLOCK // len(documents))
    for start in range(0, len(queries), step):
        block = score(queries[start : start + step])  # (b, m)
        if len(first) < len(own) and block.dtype.kind == "f":  # products of equal rows may differ in their last bit
            block = block[:, first[own]]
        for s, low, high in zip(block, bounds[start:], bounds[start + 1 :], strict=False):
            at = relevant.place[low:high]
            if len(at) <= COUNTED:
                above, tied = np.array([(np.count_nonzero(s > v), np.count_nonzero(s == v) - 1) for v in s[at]]).T
            else:
                near = np.sort(s[s >= s[at].min()])
                above = len(near) - np.searchsorted(near, s[at], "right")
                tied = len(near) - above - np.searchsorted(near, s[at]) - 1
            before = [np.count_nonzero(s[:i] == s[i]) if others else 0 for i, others in zip(at, tied, strict=True)]
            yield 1 + above + np.array([before, tied - before])
