"""A map from the vectors of an old model to those of a new one, learned from a sample that both encoded. Torch-free.

With such an adapter an index of old vectors answers queries of the new model, and nothing is encoded again. Source:
Drift-Adapter, arXiv 2509.23471. Deviation: it maps old documents to the new space, which needs the documents but leaves
the queries as they are; then some documents can be encoded again, those that answer most queries first.

All maps are affine, y ≈ (x − mean of x) W + mean of y, for unit rows x (old) and y (new) of the documents:

- procrustes: the best matrix with orthonormal rows or columns, times one factor (Schönemann 1966, Psychometrika 31, 1).
- ridge: W = (XᵀX + λ tr(XᵀX)/d I)⁻¹ XᵀY.
- low_rank: the ridge map, projected on the r leading directions of its values (reduced-rank regression: Izenman 1975,
  J. Multivar. Anal. 5, 248).

λ and r are those with the largest mean cosine in five-fold cross-validation on the documents for fitting.

**Kept recall** of a query is the share of its k nearest documents in the new space that are also its k nearest with
mapped documents. It needs no labels. A third of the documents and all queries are held out from fitting and from λ and
r. The lower bound is a bet on the values of the queries (base/score.py), free of any assumption on their
distribution, with α / 3 for each of the three maps, so it also holds for the map that is chosen. It is a statement
about queries of this kind and the held-out documents: a larger collection has closer neighbors."""

from dataclasses import dataclass
from math import erfc

import numpy as np
from jaxtyping import Float32, Float64, Int64

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import overlap
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.score import holm, lower_bound, mean_intervals
from contrastive_core.ops.partner_ranks import BLOCK, unit_rows
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space

KINDS = {"procrustes": N_("orthogonal Procrustes"), "ridge": N_("ridge"), "low_rank": N_("low rank")}
K = 10
ALPHA = 0.05
FOLDS, HELD = 5, 3  # of the documents for fitting; one document in HELD is held out
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # λ
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)  # of the documents that are encoded again
FEWEST = 60  # documents
SMALLEST = 10  # queries of a group
LISTED = 1000  # documents to encode first
MOST, DOCUMENTS = 2000, 30_000  # queries, and documents of the sample
FEW = N_("a map needs at least {fewest} documents that both models encoded; got {count}")
FEW_QUERIES = N_("a bound needs at least 2 queries; got {count}")


@dataclass(frozen=True, eq=False)
class Adapter:
    """An affine map of unit rows: x @ matrix + offset, then unit length. `matrix` (d, e), `offset` (e); `setting`: λ of
    ridge, the rank of low_rank, 0 without one."""

    kind: str
    matrix: Float32[np.ndarray, "d e"]
    offset: Float32[np.ndarray, " e"]
    setting: float = 0.0

    def __call__(self, x: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n e"]:
        """Return the mapped unit rows."""
        return unit_rows(unit_rows(x) @ self.matrix + self.offset)


def title_of(kind: str, setting: float) -> str:
    """Return the name of a map with its λ or rank."""
    if kind == "procrustes":
        return KINDS[kind]
    text = N_("{kind}, λ {setting}") if kind == "ridge" else N_("{kind}, rank {setting}")
    return message(text, kind=KINDS[kind], setting=f"{setting:g}")


class _Sums:
    """The sums over documents from which each kind of map follows."""

    def __init__(self, old: np.ndarray, new: np.ndarray) -> None:
        self.means = old.mean(0, dtype=np.float64), new.mean(0, dtype=np.float64)
        x, y = old - self.means[0], new - self.means[1]
        self.product = x.T @ y
        values, self.axes = np.linalg.eigh(x.T @ x)
        self.energy = np.maximum(values, 0)

    def adapter(self, kind: str, penalty: float, rank: int) -> Adapter:
        """Return the map of this kind. Args: penalty: λ; rank: of low_rank."""
        if kind == "procrustes":
            left, values, right = np.linalg.svd(self.product, full_matrices=False)
            matrix = left @ right * values.sum() / max(1e-12, float(self.energy.sum()))
        else:
            scaled = self.axes.T @ self.product / (self.energy + penalty * self.energy.mean() + 1e-12)[:, None]
            matrix = self.axes @ scaled
            if kind == "low_rank":
                spread = np.sqrt(self.energy)[:, None] * scaled
                leading = np.linalg.eigh(spread.T @ spread)[1][:, -rank:]
                matrix = matrix @ leading @ leading.T
        offset = self.means[1] - self.means[0] @ matrix
        setting = {"ridge": penalty, "low_rank": float(rank)}.get(kind, 0.0)
        return Adapter(kind, matrix.astype(np.float32), offset.astype(np.float32), setting)


def adapter_request(old: Space, new: Space) -> Values:
    """Return the request for the analysis "adapter"."""
    return {"old": old.values, "new": new.values}


def fit_adapters(old: Float32[np.ndarray, "n d"], new: Float32[np.ndarray, "n e"]) -> list[Adapter]:
    """Return the map of each kind. Args: old, new: unit rows of the same documents."""
    fold = np.arange(len(old)) % FOLDS
    sums = [_Sums(old[fold != number], new[fold != number]) for number in range(FOLDS)]

    def cosine(kind: str, penalty: float, rank: int) -> float:
        parts = ((of_fold.adapter(kind, penalty, rank), fold == number) for number, of_fold in enumerate(sums))
        return sum(float((made(old[held]) * new[held]).sum()) for made, held in parts)

    penalty = max(PENALTIES, key=lambda one: cosine("ridge", one, 0))
    widest = min(old.shape[1], new.shape[1])
    ranks = [rank for step in range(1, 5) if (rank := widest >> step)] or [1]
    rank = max(ranks, key=lambda one: cosine("low_rank", penalty, one))
    whole = _Sums(old, new)
    return [whole.adapter(kind, penalty, rank) for kind in KINDS]


def judge(
    documents: tuple[Float32[np.ndarray, "n d"], Float32[np.ndarray, "n e"]],
    queries: tuple[Float32[np.ndarray, "q d"], Float32[np.ndarray, "q e"]],
    labels: Int64[np.ndarray, " q"] | None = None,
    seed: int = 0,
    on_fraction: OnFraction = ignore_fraction,
) -> tuple[Adapter, JsonObject, Float64[np.ndarray, " q"], Int64[np.ndarray, " held"]]:
    """Fit maps on two thirds of the documents, and judge them by the queries on the others.

    Args: documents, queries: vectors by the old and by the new model; labels: groups of queries, -1 for none;
        seed: of the split.
    Returns: the map that keeps most; plain values; kept recall of each query; and the held-out documents, most frequent
        answers first, as indices of the documents. Plain values: `kept`, the value and bound of each map; `old`, the
        share of the new model's answers that old queries find among old documents, with its 95 % interval; `groups`,
        those that keep least first; `partial`, the kept recall by share of documents encoded again (see `_reembedded`).
    Raises: CannotScore for too few documents or queries."""
    if len(documents[0]) < FEWEST:
        raise CannotScore(FEW, fewest=FEWEST, count=len(documents[0]))
    if len(queries[0]) < 2:
        raise CannotScore(FEW_QUERIES, count=len(queries[0]))
    order = np.random.default_rng(seed).permutation(len(documents[0]))[:DOCUMENTS]
    n_held = len(order) // HELD
    old, new = (unit_rows(x[order]) for x in documents)
    old_queries, new_queries = (unit_rows(x) for x in queries)
    adapters = fit_adapters(old[n_held:], new[n_held:])
    on_fraction(0.5)
    old, new = old[:n_held], new[:n_held]
    truth = nearest(new_queries, new)
    per_query = [overlap(nearest(new_queries, made(old)), truth) for made in adapters]
    kept = []
    for made, values in zip(adapters, per_query, strict=True):
        bound = lower_bound(*np.unique(values, return_counts=True), 0.0, 1.0, ALPHA / len(adapters))
        kept.append({"kind": made.kind, "setting": made.setting, "value": float(values.mean()), "bound": bound})
    on_fraction(0.7)
    best = int(np.argmax([values.mean() for values in per_query]))
    partial, first = _reembedded(new_queries, adapters[best](old), new, truth)
    before = overlap(nearest(old_queries, old), truth)
    meta = {
        "kind": adapters[best].kind,
        "setting": adapters[best].setting,
        "kept": kept,
        "old": (float(before.mean()), mean_intervals(before[:, None])[0].tolist()),
        "groups": [] if labels is None else _groups(per_query[best], labels),
        "partial": partial,
        "fitted": len(order) - n_held,
        "held": n_held,
        "queries": len(new_queries),
        "k": truth.shape[1],
    }
    return adapters[best], meta, per_query[best], order[first]


def nearest(queries: Float32[np.ndarray, "q d"], documents: Float32[np.ndarray, "m d"]) -> Int64[np.ndarray, "q k"]:
    """Return the K nearest documents of each query, in no order. Args: unit rows."""
    k, step = min(K, len(documents)), max(1, BLOCK // len(documents))
    parts = [queries[i : i + step] @ documents.T for i in range(0, len(queries), step)]
    return np.concatenate([np.argpartition(-part, k - 1, 1)[:, :k] for part in parts])


def _reembedded(
    queries: np.ndarray, mapped: np.ndarray, new: np.ndarray, truth: np.ndarray
) -> tuple[list[tuple[float, float, float]], np.ndarray]:
    """Return shares of documents with their new vectors, each with the mean kept recall if those that answer most
    queries come first, and at random; and the order by all queries. The order for each half of the queries comes from
    the other half."""
    near, m = nearest(queries, mapped), len(mapped)
    half, at_random = np.arange(len(queries)) % 2, np.random.default_rng(0).permutation(m)
    orders = [np.argsort(-np.bincount(near[half != side].ravel(), minlength=m), kind="stable") for side in (0, 1)]
    partial = []
    for share in SHARES:
        kept = np.empty((2, len(queries)))
        for side, first in enumerate(orders):
            for row, order in enumerate((first, at_random)):
                mixed, again = mapped.copy(), order[: round(share * m)]
                mixed[again] = new[again]
                kept[row, half == side] = overlap(nearest(queries[half == side], mixed), truth[half == side])
        partial.append((share, float(kept[0].mean()), float(kept[1].mean())))
    return partial, np.argsort(-np.bincount(near.ravel(), minlength=m), kind="stable")


def _groups(values: np.ndarray, labels: np.ndarray) -> list[JsonObject]:
    """Return the groups of at least SMALLEST queries, the lowest kept recall first. p: two-sided, by the normal
    approximation of the permutation test, corrected by Holm's method."""
    found: list[JsonObject] = []
    spread, n = float(values.std(ddof=1)), len(values)
    for label in np.unique(labels[labels >= 0]).tolist():
        inside = labels == label
        count, value = int(inside.sum()), float(values[inside].mean())
        if SMALLEST <= count < n:
            difference = value - float(values[~inside].mean())
            z = difference / max(1e-12, spread * np.sqrt(1 / count + 1 / (n - count)))
            p = erfc(abs(z) / 2**0.5)
            found.append({"label": label, "n": count, "value": value, "difference": difference, "p": p})
    for one, p in zip(found, holm([one["p"] for one in found]), strict=True):
        one["p"] = p
    return sorted(found, key=lambda one: one["value"])
