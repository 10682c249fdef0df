"""Linear probe: L2-regularized multinomial logistic regression on frozen features, by L-BFGS.

Minimizes Σ cross-entropy + ‖W‖²/(2C), scikit-learn's objective with an unpenalized bias, on features standardized by
the training rows. Features of more than HELD numbers are not copied: each pass reads and standardizes them block by
block.

Cross-validated log loss selects C; then all training rows are fitted. Held-out accuracy is a step function of C, so a
single row, or rounding, could decide the best C. Log loss is smooth in C. It is computed at half decades with
stratified folds, and a parabola through the three points around the minimum gives C, which therefore varies
continuously with the features. The first fold goes from strong to weak penalties, decade by decade; the others start
from its weights, only around the minimum. At most SAMPLE rows are used, without rescaling C: it limits the size of the
weights whatever the number of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.memory import rows_of_sample, sample_text
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import knob
from contrastive_core.base.score import wilson
from contrastive_core.metrics._base import PREDICTED, Metric, MetricResult, labels_of
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

HELD = 1 << 26  # numbers, 256 MB: training rows that are standardized once and held
GRID = tuple(10 ** (e / 2) for e in range(-10, 5))  # of C: 1e-5, strong, to 100, hardly any
FOLDS = 3  # of five, log10 C differed by 0.03 and accuracy by 0.1 points, for twice the time
PATIENCE = 2  # points in a row that are worse than the best, before the first fold's path ends
SAMPLE = 50_000  # rows that are asked at most
HISTORY = 10
STEPS = 1000
WIDEST = 4096  # columns above which the first guess is diagonal: the factor would not fit
SUFFICIENT = 1e-4  # Armijo's share of the promised decrease
BLOCK = 1 << 21  # numbers of X in a block, 8 MB in float32, or of its logits
GUIDE = 16_384  # rows at least, and GUIDES per column, that the first guess is made of
GUIDES = 16
TOLERANCE = 1e-5  # of the gradient: what tells neighbors on the grid apart is small


@dataclass(frozen=True)
class LinearProbe(Metric):
    title = N_("Linear probe accuracy")
    reading = N_(
        "Share of test samples that a linear classifier on the frozen features classifies correctly. It shows which "
        "information is linearly accessible."
    )
    needs_labels = True
    needs_train = True
    unit_rows = False
    c: float = knob(
        0.0,
        0,
        1e6,
        N_("inverse strength of the L2 penalty; 0: chosen by cross-validated log loss on the training rows"),
    )

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert train is not None
        assert train.labels is not None
        device = pick_device(graphs.device)
        truth, train_labels = labels_of(test, self.title), labels_of(train, self.title)
        classes, y = np.unique(train_labels[train_labels >= 0], return_inverse=True)
        labeled = None if (train.labels >= 0).all() else np.flatnonzero(train.labels >= 0)
        moments = moments_of(train.features, labeled)
        x = Standardized(train.features, moments, device, labeled)
        chosen = Strength(self.c) if self.c else choose_strength(x, y)
        design = x[:] if x.shape.numel() <= HELD else x
        weight = Logistic(design, torch.from_numpy(y).to(device), len(classes)).fit(chosen.c, chosen.weight)
        found = torch.empty(len(test), dtype=torch.long)
        for part, _, logits in logits_by_block(Standardized(test.features, moments, device), weight):
            found[part] = logits.argmax(1).cpu()
        predicted = classes[found.numpy()]
        right = np.where(truth >= 0, predicted == truth, np.nan)
        n, hits = int((truth >= 0).sum()), int(np.nansum(right))
        extras = {"c": chosen.c, "n": n, "folds": chosen.folds, "log_loss": chosen.log_loss}
        if chosen.sample:
            extras["sample"] = message("C by {sample}", sample=chosen.sample)
        return MetricResult(hits / n, right, wilson(hits, n), "share", extras, {PREDICTED: predicted})


@dataclass(frozen=True)
class Strength:
    """The selected C, the mean log loss of held-out rows at each C tried, and weights fitted near it."""

    c: float
    log_loss: dict[str, float] = field(default_factory=dict)
    folds: int = 0
    weight: Tensor | None = None
    sample: str = ""  # how many of how many rows were asked, where not all were


def stratified_folds(labels: np.ndarray) -> list[np.ndarray]:
    """Return fixed folds as masks (n): scikit-learn's StratifiedKFold, shuffled with seed 0. The only row of a class is
    never held out. Raises CannotScore if each class has one row."""
    from sklearn.model_selection import StratifiedKFold

    _, of, count = np.unique(labels, return_inverse=True, return_counts=True)
    folds = min(FOLDS, int(count.max()))
    if folds < 2:
        raise CannotScore(N_("every class has only one training row, so no regularization strength can be chosen"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of fewer rows than folds: it is left out of some
        split = StratifiedKFold(folds, shuffle=True, random_state=0).split(of, of)
        rows = [held_out for _, held_out in split]
    masks = [np.isin(np.arange(len(of)), held_out) & (count[of] > 1) for held_out in rows]
    return [mask for mask in masks if mask.any()]


def choose_strength(x: Design, y: np.ndarray) -> Strength:
    """Select the C with the smallest cross-validated log loss. `x`: (n, d); `y` (n): the classes, 0 to c−1. Raises
    CannotScore if no row can be held out."""
    classes, chosen = int(y.max()) + 1, rows_of_sample(len(y), SAMPLE)
    sample, y = sample_text(len(chosen), len(y), N_("training rows")), y[chosen]
    asked = x[torch.from_numpy(chosen)] if sample else x[:]
    target = torch.from_numpy(y).to(asked.device)
    masks = stratified_folds(y)
    folds = [_Fold(asked, target, mask, classes) for mask in masks]
    path = _path(folds[0])
    while True:
        tried = {i: sum(f.loss(i, folds[0]) for f in folds) / sum(map(np.sum, masks)) for i in path}
        best = min(tried, key=lambda i: (tried[i], i))
        missing = {i for i in (best - 1, best + 1) if 0 <= i < len(GRID)} - tried.keys()
        if not missing:
            break
        path = sorted({*path, *missing})
    log_loss, c = {f"{GRID[i]:.3g}": float(tried[i]) for i in path}, GRID[best]
    if best - 1 in tried and best + 1 in tried:  # where the parabola through the three, in log C, has its least
        before, at, after = (tried[best + q] for q in (-1, 0, 1))
        bend = before - 2 * at + after
        c = float(c * (GRID[1] / GRID[0]) ** (0.5 * (before - after) / bend if bend > 0 else 0.0))
    return Strength(c, log_loss, len(folds), folds[0].weights[best], sample)


class _Fold:
    """Fitted and held-out rows of one fold, with weights and losses by grid index."""

    def __init__(self, x: Tensor, target: Tensor, held_out: np.ndarray, classes: int) -> None:
        out = torch.from_numpy(held_out).to(x.device)
        self.known = Logistic(x[~out], target[~out], classes)
        self.new, self.truth = x[out], target[out]
        self.weights: dict[int, Tensor] = {}
        self.losses: dict[int, float] = {}

    def loss(self, i: int, guide: _Fold) -> float:
        """Return the summed log loss of the held-out rows at GRID[i], fitted from weights of this fold or `guide`."""
        if i not in self.losses:
            start = self._start(i, guide)
            self.weights[i] = self.known.fit(GRID[i], start, TOLERANCE)
            logits = self.new @ self.weights[i][:-1] + self.weights[i][-1]
            self.losses[i] = float(F.cross_entropy(logits.double(), self.truth, reduction="sum"))
        return self.losses[i]

    def _start(self, i: int, guide: _Fold) -> Tensor | None:
        """Return start weights: the guide's, plus the difference between both folds at the nearest C already fitted."""
        nearest = min(self.weights, key=lambda j: abs(i - j), default=None)
        if i not in guide.weights:
            return None if nearest is None else self.weights[nearest]
        if nearest is None:
            return guide.weights[i]
        return guide.weights[i] + (self.weights[nearest] - guide.weights[nearest])


def _path(fold: _Fold) -> list[int]:
    """Return the grid indices around the smallest loss of one fold, searched decade by decade."""
    best = worse = 0
    for i in range(0, len(GRID), 2):
        if fold.loss(i, fold) < fold.loss(best, fold):
            best, worse = i, 0
        elif i:
            worse += 1
        if worse == PATIENCE:
            break
    return [i for i in (best - 1, best, best + 1) if 0 <= i < len(GRID)]


# --- the regression ------------------------------------------------------------------------------


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
    """Logistic regression of rows `x` (n, d), float32 or float64, on their classes `target` (n), 0 to `classes` − 1. It
    minimizes the mean cross-entropy + ‖W‖²/(2Cn) by L-BFGS (Nocedal & Wright 2006, algorithm 7.4). Deviation:
    the initial inverse Hessian is that of the objective at W = 0, (XᵀX/(n·classes) + I/(Cn))⁻¹, from one Cholesky
    factor, because learned features have correlated columns. XᵀX uses about GUIDE rows; it only affects the speed."""

    x: Design
    target: Tensor
    classes: int

    @cached_property
    def _gram(self) -> Tensor:
        """XᵀX/n with a column of ones for the bias, (d+1, d+1) float64; only its diagonal if X is very wide."""
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
