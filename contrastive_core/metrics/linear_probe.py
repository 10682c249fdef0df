"""Linear probe: L2-regularized multinomial logistic regression on frozen features, by L-BFGS.

Minimizes Σ cross-entropy + ‖W‖²/(2C), scikit-learn's objective (the bias is free), on features
standardized by the training rows. C is chosen on a fifth of the training rows that is
held out; each C starts from the weights of the one before. Then all training rows are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contrastive_core.distributed.sharded_rows import HERE, Rows
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import CannotScore
from contrastive_core.metrics._base import Metric, MetricResult, labels_of, wilson
from contrastive_core.metrics._logistic import fit_logistic, gram_of, objective
from contrastive_core.ops.neighbors import pick_device
from contrastive_core.registry import knob

__all__ = ["LinearProbe", "fit_logistic", "held_out", "objective", "standardize"]

STRENGTHS = tuple(10.0**e for e in range(-5, 3))  # of C, from strong to weak regularization
PATIENCE = 3


@dataclass(frozen=True)
class LinearProbe(Metric):
    title = "Linear probe accuracy"
    reading = (
        "Share of test samples that a linear classifier on the frozen features gets right; "
        "what the embedding holds in a form that is easy to read off."
    )
    needs_labels = True
    needs_train = True
    unit_rows = False

    c: float = knob(0.0, 0, 1e6, "inverse strength of the L2 penalty; 0: chosen on held-out train")

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        assert train.labels is not None
        lie, device = graphs.rows, pick_device(graphs.device)
        truth, known = labels_of(test, self.title, lie), labels_of(train, self.title, lie)
        classes, y = np.unique(known[known >= 0], return_inverse=True)
        rows = np.flatnonzero(train.labels >= 0)
        x, x_test = standardize(train.features[rows], test.features, device, lie)
        first = lie.start(len(rows))
        here = slice(first, first + len(rows))  # this part's rows among all
        target = torch.from_numpy(y[here]).to(device)
        c, tried = (
            (self.c, {}) if self.c else _choose(x, target, len(classes), held_out(y)[here], lie)
        )
        weight = fit_logistic(x, target, len(classes), c, rows=lie)
        logits = lie.whole((x_test @ weight[:-1] + weight[-1]).cpu().numpy())  # (n, c)
        predicted = classes[logits.argmax(1)]
        right = np.where(truth >= 0, predicted == truth, np.nan)
        n, hits = int((truth >= 0).sum()), int(np.nansum(right))
        return MetricResult(
            hits / n,
            per_sample=right,
            interval=wilson(hits, n),
            unit="share",
            extras={"c": c, "n": n, "held_out": tried},
            arrays={
                "predicted": predicted,
                "probabilities": torch.from_numpy(logits).softmax(1).numpy(),
            },
        )


def standardize(
    train: np.ndarray, test: np.ndarray, device: torch.device, lie: Rows = HERE
) -> tuple[Tensor, Tensor]:
    """Both sets, float32, with the training rows' mean 0 and deviation 1 (constant columns: 0)."""
    a = torch.from_numpy(train).to(device).double()
    b = torch.from_numpy(test).to(device).double()
    n = lie.number(len(a))
    mean = lie.total(a.sum(0)) / n
    deviation = (lie.total((a - mean).square().sum(0)) / n).sqrt()
    scale = torch.where(deviation > 1e-12 * (1 + mean.abs()), 1 / deviation, 0.0)
    return ((a - mean) * scale).float(), ((b - mean) * scale).float()


def held_out(labels: np.ndarray, share: float = 0.2, seed: int = 0) -> np.ndarray:
    """A fixed stratified mask (n): true for about `share` of each class, never a whole class."""
    draw = np.random.default_rng(seed)
    mask = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = draw.permutation(np.flatnonzero(labels == label))
        mask[rows[: min(len(rows) - 1, round(share * len(rows)))]] = True
    return mask


def _choose(
    x: Tensor, target: Tensor, classes: int, mask: np.ndarray, lie: Rows
) -> tuple[float, dict[str, float]]:
    """The C with the best accuracy on the rows `mask` (ties: the stronger penalty), and all tried.

    From strong to weak; ends once PATIENCE weaker penalties in a row were no better than the best.
    """
    out = torch.from_numpy(mask).to(x.device)
    count = lie.number(int(mask.sum()))
    if not count:
        raise CannotScore("every class has one training row, so no strength can be chosen")
    seen, known, new, truth = x[~out], target[~out], x[out], target[out]
    weight, gram = None, gram_of(seen, lie)
    tried: dict[str, float] = {}
    best, worse = "", 0
    for c in STRENGTHS:
        weight = fit_logistic(seen, known, classes, c, weight, 1e-4, gram, lie)
        guess = (new @ weight[:-1] + weight[-1]).argmax(1)
        tried[f"{c:g}"] = share = lie.number(int((guess == truth).sum())) / count
        best, worse = (f"{c:g}", 0) if not best or share > tried[best] else (best, worse + 1)
        if worse == PATIENCE:
            break
    return float(best), tried
