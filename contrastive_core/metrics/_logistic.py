"""L2-regularized multinomial logistic regression by preconditioned full-batch L-BFGS.

Minimizes the mean cross-entropy + ‖W‖²/(2Cn), scikit-learn's objective divided by C and n, with an unpenalized bias.
Source of the iteration: Nocedal & Wright 2006, algorithm 7.4. Deviation: the initial inverse Hessian is that of the
objective at W = 0, (XᵀX/(n·classes) + I/(Cn))⁻¹, from one Cholesky factor. Learned features have correlated columns and
need few steps with it. XᵀX uses a subset of about GUIDE rows, because it only affects the speed.

Value and gradient are summed in float64 over blocks of rows that fit in the processor's cache. Memory beside X does not
grow with its rows, and X may be read from a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

HISTORY = 10
STEPS = 1000
WIDEST = 4096  # columns above which the first guess is diagonal: the factor would not fit
SUFFICIENT = 1e-4  # Armijo's share of the promised decrease
BLOCK = 1 << 21  # numbers of X in a block, 8 MB in float32, or of its logits
GUIDE = 16_384  # rows at least, and GUIDES per column, that the first guess is made of
GUIDES = 16


Moments = tuple[np.ndarray, np.ndarray]  # mean of each column (d), and the factor that scales it to deviation 1


def moments_of(features: np.ndarray, index: np.ndarray | None = None) -> Moments:
    """Return the moments of (n, d) features, in float64 by blocks; the factor of a constant column is 0. `index`: the
    rows to use."""
    count, d = len(features) if index is None else len(index), features.shape[1]
    step = max(1, BLOCK // d)
    parts = [slice(i, i + step) for i in range(0, count, step)]

    def block(part: slice) -> np.ndarray:
        return np.asarray(features[part if index is None else index[part]], np.float64)

    mean = np.sum([block(part).sum(0) for part in parts], 0) / count
    deviation = np.sqrt(np.sum([np.square(block(part) - mean).sum(0) for part in parts], 0) / count)
    varies = deviation > 1e-12 * (1 + np.abs(mean))
    return mean, np.divide(1, deviation, out=np.zeros(d), where=varies)


class Standardized:
    """Features (n, d) that are read and standardized in float32 when indexed. In float32 the difference from a large
    mean is exact, and rounding the mean shifts all rows equally."""

    dtype = torch.float32

    def __init__(
        self, features: np.ndarray, moments: Moments, device: torch.device, index: np.ndarray | None = None
    ) -> None:
        self.features, self.device, self.index = features, device, index
        count = len(features) if index is None else len(index)
        self.shape = torch.Size((count, features.shape[1]))
        self._mean, self._scale = (torch.from_numpy(v).float().to(device) for v in moments)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        at = rows if isinstance(rows, slice) else rows.cpu().numpy()
        block = np.array(self.features[at if self.index is None else self.index[at]], np.float32)
        return torch.from_numpy(block).to(self.device).sub_(self._mean).mul_(self._scale)


Design = Tensor | Standardized  # rows (n, d), which are read some at a time


@dataclass(eq=False)
class Logistic:
    """Logistic regression of rows `x` (n, d), float32 or float64, on their classes `target` (n), 0 to `classes` − 1."""

    x: Design
    target: Tensor
    classes: int

    @cached_property
    def _gram(self) -> Tensor:
        """XᵀX/n with a column of ones for the bias, (d+1, d+1) float64; only its diagonal if X is very wide. For many
        rows, an evenly spaced subset is used."""
        d = self.x.shape[1]
        some = self.x[:: max(1, len(self.x) // max(GUIDE, GUIDES * d))]
        n = len(some)
        mean = some.sum(0, dtype=torch.float64) / n
        if d > WIDEST:
            return torch.cat([some.double().square().sum(0) / n, mean.new_ones(1)])
        gram = torch.empty(d + 1, d + 1, dtype=torch.float64, device=some.device)
        gram[:-1, :-1] = (some.mT @ some).double() / n
        gram[-1, :-1] = gram[:-1, -1] = mean
        gram[-1, -1] = 1
        return gram

    def fit(self, c: float, start: Tensor | None = None, tolerance: float = 1e-6) -> Tensor:
        """Return the weights (d+1, classes), bias last, that minimize the objective. Stops when no entry of the
        gradient exceeds `tolerance`."""
        penalty = 1 / (c * len(self.x))
        solve, cost = _preconditioner(self._gram, self.classes, penalty), self._cost(penalty)
        w = torch.zeros(self.x.shape[1] + 1, self.classes, dtype=self.x.dtype, device=self.x.device)
        w = w if start is None else start.to(w).clone()
        value, gradient = cost(w)
        pairs: list[tuple[Tensor, Tensor]] = []
        for _ in range(STEPS):
            if float(gradient.abs().max()) <= tolerance:
                break
            step = -_two_loops(gradient, pairs, solve)
            slope = float((step * gradient).double().sum())
            t, new, after = 1.0, value, gradient
            while t > 1e-8:
                new, after = cost(w + t * step)
                if new <= value + SUFFICIENT * t * slope:
                    break
                t = max(0.1 * t, min(0.5 * t, -slope * t * t / (2 * (new - value - slope * t))))
            if not new < value:  # no decrease that this precision can see
                break
            w, value, old, gradient = w + t * step, new, gradient, after
            if float(((gradient - old) * step).sum()) > 0:
                pairs = [*pairs[1 - HISTORY :], (t * step, gradient - old)]
        return w

    def _cost(self, penalty: float) -> Callable[[Tensor], tuple[float, Tensor]]:
        """Return a function of the weights that gives the objective and its gradient (d+1, classes)."""
        x, target, classes = self.x, self.target, self.classes
        n, d = x.shape

        def cost(w: Tensor) -> tuple[float, Tensor]:
            sums = torch.zeros(d + 2, classes, dtype=torch.float64, device=x.device)  # and the loss
            for part, block, logits in logits_by_block(x, w):
                here, off = target[part, None], logits.softmax(1)  # (r, classes)
                top, at = logits.max(1, keepdim=True)
                loss = top - off.gather(1, at).log() - logits.gather(1, here)  # log Σ exp − target
                sums[-1, 0] += loss.sum(dtype=torch.float64)
                off.scatter_add_(1, here, off.new_full(here.shape, -1))
                sums[:-2] += block.mT @ off
                sums[-2] += off.sum(0)
            sums /= n
            sums[:-2] += penalty * w[:-1]
            squares = w[:-1].square().sum(dtype=torch.float64)
            return float(sums[-1, 0] + penalty * squares / 2), sums[:-1].to(w.dtype)

        return cost


def logits_by_block(x: Design, weight: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield, for each block of X, its slice, its rows (r, d) and their logits (r, classes)."""
    size = max(1, BLOCK // max(x.shape[1], weight.shape[1]))
    for start in range(0, len(x), size):
        part = slice(start, min(start + size, len(x)))
        block = x[part]
        yield part, block, block @ weight[:-1] + weight[-1]


def _preconditioner(gram: Tensor, classes: int, penalty: float) -> Tensor:
    """Return the Hessian at W = 0 for one class: a Cholesky factor, or a diagonal (d+1). If rounding makes it
    indefinite, as for a collapsed encoder, the diagonal is increased; this affects only the speed."""
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
    """Multiply the gradient by the L-BFGS estimate of the inverse Hessian (two-loop recursion)."""
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
    """Multiply `q` by the initial estimate of the inverse Hessian."""
    if first.ndim == 1:
        return (q.double() / first[:, None]).to(q.dtype)
    return torch.cholesky_solve(q.double(), first).to(q.dtype)
