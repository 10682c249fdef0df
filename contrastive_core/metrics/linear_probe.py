"""Linear probe: L2-regularized multinomial logistic regression on frozen features, by L-BFGS.

Minimizes Σ cross-entropy + ‖W‖²/(2C), scikit-learn's objective (the bias is free), on features standardized by the
training rows. C is chosen by cross-validated log-loss, of many rows on a sample (see _strength.py); then all training
rows are fitted. Above HELD numbers they are not copied: each pass reads them, and standardizes, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.device import pick_device
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.messages import N_, message
from contrastive_core.metrics._base import PREDICTED, Metric, MetricResult, labels_of
from contrastive_core.metrics._logistic import Logistic, logits_by_block
from contrastive_core.metrics._standardized import Moments, Standardized
from contrastive_core.metrics._strength import Strength, choose_strength
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.intervals import wilson
from contrastive_core.registry import knob

__all__ = ["LinearProbe", "Logistic"]

HELD = 1 << 26  # numbers, 256 MB: training rows that are standardized once and held


@dataclass(frozen=True)
class LinearProbe(Metric):
    title = N_("Linear probe accuracy")
    reading = N_(
        "Share of test samples that a linear classifier on the frozen features gets right; what the embedding holds in"
        " a form that is easy to read off."
    )
    needs_labels = True
    needs_train = True
    unit_rows = False

    c: float = knob(0.0, 0, 1e6, N_("inverse strength of the L2 penalty; 0: by cross-validated log-loss on train"))

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        assert train.labels is not None
        lie, device = graphs.rows, pick_device(graphs.device)
        truth, train_labels = labels_of(test, self.title, lie), labels_of(train, self.title, lie)
        classes, y = np.unique(train_labels[train_labels >= 0], return_inverse=True)
        labeled = None if (train.labels >= 0).all() else np.flatnonzero(train.labels >= 0)
        moments = Moments(train.features, labeled, lie)
        x = Standardized(train.features, moments, device, labeled)
        chosen = Strength(self.c) if self.c else choose_strength(x, y, lie)
        first = lie.start(len(x))
        target = torch.from_numpy(y[first : first + len(x)]).to(device)  # this part's rows
        design = x[:] if x.shape.numel() <= HELD else x
        weight = Logistic(design, target, len(classes), lie).fit(chosen.c, chosen.weight)
        found = torch.empty(len(test), dtype=torch.long)
        for part, _, logits in logits_by_block(Standardized(test.features, moments, device), weight):
            found[part] = logits.argmax(1).cpu()
        predicted = classes[lie.whole(found.numpy())]
        right = np.where(truth >= 0, predicted == truth, np.nan)
        n, hits = int((truth >= 0).sum()), int(np.nansum(right))
        extras = {"c": chosen.c, "n": n, "folds": chosen.folds, "log_loss": chosen.log_loss}
        if chosen.sample:
            extras["sample"] = message("C by {sample}", sample=chosen.sample)
        return MetricResult(hits / n, right, wilson(hits, n), "share", extras, {PREDICTED: predicted})
