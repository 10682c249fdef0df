"""Take the loss of one sample apart: the pairs behind it, its margin, its neighbors."""

from dataclasses import dataclass, replace

import numpy as np

from contrastive_core.base.cards import Kernel
from contrastive_core.base.messages import message
from contrastive_core.ops.similarity import normalize
from contrastive_core.samples.losses import LossInputs
from contrastive_core.samples.run_samples import is_paired_by_class, kept_views, rows_of, shown_views
from contrastive_core.samples.sample_table import SampleRequest, knobs_of


@dataclass(frozen=True)
class PairShare:
    """Another sample: what the loss compares, and its part of all pull or push on the anchor."""

    id: str
    label: int  # −1: none
    score: float
    share: float  # of Σ|∂L_i/∂score|
    column: int  # among all that the loss compares


@dataclass(frozen=True, eq=False)
class Explanation:
    """One sample's loss taken apart."""

    loss: float  # NaN where it is undefined
    score_kind: str
    hardest_negatives: list[PairShare]
    weakest_positives: list[PairShare]
    pull: float  # share of the gradient that positives have; the rest pushes
    margin: float  # cosine to the nearest positive less that to the nearest negative; NaN: no pair
    neighbors: list[PairShare]  # the nearest by cosine, whatever their relation
    scores: np.ndarray  # (m) float32, what the loss compares
    mask: np.ndarray  # (m) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Kernel | None  # how the browser computes the loss; None: it cannot
    views: np.ndarray | None = None  # (2, c, h, w) uint8: the anchor and its positive, where the loss pairs views


def explain_sample(request: SampleRequest, sample: str) -> Explanation:
    """Why a sample has the loss it has. Raises ValueError for one that is not there."""
    run, place, dataset, views = request.run, request.space.recorded, None, None
    of = run or (place.run if place else None)
    if run is None:
        rows = request.space.rows()
        assert rows is not None
    else:
        dataset, h, rows = rows_of(run, request.split)
        if not is_paired_by_class(run, h):
            views = kept_views(run, request.split, dataset)
    if sample not in rows.ids:
        values = {"sample": repr(sample), "id": repr(rows.ids[0])}
        raise ValueError(message("no sample {sample}; ids look like {id}", **values))
    row, knobs = rows.ids.index(sample), knobs_of(of, request.loss) if of else None
    found = explain_row(LossInputs(rows, request.loss, knobs, views, "cpu"), row)
    return (
        found
        if run is None or dataset is None or views is None
        else replace(found, views=shown_views(run, dataset, row))
    )


def explain_row(inputs: LossInputs, sample: int, most: int = 8) -> Explanation:
    """Take the loss of row `sample` (its first view) apart. Raises: ValueError as `per_sample`; IndexError."""
    rows, views, criterion = inputs.rows, inputs.views, inputs.criterion
    if not 0 <= sample < len(rows):
        raise IndexError(message("no row {sample}; there are {count} rows", sample=sample, count=len(rows)))
    v = 1 if views is None else views.shape[1]
    anchor = inputs.pairs().take_anchors(slice(sample * v, sample * v + 1))
    anatomy = criterion.anatomy(anchor)
    score, grad = (x[0].double().numpy() for x in (anatomy.scores, anatomy.grad_scores))
    positive, negative = (x[0].numpy() for x in (anatomy.positive, anatomy.negative))
    share = np.abs(grad) / max(float(np.abs(grad).sum()), 1e-30)
    mask = positive + 2 * negative + 3 * anatomy.self_pair[0].numpy()
    unit, others = normalize(anchor.anchors)[0], normalize(anchor.candidates)
    near = (others @ unit).double().numpy()  # (m) cosine of the one anchor with all candidates
    labels = np.full(len(rows), -1) if rows.labels is None else rows.labels
    nearness = score if anatomy.score_kind == "dot" else -score

    def listed(mask: np.ndarray, by: np.ndarray) -> list[PairShare]:
        columns = np.flatnonzero(mask)
        ordered = columns[np.argsort(by[columns])].tolist()
        return [PairShare(rows.ids[j // v], int(labels[j // v]), float(score[j]), float(share[j]), j) for j in ordered]

    other = np.arange(len(near)) // v != sample
    defined = bool(anatomy.output.weight[0] > 0)
    return Explanation(
        loss=float(anatomy.output.per_anchor[0]) if defined else float("nan"),
        score_kind=anatomy.score_kind,
        hardest_negatives=listed(negative, -nearness)[:most],
        weakest_positives=listed(positive, nearness)[:most],
        pull=float(share[positive].sum()),
        margin=_highest(near, positive) - _highest(near, negative),
        neighbors=listed(other, -near)[:most],
        scores=score.astype(np.float32),
        mask=mask.astype(np.uint8),
        kernel=criterion.kernel(),
    )


def _highest(near: np.ndarray, mask: np.ndarray) -> float:
    return float(near[mask].max()) if mask.any() else float("nan")
