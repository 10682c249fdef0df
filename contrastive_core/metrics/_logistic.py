"""L2-regularized multinomial logistic regression by preconditioned full-batch L-BFGS.

Minimizes the mean cross-entropy + ‖W‖²/(2Cn): scikit-learn's objective per row and unit of C, the
bias free. Source of the iteration: Nocedal & Wright 2006, algorithm 7.4. Deviation: its first guess
of the inverse Hessian is that of the objective at W = 0, (XᵀX/(n·classes) + I/(Cn))⁻¹, by one
Cholesky factor, so that learned features, whose columns go together, take few steps. An
iteration costs two products with X: along a direction the logits are linear, so that a shorter
step costs none.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from contrastive_core.distributed.sharded_rows import HERE, Rows

__all__ = ["fit_logistic", "gram_of", "objective"]

HISTORY = 10
STEPS = 1000
WIDEST = 4096  # columns above which the first guess is diagonal: the factor would not fit
SUFFICIENT = 1e-4  # Armijo's share of the promised decrease


def objective(weight: Tensor, x: Tensor, target: Tensor, c: float) -> Tensor:
    """The mean cross-entropy + ‖W‖²/(2Cn): weight (d+1, classes), bias last."""
    logits = x @ weight[:-1] + weight[-1]
    penalty = weight[:-1].square().sum() / (2 * c * len(x))
    return F.cross_entropy(logits, target) + penalty


def gram_of(x: Tensor, rows: Rows = HERE) -> Tensor:
    """XᵀX/n with the bias' column of ones, (d+1, d+1) float64; its diagonal if X is very wide."""
    n = rows.number(len(x))
    mean = rows.total(x.sum(0, dtype=torch.float64)) / n
    if x.shape[1] > WIDEST:
        return torch.cat([rows.total(x.double().square().sum(0)) / n, mean.new_ones(1)])
    gram = torch.empty(len(mean) + 1, len(mean) + 1, dtype=torch.float64, device=x.device)
    gram[:-1, :-1] = rows.total((x.mT @ x).double()) / n
    gram[-1, :-1] = gram[:-1, -1] = mean
    gram[-1, -1] = 1
    return gram


def fit_logistic(
    x: Tensor,
    target: Tensor,
    classes: int,
    c: float,
    start: Tensor | None = None,
    tolerance: float = 1e-6,
    gram: Tensor | None = None,
    rows: Rows = HERE,
) -> Tensor:
    """Weights (d+1, classes) that minimize `objective`, to a largest gradient of `tolerance`.

    Args: x: (n, d) float32 or float64; gram: what `gram_of(x)` gave, if it is at hand; rows: how
        the rows of x and target lie. The weights are alike on every process.
    """
    n, d = rows.number(len(x)), x.shape[1]
    decay = torch.full((d + 1, 1), 1 / (c * n), dtype=x.dtype, device=x.device)
    decay[-1] = 0
    solve = _preconditioner(gram_of(x, rows) if gram is None else gram, classes, 1 / (c * n))
    w = x.new_zeros(d + 1, classes) if start is None else start.to(x).clone()
    logits = x @ w[:-1] + w[-1]  # (n, classes)
    value = _value(logits, target, w, decay, n, rows)
    gradient = _gradient(logits, x, target, w, decay, n, rows)
    pairs: list[tuple[Tensor, Tensor]] = []
    for _ in range(STEPS):
        if float(gradient.abs().max()) <= tolerance:
            break
        step = -_two_loops(gradient, pairs, solve)
        slope = float((step * gradient).double().sum())
        along = x @ step[:-1] + step[-1]
        t, new = 1.0, value
        while t > 1e-8:
            new = _value(logits + t * along, target, w + t * step, decay, n, rows)
            if new <= value + SUFFICIENT * t * slope:
                break
            t = max(0.1 * t, min(0.5 * t, -slope * t * t / (2 * (new - value - slope * t))))
        if not new < value:  # no decrease that this precision can see
            break
        w, logits, value, old = w + t * step, logits.add_(along, alpha=t), new, gradient
        gradient = _gradient(logits, x, target, w, decay, n, rows)
        if float(((gradient - old) * step).sum()) > 0:
            pairs = [*pairs[1 - HISTORY :], (t * step, gradient - old)]
    return w


def _value(logits: Tensor, target: Tensor, w: Tensor, decay: Tensor, n: int, rows: Rows) -> float:
    target_logits = logits.gather(1, target[:, None])[:, 0]
    loss = rows.total((logits.logsumexp(1) - target_logits).sum(dtype=torch.float64)) / n
    return float(loss + (decay * w.square()).sum(dtype=torch.float64) / 2)


def _gradient(
    logits: Tensor, x: Tensor, target: Tensor, w: Tensor, decay: Tensor, n: int, rows: Rows
) -> Tensor:
    off = logits.softmax(1)  # (n, classes)
    off[torch.arange(len(off), device=off.device), target] -= 1
    off /= n
    return rows.total(torch.cat([x.mT @ off, off.sum(0, keepdim=True)])) + decay * w


def _preconditioner(gram: Tensor, classes: int, penalty: float) -> Tensor:
    """The Hessian at W = 0 for one class: a Cholesky factor, or a diagonal (d+1). It only sets the
    pace, so where rounding has left it indefinite, as of a collapsed encoder, more is added."""
    hessian = gram / classes
    diagonal = hessian if hessian.ndim == 1 else hessian.diagonal()
    diagonal[:-1] += penalty
    little = 1e-7 * diagonal.mean()
    diagonal += little
    if hessian.ndim == 1:
        return hessian
    for _ in range(8):
        factor, failed = torch.linalg.cholesky_ex(hessian)
        if not int(failed):
            return factor
        diagonal += little
        little *= 10
    return torch.linalg.cholesky(hessian)


def _two_loops(gradient: Tensor, pairs: list[tuple[Tensor, Tensor]], first: Tensor) -> Tensor:
    """The inverse Hessian as the last steps tell it, times the gradient."""
    q, steps = gradient, []
    for s, y in reversed(pairs):
        rho = 1 / (s * y).sum()
        a = rho * (s * q).sum()
        q = q - a * y
        steps.append((rho, a))
    r = _solve(first, q)
    if pairs:
        s, y = pairs[-1]
        r = r * ((s * y).sum() / (y * _solve(first, y)).sum())
    for (s, y), (rho, a) in zip(pairs, reversed(steps), strict=True):
        r = r + s * (a - rho * (y * r).sum())
    return r


def _solve(first: Tensor, q: Tensor) -> Tensor:
    if first.ndim == 1:
        return (q.double() / first[:, None]).to(q.dtype)
    return torch.cholesky_solve(q.double(), first).to(q.dtype)
