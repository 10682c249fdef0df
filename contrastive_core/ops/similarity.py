"""Similarities, distances and masked reductions that stay exact in edge cases.

A zero row normalizes to zero with zero gradient. Gram distances cancel for near rows (a float32 Gram distance is 100 %
off below 1e-3 of the norms), so close pairs are recomputed from differences. Log-sum-exp is computed over the masked
entries only: mask first, then reduce."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from contrastive_core.base.device import is_free_to_read
from contrastive_core.pairs.types import Pairs

_PRECISION_LOCK = threading.Lock()
_PRECISIONS: list[str] = []  # found by those who are inside `full_precision`; the first is that of the process
CLOSE = 1e-3  # of the squared norms: below it a Gram distance has lost its digits


def normalize(z: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """Scale rows to unit length; a zero row stays zero and gets zero gradient."""
    return _Normalize.apply(z)[0] if z.shape[-1] else z


class _Normalize(torch.autograd.Function):
    """Saves unit rows and their lengths (infinite for a zero row). All steps can be differentiated again."""

    @staticmethod
    def forward(z: Tensor) -> tuple[Tensor, Tensor]:
        largest = z.abs().amax(-1, keepdim=True)  # an infinity norm takes 15 times as long
        largest = largest.masked_fill_(largest == 0, 1.0)  # a row that is not finite stays so
        x = z / largest  # its squares are in range
        norm = x.norm(dim=-1, keepdim=True)
        norm = norm.masked_fill_(norm == 0, torch.inf)
        return x.div_(norm), largest.mul_(norm)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*output)

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_length: Tensor) -> Tensor:
        unit, length = ctx.saved_tensors
        along = (g * unit).sum(-1, keepdim=True) - g_length * torch.where(length == torch.inf, 0.0, length)
        across = torch.addcmul(g, along, unit, value=-1)
        return across / length if torch.is_grad_enabled() else across.div_(length)


def dot(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return the inner products of all rows (n, m)."""
    return a @ b.mT


def squared_distance(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return squared Euclidean distances (n, m). Pairs close relative to their norms are computed from differences; all
    pairs are if listing the close ones would wait for a device."""
    if not is_free_to_read(a):
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
    norms = a.square().sum(-1)[:, None] + b.square().sum(-1)  # (n, m)
    gram = torch.addmm(norms, a, b.mT, alpha=-2).clamp_min(0)
    i, j = (gram < CLOSE * norms).nonzero().unbind(1)  # (pairs)
    exact = (deterministic_gather(a, i) - deterministic_gather(b, j)).square().sum(-1)
    return gram.index_put((i, j), exact)


def deterministic_gather(x: Float[Tensor, "n d"], rows: Int[Tensor, ...]) -> Float[Tensor, "... d"]:
    """Return `x[rows]` with a gradient that is summed in a fixed order, unlike that of indexing."""
    return functional.embedding(rows, x)


def distance(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return Euclidean distances (n, m); the gradient at distance 0 is 0, not NaN."""
    return safe_sqrt(squared_distance(a, b))


def safe_sqrt(squared: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Return square roots whose gradient at 0 is 0."""
    zero = squared == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, squared).sqrt())


def longest(*rows: Float[Tensor, "_ d"]) -> float:
    """Return an upper bound of the rows' lengths, at most √d times the longest; may be NaN or inf."""
    ends = [torch.stack(z.detach().aminmax()).abs().amax() for z in rows if z.numel()]
    return float(torch.stack(ends).amax()) * rows[0].shape[1] ** 0.5 if ends else 0.0


def masked_logsumexp(x: Float[Tensor, "n m"], mask: Bool[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Return each row's log-sum-exp over the masked entries only; -inf, with zero gradient, for a row without any."""
    some = mask.any(-1, keepdim=True)
    lse = x.masked_fill(some & ~mask, -torch.inf).logsumexp(-1)
    return torch.where(some.squeeze(-1), lse, -torch.inf)


def softmax_over(x: Float[Tensor, "n m"], mask: Bool[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Return the softmax over the masked entries of each row; 0 elsewhere."""
    some = mask.any(-1, keepdim=True)
    filled = x.masked_fill(~mask, -torch.inf)
    return torch.where(some, torch.where(some, filled, 0.0).softmax(-1), 0.0) * mask


def masked_sum(x: Float[Tensor, "n m"], mask: Bool[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Return each row's sum over the masked entries; 0 for a row without any."""
    return torch.where(mask, x, 0.0).sum(-1)


def masked_mean(x: Float[Tensor, "n m"], mask: Bool[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Return each row's mean over the masked entries; 0 for a row without any."""
    return masked_sum(x, mask) / mask.sum(-1).clamp_min(1)


def compare(pairs: Pairs, score: str) -> Float[Tensor, "n w"]:
    """Return scores (n, w) of all anchors and their candidates: "dot", "distance" or "squared_distance"."""
    if pairs.columns is None:
        return SCORES[score](pairs.anchors, pairs.candidates)
    a, c = (pairs.anchors[:, None, :], deterministic_gather(pairs.candidates, pairs.columns))  # (n, 1, d), (n, k, d)
    if score == "dot":
        return (c * a).sum(-1) if c.shape[1] == 1 else (c @ a.mT).squeeze(-1)
    squared = (a - c).square().sum(-1)  # (n, k)
    return squared if score == "squared_distance" else safe_sqrt(squared)


SCORES = {"dot": dot, "distance": distance, "squared_distance": squared_distance}


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Turn autocast and TF32 off inside; in a compiled graph, whose precision is set outside, only autocast. Threads
    share the precision of the process: the last one to leave restores it."""
    if torch.compiler.is_compiling():
        with torch.autocast(device.type, enabled=False):
            yield
        return
    with _PRECISION_LOCK:
        _PRECISIONS.append(torch.get_float32_matmul_precision())
        torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        with _PRECISION_LOCK:
            before = _PRECISIONS.pop()
            if not _PRECISIONS:
                torch.set_float32_matmul_precision(before)
