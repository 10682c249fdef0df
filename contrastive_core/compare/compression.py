"""Quality of shorter and coarser vectors: recall@10 and nDCG@10 against the bytes of a vector. Torch-free.

Dimensions: `first` keeps the first k, as for Matryoshka embeddings (Kusupati et al. 2022, arXiv 2205.13147); `random`
keeps k random ones; `pca` projects on the k leading principal axes. The axes come from the documents alone, so queries
stay held out. They are not centered, because k = d must keep every inner product. Rows are then scaled to length 1.

Precision: `int8` rounds each dimension of the documents to 256 steps between its least and largest value; queries stay
float32. `binary` keeps signs and ranks by Hamming distance. `rescored` takes the 40 nearest of these documents and
orders them by the inner product of the float32 query with the document's signs, which needs no further bytes (BPR:
Yamada et al. 2021, arXiv 2106.00882)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float32

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.score import mean_intervals
from contrastive_core.compare.judged_queries import FIGURES, Relevant, figures
from contrastive_core.compare.verdicts import Contrast
from contrastive_core.ops.partner_ranks import BLOCK, unit_rows

REDUCTIONS = {"first": N_("first dimensions"), "random": N_("random dimensions"), "pca": N_("principal axes")}
PRECISIONS = {"float32": 32, "int8": 8, "binary": 1, "rescored": 1}  # bits of a number
PRECISION_TITLES = {"float32": "float32", "int8": "int8", "binary": N_("binary"), "rescored": N_("binary, rescored")}
METRICS = ("recall_10", "ndcg_10")
LEAST, STEPS = 8, 7  # dimensions, and how many widths: d, d/2, d/4, …
CANDIDATES = 40  # documents that are rescored: four for each of the 10 answers
MOST = 1000  # queries
FULL = N_("the full vectors")
Score = Callable[[np.ndarray], np.ndarray]  # of queries (b, k): similarities (b, m)


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
    found, losses = list[tuple[str, int, str, str, float]](), list[np.ndarray]()
    for number, (reduction, width) in enumerate(plan):
        if reduction == "pca" and width == d:  # the first of the last reduction: rows turn in place, some at a time
            axes = np.linalg.eigh((documents.T @ documents).astype(np.float64))[1][:, ::-1].astype(np.float32)
            for rows in (queries, documents):
                for part in np.array_split(rows, 1 + rows.size // BLOCK):  # views
                    part[:] = part @ axes
        columns = order.get(reduction, np.arange(d))[:width]
        short = [x if width == d else unit_rows(x[:, columns]) for x in (queries, documents)]
        for precision in PRECISIONS:
            kept, score = _coarse(short[1], precision)
            values = figures(relevant, short[0], kept, score)
            for metric in METRICS:
                found.append((reduction, width, precision, metric, float(values[metric].mean())))
                losses.append(values[metric] - full[metric])
        on_fraction((number + 1) / len(plan))
    intervals = mean_intervals(np.stack(losses, 1)).tolist()
    return [
        CompressedScore(
            reduction=reduction,
            width=width,
            precision=precision,
            size=width * PRECISIONS[precision] / 8,
            metric=metric,
            value=value,
            loss=float(loss.mean()),
            interval=(low, high),
        )
        for (reduction, width, precision, metric, value), loss, (low, high) in zip(
            found, losses, intervals, strict=True
        )
    ]


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
