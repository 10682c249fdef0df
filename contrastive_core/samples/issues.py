"""Issues of samples: mislabeled, false negative, duplicate, outlier; and the table of an embedding, with the losses.

A higher score is a stronger suspicion:
- mislabeled: the probability that the label is wrong, by five voters that have not seen it (label_errors.py).
- false_negative: cosine similarity to the nearest row that the loss would push away: any other one, or, for pairs by
  class, the nearest of another class.
- duplicate: how much nearer the nearest row of either split is than the k-th of this split, 1 − d₁/d_k, d Euclidean on
  unit rows: in the embedding and in centered pixels.
- outlier: log of the mean distance to the k nearest rows (Ramaswamy et al. 2000, SIGMOD), cosine, in the embedding and
  in centered pixels. An encoder maps unfamiliar images close together, so noise is not an outlier in the embedding,
  only in the pixels.

For duplicate and outlier the larger (x − median)/interquartile range of the two spaces counts, so a space with a wide
spread does not hide a clear signal in the other.

In a large set faiss searches the nearest rows (spaces/neighbor_graphs.py) and the recall is recorded; a score then
refers to the rows that were found. Measured by `benchmarks/planted_errors.py` and `benchmarks/label_errors.py`."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnFraction, OnProgress, fraction_of, ignore_fraction, ignore_progress
from contrastive_core.base.registry import Knobs
from contrastive_core.samples.label_errors import LabelErrors, find_label_errors
from contrastive_core.samples.losses import ByClass, LossInputs, by_class, part_of, per_sample
from contrastive_core.samples.sample_table import COLUMNS, FEWEST, K, SampleTable, standardized
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import LIKELY, Neighbors, nearest, unit_rows
from contrastive_core.spaces.towers import PAIR, TOWER

BLOCK = 4096  # rows whose distances are taken at a time
LIKELIEST = 4  # classes that a person chooses from: a row's own, and three others
WIDE = 3  # times the neighbors that vote: some of them may not
Pixels = tuple[np.ndarray, np.ndarray | None]  # images as rows (n, p), of this split and of the other


@dataclass(frozen=True, eq=False)
class Issues:
    """A score per sample (n) for each list, with supporting values. NaN: the score does not apply."""

    scores: dict[str, np.ndarray]
    neighbors: Neighbors
    by_class: ByClass | None  # None without labels
    labels: LabelErrors | None  # None with fewer than two classes
    nearest_duplicate: np.ndarray  # (n) row number, in the other split if `leaked`
    leaked: np.ndarray  # (n) bool: the nearest row lies in the other split
    nearness: np.ndarray  # (n) 1 − d₁/d_k to it; 1: a copy

    @property
    def nearest_negative(self) -> np.ndarray:
        """The nearest row (n) of another label; −1: none. Without labels all other rows are negatives."""
        return self.neighbors.index[:, 0] if self.by_class is None else self.by_class.other


def find_issues(
    rows: EmbeddingSet,
    other: EmbeddingSet | None = None,
    pixels: Pixels | None = None,
    supervised: bool = False,
    device: str = "auto",
    on_fraction: OnFraction = ignore_fraction,
    view_features: np.ndarray | None = None,
) -> Issues:
    """Compute the issue scores of all rows.

    Args: other: the other split in the same space, to find leaks; pixels: to find copies and outliers that the encoder
        misses; supervised: only rows of another class are negatives; on_fraction: called with the completed fraction,
        an exception from it stops the work; view_features: (n, d) mean of the unit rows of each row's augmented views.
        Wrong labels are searched on its sum with the unit row, which has less noise.
    Raises: UnusableEmbedding for fewer than two rows, or values that are not finite."""
    most = min(WIDE * (k := max(1, min(K, len(rows) - 1))), len(rows) - 1)
    wide = nearest(rows.features, None, most, "cosine", device, lambda f: on_fraction(0.4 * f), LIKELY)
    graph = wide.first(k)
    spaces = [(rows.features, other.features if other else None, graph)]
    if pixels is not None:  # centered: cosines do not change when an image is made brighter or flatter
        x, far = (None if part is None else part - part.mean(1, keepdims=True) for part in pixels)
        assert x is not None
        spaces.append((x, far, nearest(x, None, k, device=device, approximate=LIKELY)))
    copy_of, leaked, nearness, duplicate = _duplicates(spaces, device)
    on_fraction(0.6)
    labeled, wrong, classes = np.full(1, -1) if rows.labels is None else rows.labels, None, None
    labels, labeled = np.unique(labeled), labeled[labeled >= 0]
    if (labels >= 0).sum() > 1 and len(labeled) >= FEWEST:
        seen, near = rows, wide
        if view_features is not None:
            seen = dataclasses.replace(rows, features=unit_rows(rows.features).numpy() + view_features)
            near = nearest(seen.features, None, most, "cosine", device, approximate=LIKELY)
        wrong = find_label_errors(seen, near, device, lambda f: on_fraction(0.6 + 0.4 * f))
        classes = wrong.by_class if near is wide else None
    if classes is None and (labels >= 0).any():
        classes = by_class(rows, device, None if wide.recall is None else wide)
    distances = [1 - near.score.mean(1, dtype=np.float64) for _, _, near in spaces]  # from the neighbors
    least = [max(1e-3 * float(np.median(d)), 1e-12) for d in distances]  # copies: their logarithm is no matter
    negative, none = graph.score[:, 0].astype(np.float64), np.full(len(rows), np.nan)
    scores = {
        "mislabeled": wrong.probability if wrong else none,
        "false_negative": classes.other_score if supervised and classes else negative,
        "duplicate": duplicate,
        "outlier": np.max([standardized(np.log(np.maximum(*two))) for two in zip(distances, least, strict=True)], 0),
    }
    if PAIR in rows.columns and len(np.unique(rows.columns.get(TOWER, ()))) == 2:  # partners are near
        scores |= {"false_negative": none, "duplicate": none}
    on_fraction(1.0)
    return Issues(
        scores=scores,
        neighbors=graph,
        by_class=classes,
        labels=wrong,
        nearest_duplicate=copy_of,
        leaked=leaked,
        nearness=nearness,
    )


def _duplicates(
    spaces: list[tuple[np.ndarray, np.ndarray | None, Neighbors]], device: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the nearest row of either split, whether it is in the other split, 1 − d₁/d_k, and the score; (n) each,
    from the space with the larger score. `spaces`: rows of this split and of the other, and the k nearest of this
    split."""
    found = []
    for x, other, graph in spaces:
        copy = graph.index[:, 0].copy()
        first, last = (_distances(x, x, graph.index[:, q]) for q in (0, -1))
        leaked = np.zeros(len(copy), bool)
        if other is not None:
            far = nearest(x, other, 1, device=device, approximate=LIKELY).index[:, 0]
            across = _distances(x, other, far)
            leaked = across < first
            copy[leaked], first[leaked] = far[leaked], across[leaked]
        nearness = 1 - first / np.maximum(last, 1e-12)
        found.append((copy, leaked, nearness, standardized(nearness)))
    which = np.argmax([standard for *_, standard in found], 0)
    copy, leaked, nearness, standard = (np.choose(which, c) for c in zip(*found, strict=True))
    return copy, leaked, nearness, standard


def _distances(x: np.ndarray, y: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return the distance (n) on the sphere from each row of x to its row of y. It is computed in float64, because
    float32 cosines cannot resolve distances below 3e-4."""
    distance = np.empty(len(x))
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        a, b = (rows.astype(np.float64) for rows in (x[part], y[index[part]]))
        a, b = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in (a, b))
        distance[part] = np.linalg.norm(a - b, axis=1)
    return distance


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SampleInputs:
    """Inputs of a sample table: an embedding, its loss, and further data.

    rows: for the loss. features: for the issues (default: rows); other: the other split in the space of `features`;
    view_features: as in `find_issues`; pixels: both splits' images as rows (n, p). views: draws of (n, v, d) augmented
    views, for self-supervised pairs, over which the loss is averaged."""

    rows: EmbeddingSet
    loss: str
    knobs: Knobs | None = None
    views: list[np.ndarray] | None = None
    features: EmbeddingSet | None = None
    other: EmbeddingSet | None = None
    view_features: np.ndarray | None = None
    pixels: Pixels | None = None
    device: str = "auto"


def build_table(inputs: SampleInputs, on_progress: OnProgress = ignore_progress) -> SampleTable:
    """Build the table of an embedding. Without labels and views no row has a positive, so the loss is NaN and only the
    lists have values. Raises ValueError when the loss cannot use these pairs; an exception from `on_progress` stops the
    work."""
    rows = inputs.rows if inputs.features is None else inputs.features
    views: list[np.ndarray | None] = [*inputs.views] if inputs.views else [None] * (inputs.rows.labels is not None)
    draws = [LossInputs(inputs.rows, inputs.loss, inputs.knobs, one, inputs.device) for one in views]
    value, weight, facts = np.full(len(rows), np.nan), np.zeros(len(rows)), dict[str, float]()
    if draws:
        stage = N_("loss of every sample")
        if (most := draws[0].candidates) is not None:
            facts["loss_candidates"] = most
            stage = message("loss of every sample, among {number} random samples", number=f"{most:,}")
        on_fraction = fraction_of(on_progress, stage)
        found = [per_sample(draw, part_of(on_fraction, q, len(draws))) for q, draw in enumerate(draws)]
        value, weight = np.mean([loss for loss, _ in found], 0), found[-1][1]
    on_fraction = fraction_of(on_progress, N_("issues"))
    issues = find_issues(
        rows, inputs.other, inputs.pixels, not inputs.views, inputs.device, on_fraction, inputs.view_features
    )
    extra, more = _explained(rows, issues, inputs.other, inputs.views is None)
    facts |= more | {f"neighbors_{k}": v for k, v in issues.neighbors.about.items()}
    labels, order = np.full(len(rows), -1) if rows.labels is None else rows.labels, np.argsort(-value, kind="stable")
    columns = {
        "id": np.array(rows.ids),
        "label": np.array([rows.class_name(int(c)) for c in labels]),
        "loss": value,
        "weight": weight,
        "rank": np.argsort(order, kind="stable") + 1,  # 1: the highest loss; NaN last
        **{k: v for k, v in issues.scores.items() if k in COLUMNS},
        "nearest_positive": _ids_of(rows, np.full(len(rows), -1) if issues.by_class is None else issues.by_class.same),
        "nearest_negative": _ids_of(rows, issues.nearest_negative),
    }
    assert tuple(columns) == COLUMNS
    return SampleTable(columns=columns, classes=inputs.rows.classes, loss=inputs.loss, extra=extra, facts=facts)


def _ids_of(rows: EmbeddingSet, at: np.ndarray) -> np.ndarray:
    """Return the ids of the rows `at`; "" for −1."""
    return np.where(at >= 0, np.array(rows.ids)[at], "")


def _explained(
    rows: EmbeddingSet, issues: Issues, other: EmbeddingSet | None, supervised: bool
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return the columns and facts beyond COLUMNS: what the lists rest on, and what each voter says of the label."""
    near, wrong = issues.neighbors.index[:, 0], issues.labels
    both = np.array([*rows.ids, *(other.ids if other else ())])
    extra = {
        "nearest_duplicate": both[issues.nearest_duplicate + issues.leaked * len(rows)],
        "leaked": issues.leaked,
        "nearness": issues.nearness,
        "lookalike": _ids_of(rows, issues.nearest_negative if rows.labels is not None and supervised else near),
    }
    if wrong is None or rows.labels is None:
        return extra, {}
    facts = {}
    if not supervised:  # else a negative is of another class, by its definition
        top = np.argsort(-issues.scores["false_negative"])[: max(1, len(rows) // 20)]
        facts["false_negatives_of_same_class"] = float((rows.labels[near[top]] == rows.labels[top]).mean())
    p, most = wrong.classes, min(LIKELIEST, wrong.classes.shape[1])
    blocks = (np.nan_to_num(p[start : start + BLOCK]) for start in range(0, len(p), BLOCK))
    of_class = {
        "suggested": wrong.suggested,
        "probe_prediction": wrong.predicted["probe"],
        "knn_prediction": wrong.predicted["neighbors"],
        "discriminant_prediction": wrong.predicted["discriminant"],
        "min_loss_class": wrong.by_class.losses.argmin(1),
        "likely": np.concatenate([np.argsort(-block, 1, kind="stable")[:, :most] for block in blocks]),
    }
    names = np.array([rows.class_name(c) for c in [*range(p.shape[1]), -1]])  # the last: of rows without a label
    extra |= {name: names[at] for name, at in of_class.items()}
    return extra | {"suggested_probability": wrong.confidence}, facts
