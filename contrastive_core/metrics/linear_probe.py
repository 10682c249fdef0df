"""Linear probe: L2-regularised multinomial logistic regression on frozen features, by L-BFGS.

Minimises Σ cross-entropy + ‖W‖²/(2C), scikit-learn's objective (the bias is free), on features
standardised by the training rows, in float64. C is chosen on a fifth of the training rows that is
held out; each C starts from the weights of the one before. Then all training rows are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.metrics._base import CannotScore, Metric, MetricResult, labels_of, wilson
from contrastive_core.neighbours import Graphs, pick_device
from contrastive_core.registry import knob

__all__ = ["LinearProbe", "fit_logistic", "held_out", "objective", "standardise"]

STRENGTHS = tuple(10.0**e for e in range(-5, 3))  # of C, from strong to weak regularisation


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
        truth, known = labels_of(test, self.title), labels_of(train, self.title)
        rows = np.flatnonzero(known >= 0)
        classes, y = np.unique(known[rows], return_inverse=True)
        device = pick_device(graphs.device)
        x, x_test = standardise(train.features[rows], test.features, device)
        target = torch.from_numpy(y).to(device)
        c, tried = (self.c, {}) if self.c else _choose(x, target, y)
        weight = fit_logistic(x, target, len(classes), c)
        logits = x_test @ weight[:-1] + weight[-1]  # (n, c)
        predicted = classes[logits.argmax(1).cpu().numpy()]
        right = np.where(truth >= 0, predicted == truth, np.nan)
        n, hits = int((truth >= 0).sum()), int(np.nansum(right))
        return MetricResult(
            hits / n,
            per_sample=right,
            interval=wilson(hits, n),
            unit="share",
            extras={"c": c, "n": n, "held_out": tried},
            arrays={"predicted": predicted, "probabilities": logits.softmax(1).cpu().numpy()},
        )


def standardise(train: np.ndarray, test: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """Both sets in float64 with the training rows' mean 0 and deviation 1 (constant columns: 0)."""
    a = torch.from_numpy(train).to(device).double()
    b = torch.from_numpy(test).to(device).double()
    mean, deviation = a.mean(0), a.std(0, correction=0)
    scale = torch.where(deviation > 1e-12 * (1 + mean.abs()), 1 / deviation, 0.0)
    return (a - mean) * scale, (b - mean) * scale


def held_out(labels: np.ndarray, share: float = 0.2, seed: int = 0) -> np.ndarray:
    """A fixed stratified mask (n): true for about `share` of each class, never a whole class."""
    draw = np.random.default_rng(seed)
    mask = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = draw.permutation(np.flatnonzero(labels == label))
        mask[rows[: min(len(rows) - 1, round(share * len(rows)))]] = True
    return mask


def _choose(x: Tensor, target: Tensor, y: np.ndarray) -> tuple[float, dict[str, float]]:
    """The C with the best held-out accuracy (ties: the stronger penalty), and all of them."""
    out = torch.from_numpy(held_out(y)).to(x.device)
    if not out.any():
        raise CannotScore("every class has one training row, so no strength can be chosen")
    classes, weight, tried = int(target.max()) + 1, None, {}
    for c in STRENGTHS:
        weight = fit_logistic(x[~out], target[~out], classes, c, weight, tolerance=1e-4)
        guess = (x[out] @ weight[:-1] + weight[-1]).argmax(1)
        tried[f"{c:g}"] = float((guess == target[out]).double().mean())
    best = max(tried, key=lambda k: tried[k])
    return float(best), tried


def objective(weight: Tensor, x: Tensor, target: Tensor, c: float) -> Tensor:
    """C·Σ cross-entropy + ½‖W‖², per row and unit of C: weight (d+1, classes), bias last."""
    logits = x @ weight[:-1] + weight[-1]
    penalty = weight[:-1].square().sum() / (2 * c * len(x))
    return F.cross_entropy(logits, target) + penalty


def fit_logistic(
    x: Tensor,
    target: Tensor,
    classes: int,
    c: float,
    start: Tensor | None = None,
    tolerance: float = 1e-6,
) -> Tensor:
    """Weights (d+1, classes) that minimise `objective`, to a largest gradient of `tolerance`."""
    begin = x.new_zeros(x.shape[1] + 1, classes) if start is None else start.detach().clone()
    weight = begin.requires_grad_()
    solver = torch.optim.LBFGS(
        [weight],
        max_iter=1000,
        max_eval=2000,
        tolerance_grad=tolerance,
        tolerance_change=1e-14,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        solver.zero_grad()
        loss = objective(weight, x, target, c)
        loss.backward()
        return loss

    solver.step(closure)
    return weight.detach()
