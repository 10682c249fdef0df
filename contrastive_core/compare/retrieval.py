"""Retrieval by relevance judgments: nDCG@10, MRR@10, recall@10 and average precision of each query; and how much of
them shorter and coarser vectors keep. Torch-free.

The values equal those of `ir-measures`, including its order of equally similar documents: nDCG, recall and average
precision (from trec_eval) put the alphabetically last id first; MRR@10 (from MS MARCO's script) puts the first id
first. The gain of a document is its grade. Documents with bit-identical vectors are equally similar to each query.

Compressed vectors have fewer dimensions: `first` keeps the first k, as for Matryoshka embeddings (Kusupati et al. 2022,
arXiv 2205.13147); `random` keeps k random ones; `pca` projects on the k leading principal axes. The axes come from the
documents alone, so queries stay held out. They are not centered, because k = d must keep every inner product. Rows are
then scaled to length 1. And they have less precision: `int8` rounds each dimension of the documents to 256 steps
between its least and largest value; queries stay float32. `binary` keeps signs and ranks by Hamming distance.
`rescored` takes the 40 nearest of these documents and orders them by the inner product of the float32 query with the
document's signs, which needs no further bytes (BPR: Yamada et al. 2021, arXiv 2106.00882)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64, UInt64

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.score import mean_intervals
from contrastive_core.compare.verdicts import Contrast
from contrastive_core.ops.partner_ranks import BLOCK, unit_rows
from contrastive_core.spaces.attached_files import Qrels, check_ids
from contrastive_core.spaces.embedding_set import EmbeddingSet
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
REDUCTIONS = {"first": N_("first dimensions"), "random": N_("random dimensions"), "pca": N_("principal axes")}
PRECISIONS = {"float32": 32, "int8": 8, "binary": 1, "rescored": 1}  # bits of a number
PRECISION_TITLES = {"float32": "float32", "int8": "int8", "binary": N_("binary"), "rescored": N_("binary, rescored")}
METRICS = ("recall_10", "ndcg_10")
LEAST, STEPS = 8, 7  # dimensions, and how many widths: d, d/2, d/4, …
CANDIDATES = 40  # documents that are rescored: four for each of the 10 answers
MOST = 1000  # queries
FULL = N_("the full vectors")
Score = Callable[[np.ndarray], np.ndarray]  # of queries (b, k): similarities (b, m)


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

    def at_most(self, count: int) -> "Relevant":
        """Return the judgments of at most `count` evenly spaced queries."""
        if (n := len(self.rows)) <= count:
            return self
        queries = np.linspace(0, n - 1, count).round().astype(np.int64)
        kept = np.isin(self.query, queries)
        query = np.searchsorted(queries, self.query[kept])
        return Relevant(self.rows[queries], self.documents, query, self.place[kept], self.grade[kept])


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


# --- compressed vectors -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CompressedScore:
    """A metric of compressed vectors, its difference from the full vectors, and the 95 % interval of the difference.
    `reduction` and `precision` are keys of REDUCTIONS and PRECISIONS; `size`: bytes of a vector."""

    reduction: str
    width: int
    precision: str
    size: float
    metric: str
    value: float
    loss: float
    interval: tuple[float, float]

    @property
    def contrast(self) -> Contrast:
        """The difference from the full vectors, for sentences."""
        parts = {"of": REDUCTIONS[self.reduction], "precision": PRECISION_TITLES[self.precision]}
        name = message("{width} {of} in {precision}", width=self.width, **parts)
        unit = message("points of {accuracy}", accuracy=FIGURES[self.metric])
        return Contrast(
            first=name, second=FULL, difference=self.loss, interval=self.interval, basis=N_("the queries"), unit=unit
        )


def compress(
    queries: Float32[np.ndarray, "q d"],
    documents: Float32[np.ndarray, "m d"],
    relevant: Relevant,
    on_fraction: OnFraction = ignore_fraction,
) -> list[CompressedScore]:
    """Return the metrics of every combination of dimensions and precision, the full vectors first. The interval is a
    paired bootstrap over queries. Args: queries, documents: in the order of `relevant`."""
    queries, documents = unit_rows(queries), unit_rows(documents)
    full, d = figures(relevant, queries, documents), documents.shape[1]
    widths = [w for w in (d >> step for step in range(STEPS)) if w >= min(LEAST, d)]
    plan = [(reduction, w) for reduction, w in product(REDUCTIONS, widths) if w < d or reduction != "random"]
    order = {"random": np.random.default_rng(0).permutation(d)}
    found, losses = list[CompressedScore](), list[np.ndarray]()
    for number, (reduction, width) in enumerate(plan):
        if reduction == "pca" and width == d:  # the first of the last reduction: rows turn in place, some at a time
            axes = np.linalg.eigh((documents.T @ documents).astype(np.float64))[1][:, ::-1].astype(np.float32)
            for rows in (queries, documents):
                for part in np.array_split(rows, 1 + rows.size // BLOCK):  # views
                    part[:] = part @ axes
        columns = order.get(reduction, np.arange(d))[:width]
        short = [x if width == d else unit_rows(x[:, columns]) for x in (queries, documents)]
        for precision, bits in PRECISIONS.items():
            kept, score = _coarse(short[1], precision)
            values = figures(relevant, short[0], kept, score)
            for metric in METRICS:
                lost, value = values[metric] - full[metric], float(values[metric].mean())
                loss, size = float(lost.mean()), width * bits / 8
                vector = {"reduction": reduction, "width": width, "precision": precision, "size": size}
                found.append(CompressedScore(**vector, metric=metric, value=value, loss=loss, interval=(loss, loss)))
                losses.append(lost)
        on_fraction((number + 1) / len(plan))
    intervals = mean_intervals(np.stack(losses, 1)).tolist()
    return [replace(one, interval=(low, high)) for one, (low, high) in zip(found, intervals, strict=True)]


def _coarse(documents: np.ndarray, precision: str) -> tuple[np.ndarray, Score | None]:
    """Return documents (m, k) as they are read back from this precision, and their similarity if it is not the inner
    product."""
    if precision == "float32":
        return documents, None
    if precision == "int8":
        low = documents.min(0)
        step = np.maximum((documents.max(0) - low) / 255, 1e-12)
        rounded = documents - low  # then in place: rows may take half a gigabyte
        rounded /= step
        np.round(rounded, out=rounded)
        rounded *= step
        rounded += low
        return rounded, None
    words = _sign_words(documents)
    by_word = np.ascontiguousarray(words.T)

    def matches(queries: np.ndarray) -> np.ndarray:
        """Return minus the Hamming distances (b, m)."""
        near = np.zeros((len(queries), len(words)), np.int32)
        for row, query in zip(near, _sign_words(queries), strict=True):
            for column, word in zip(by_word, query, strict=True):
                row -= np.bitwise_count(column ^ word)
        return near

    def rescored(queries: np.ndarray) -> np.ndarray:
        near, count, width = matches(queries), min(CANDIDATES, len(words)), queries.shape[1]
        last = np.partition(near, -count, 1)[:, -count, None]
        scores = (near - 4 * width).astype(np.float32)  # of the others, below those of all candidates
        for row, query, is_near in zip(scores, queries, near >= last, strict=True):
            signs = np.unpackbits(words[is_near].view(np.uint8), axis=1, count=width)
            row[is_near] = 2 * (signs @ query) - query.sum()
        return scores

    return words, matches if precision == "binary" else rescored


def _sign_words(rows: np.ndarray) -> np.ndarray:
    """Return which values are above 0 as bits (n, words) of 64-bit words."""
    packed = np.packbits(rows > 0, axis=1)
    padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(np.uint64)


def scores_of(records: Sequence[JsonObject]) -> list[CompressedScore]:
    """Return the scores of a stored result."""
    return [CompressedScore(**{**one, "interval": tuple(one["interval"])}) for one in records]


def by_vector(found: Sequence[CompressedScore]) -> list[list[CompressedScore]]:
    """Return the scores of each kind of vector, in the order of METRICS, the smallest vectors first."""
    kinds: dict[tuple[str, int, str], list[CompressedScore]] = {}
    for one in found:
        kinds.setdefault((one.reduction, one.width, one.precision), []).append(one)
    return sorted(kinds.values(), key=lambda scores: scores[0].size)


def best_by_size(found: Sequence[CompressedScore]) -> list[list[CompressedScore]]:
    """Return the scores of the vectors whose nDCG@10 no vector of at most their size reaches, the smallest first."""
    best: list[list[CompressedScore]] = []
    for scores in sorted(by_vector(found), key=lambda scores: (scores[0].size, -scores[1].value)):
        if not best or scores[1].value > best[-1][1].value:
            best.append(scores)
    return best


def smallest(found: Sequence[CompressedScore], margin: float) -> list[CompressedScore]:
    """Return the scores of the smallest vectors that lose at most `margin` (a share) in every metric, by the lower ends
    of the intervals; [] if there are none."""
    kept = (scores for scores in by_vector(found) if all(one.interval[0] > -margin for one in scores))
    return next(kept, [])
