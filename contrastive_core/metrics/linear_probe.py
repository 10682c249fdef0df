"""Linear probe: L2-regularized multinomial logistic regression on frozen features, by L-BFGS.

Minimizes Σ cross-entropy + ‖W‖²/(2C), scikit-learn's objective (the bias is free), on features
standardized by the training rows. C is chosen by cross-validated log-loss (see _strength.py); then
all training rows are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contrastive_core.distributed.sharded_rows import HERE, Rows
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.metrics._base import Metric, MetricResult, labels_of, wilson
from contrastive_core.metrics._logistic import fit_logistic, objective
from contrastive_core.metrics._strength import Strength, choose_strength
from contrastive_core.ops.neighbors import pick_device
from contrastive_core.registry import knob

__all__ = ["LinearProbe", "fit_logistic", "objective", "standardize"]


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

    c: float = knob(
        0.0, 0, 1e6, "inverse strength of the L2 penalty; 0: by cross-validated log-loss on train"
    )

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        assert train.labels is not None
        lie, device = graphs.rows, pick_device(graphs.device)
        truth, train_labels = labels_of(test, self.title, lie), labels_of(train, self.title, lie)
        classes, y = np.unique(train_labels[train_labels >= 0], return_inverse=True)
        rows = np.flatnonzero(train.labels >= 0)
        x, x_test = standardize(train.features[rows], test.features, device, lie)
        chosen = Strength(self.c) if self.c else choose_strength(x, y, lie)
        first = lie.start(len(rows))
        target = torch.from_numpy(y[first : first + len(rows)]).to(device)  # this part's rows
        weight = fit_logistic(x, target, len(classes), chosen.c, chosen.weight, rows=lie)
        logits = lie.whole((x_test @ weight[:-1] + weight[-1]).cpu().numpy())  # (n, c)
        predicted = classes[logits.argmax(1)]
        right = np.where(truth >= 0, predicted == truth, np.nan)
        n, hits = int((truth >= 0).sum()), int(np.nansum(right))
        return MetricResult(
            hits / n,
            per_sample=right,
            interval=wilson(hits, n),
            unit="share",
            extras={"c": chosen.c, "n": n, "folds": chosen.folds, "log_loss": chosen.log_loss},
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
