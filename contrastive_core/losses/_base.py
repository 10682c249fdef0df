"""Base class of losses: rows in, a value per anchor out, and the terms of the same formula for display.

A loss writes its formula once, in `per_anchor(scores, masks, pairs)`. A large score matrix is split into blocks of
anchors that the backward pass recomputes, so memory grows with m, not n·m."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.registry import Kernel, LossCard, entry_of, knobs_of, read_loss_card
from contrastive_core.ops import similarity
from contrastive_core.ops.similarity import compare, full_precision
from contrastive_core.pairs.types import Masks, Pairs, how_to_build

BLOCK = 1 << 21  # scores in memory: 8 MB in float32, and as much for each step of a formula

Result = tuple[Tensor, Tensor]  # loss and weight (n) of some anchors
Details = dict[str, Any]  # further matrices, vectors and figures of an anatomy


@dataclass(frozen=True, eq=False)
class LossOutput:
    """A loss per anchor. `value = (weight · per_anchor).sum() / weight.sum()`, literally.

    An anchor with an undefined loss has weight 0 and loss 0. If none is defined, `value`
    is 0, still attached to the graph, and `n_valid` is 0."""

    per_anchor: Float[Tensor, " n"]
    weight: Float[Tensor, " n"]
    extras: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> Float[Tensor, ""]:
        total = self.weight.sum().clamp_min(torch.finfo(self.weight.dtype).tiny)
        return (self.weight * self.per_anchor).sum() / total

    @property
    def n_valid(self) -> int:
        return int((self.weight > 0).sum())


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The terms of a loss for display, as dense matrices (n, w) over anchors × width; all tensors are detached.

    `scores` are the compared values (similarity or distance, see `score_kind`).
    `weight` is the weight of each pair (softmax probability, or 0/1 for an active hinge).
    `grad_scores[i, j]` is ∂L_i/∂score_ij; `grad_anchors`/`grad_candidates` are ∂value/∂embedding."""

    score_kind: str
    scores: Float[Tensor, "n w"]
    positive: Bool[Tensor, "n w"]
    negative: Bool[Tensor, "n w"]
    self_pair: Bool[Tensor, "n w"]
    weight: Float[Tensor, "n w"]
    grad_scores: Float[Tensor, "n w"]
    grad_anchors: Float[Tensor, "n d"]
    grad_candidates: Float[Tensor, "m d"]
    output: LossOutput
    extras: Details = field(default_factory=dict)


@dataclass(frozen=True)
class Loss(ABC):
    """A contrastive loss without state: a frozen dataclass whose fields are its settings."""

    card: ClassVar[LossCard]  # NAME.toml beside NAME.py
    needs_more_inputs: ClassVar[bool] = False  # needs a bank, codes or random directions besides rows
    detaches_targets: ClassVar[bool] = False  # one side gets no gradient by design

    def __init_subclass__(cls) -> None:
        if name := entry_of(cls.__module__, "losses"):
            cls.card = read_loss_card(name)

    @property
    def score(self) -> str:
        """The score between rows: "dot", "distance" or "squared_distance"."""
        return "dot"

    @property
    def normalize(self) -> bool:
        """Whether unit rows are compared; a setting of most losses."""
        return False

    @property
    def needs_whole_batch(self) -> bool:
        """Whether an anchor's loss depends on which other rows are anchors."""
        return False

    @property
    def logit_scale(self) -> float:
        """The factor of all scores: ±1/τ for losses with a temperature, else 1."""
        return 1.0

    def __call__(
        self,
        pairs: Any,
        *others: Any,
        temperature: Tensor | None = None,
        bias: Tensor | None = None,
        on_fraction: OnFraction = ignore_fraction,
    ) -> LossOutput:
        """Compute the loss of every anchor of some `Pairs`. Sources and weights: see the class.

        Args:
            temperature: a learned τ (a tensor with one element), which gets a gradient and replaces the setting;
                default: the pairs' own.
            bias: a learned bias in the same way, for `siglip`.
            on_fraction: called with the completed share for many pairs, up to 1; an exception from it stops the work.
        Raises:
            TypeError: `pairs` is not a `Pairs`; the message names the function that builds them.
            ValueError: pairs that this loss cannot use."""
        if others or not isinstance(pairs, Pairs):
            raise TypeError(how_to_build(pairs, *others))
        temperature = pairs.temperature if temperature is None else temperature
        loss = self if temperature is None else self.at_temperature(float(temperature.detach()))
        if bias is not None:
            pairs = loss.with_bias(pairs, bias)
        if problem := loss.check(pairs):
            raise ValueError(problem)
        with full_precision(pairs.anchors.device):
            pairs = loss.rows(pairs)
            longest = 0.0 if loss.normalize else similarity.longest(pairs.anchors, pairs.candidates)
            largest = 4 * longest**2 * max(1.0, abs(loss.logit_scale))  # of a score: ‖a − c‖² ≤ 4 longest²
            terms, dtype = max(1, len(pairs) * pairs.width), pairs.anchors.dtype
            if largest * terms > torch.finfo(dtype).max and longest < float("inf"):
                text = N_(
                    "some rows have length {length}: their products exceed {dtype}, so {title} of raw rows would be "
                    "infinite. Scale them down, or compare unit rows"
                )
                raise ValueError(message(text, length=f"{longest:.2g}", dtype=dtype, title=loss.card.title))
            value, weight = loss.weighted(pairs, temperature, on_fraction)
            return LossOutput(value, weight, loss.extras(value.detach(), weight, pairs))

    def without_waiting(self, pairs: Pairs) -> LossOutput:
        """Compute the loss of checked pairs without `extras`. It reads no values on the host, so the host never waits
        for a device and a compiler gets one graph."""
        temperature = pairs.temperature
        loss = self
        if temperature is not None:  # a tensor that stays on its device, unlike a setting
            loss = object.__new__(type(self))
            fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
            for name, value in {**fields, "temperature": temperature.detach()}.items():
                object.__setattr__(loss, name, value)
        with full_precision(pairs.anchors.device):
            return LossOutput(*loss.weighted(loss.rows(pairs), temperature))

    def weighted(
        self, pairs: Pairs, temperature: Tensor | None, on_fraction: OnFraction = ignore_fraction
    ) -> tuple[Tensor, Tensor]:
        """Return loss and weight (n) of every anchor of prepared pairs, with the gradient of a learned τ."""
        if temperature is not None:
            # Rows times √(τ/τ) = 1, whose gradient is what a score's division by τ sends to τ: every score is of degree
            # two in its rows. This is exact for whole matrices, tiles and shares of a batch.
            one = (temperature.detach() / temperature).sqrt().to(pairs.anchors.dtype)
            a, c = pairs.anchors, pairs.candidates
            anchors = a * one
            pairs = pairs.with_rows(anchors, anchors if c is a else c * one)
        if len(pairs) and pairs.width:
            value, weight = self.over_tiles(pairs, on_fraction) or self.over_blocks(pairs, on_fraction)
        else:
            value = weight = pairs.anchors.new_zeros(len(pairs))
        value = torch.where(weight > 0, value, 0.0)
        if (balance := pairs.tower_weight()) is not None:
            weight = weight * balance
        if not value.requires_grad:
            value = value + 0 * (pairs.anchors.sum() + pairs.candidates.sum())
        return value, weight

    @abstractmethod
    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Result:
        """Return loss and weight (n) of the anchors with these scores (n, w) and masks."""

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Return the weight of each pair (n, w) in the loss, for display."""
        return torch.zeros_like(scores)

    def extras(self, value: Tensor, weight: Tensor, pairs: Pairs) -> dict[str, float]:
        """Return further statistics of a batch, detached."""
        return {}

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        """Return further matrices and vectors for the anatomy, detached."""
        return {}

    def check(self, pairs: Pairs) -> str | None:
        """Return the reason why the loss cannot use these pairs, or None."""
        return None

    def kernel(self) -> Kernel | None:
        """Return the parameters with which the browser computes this loss during a drag; None if it cannot."""
        return None

    def at_temperature(self, temperature: float) -> Loss:
        """Return the same loss with another τ. Raises ValueError if it has no τ or cannot learn it."""
        knobs = knobs_of(type(self))
        if "temperature" not in knobs:
            raise ValueError(message("{title} has no temperature to learn", title=self.card.title))
        value = knobs["temperature"].check("temperature", temperature)
        return dataclasses.replace(self, temperature=value)  # type: ignore[call-arg]

    def with_bias(self, pairs: Pairs, bias: Tensor) -> Pairs:
        """Return the pairs with a learned bias. Raises ValueError if the loss has none."""
        raise ValueError(message("{title} has no bias to learn", title=self.card.title))

    def rows(self, pairs: Pairs) -> Pairs:
        """Return the pairs with rows in float32 or better, normalized if the loss requires it."""

        def ready(z: Tensor) -> Tensor:
            z = z if z.dtype == torch.float64 else z.float()
            return similarity.normalize(z) if self.normalize else z

        anchors = ready(pairs.anchors)
        same = pairs.candidates is pairs.anchors
        return pairs.with_rows(anchors, anchors if same else ready(pairs.candidates))

    def over_tiles(self, pairs: Pairs, on_fraction: OnFraction) -> Result | None:
        """Compute `per_anchor` for all anchors without the score matrix; None if the loss needs the matrix."""
        return None

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> Result:
        """Compute `per_anchor` for all anchors, in blocks of anchors if the score matrix is large."""
        if self.needs_whole_batch or rows_at_once(pairs) >= len(pairs):
            return self.per_anchor(compare(pairs, self.score), pairs.masks(), pairs)

        def of_block(part: Pairs, anchors: Tensor, candidates: Tensor, bias: Tensor | None = None) -> Result:
            part = dataclasses.replace(part, anchors=anchors, candidates=candidates, bias=bias)
            return self.per_anchor(compare(part, self.score), part.masks(), part)

        inputs = () if pairs.bias is None else (pairs.bias,)
        values, weights = zip(*in_blocks(of_block, pairs, *inputs, on_fraction=on_fraction), strict=True)
        return torch.cat(values), torch.cat(weights)

    def anatomy(self, pairs: Pairs) -> Anatomy:
        """Return scores, weights and gradients of the loss as dense matrices, for up to about 1,000 rows.

        Scores and their gradients (n, w) come from the same formula by autograd. Raises ValueError if the loss cannot
        use these pairs."""
        if problem := self.check(pairs):
            raise ValueError(problem)
        anchors = pairs.anchors.detach().clone().requires_grad_()
        same = pairs.candidates is pairs.anchors
        candidates = anchors if same else pairs.candidates.detach().clone().requires_grad_()
        pairs = pairs.with_rows(anchors, candidates)
        output = self(pairs)
        grads = torch.autograd.grad(output.value, [anchors, candidates], allow_unused=True)
        g_anchors, g_candidates = (
            torch.zeros_like(z) if g is None else g for g, z in zip(grads, (anchors, candidates), strict=True)
        )
        with full_precision(anchors.device):
            unit = self.rows(pairs)
            scores, masks = compare(unit, self.score).detach(), unit.masks()
            weight, g_scores, details = torch.zeros_like(scores), torch.zeros_like(scores), {}
            if scores.numel():
                g_scores = self.score_gradient(scores, masks, unit)
                weight = self.pair_weight(scores, masks, unit).detach()
                details = self.details(scores, masks, unit)
        return Anatomy(
            score_kind=self.score,
            scores=scores,
            positive=masks.positive,
            negative=masks.negative,
            self_pair=masks.self_pair,
            weight=weight,
            grad_scores=g_scores,
            grad_anchors=g_anchors,
            grad_candidates=g_candidates,
            output=LossOutput(output.per_anchor.detach(), output.weight.detach(), output.extras),
            extras={**output.extras, **details},
        )

    def score_gradient(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Return ∂L_i/∂score_ij (n, w); 0 for anchors with an undefined loss."""
        leaf = scores.clone().requires_grad_()
        with torch.enable_grad():
            value, weight = self.per_anchor(leaf, masks, pairs)
            total = torch.where(weight > 0, value, 0.0).sum()
            (grad,) = torch.autograd.grad(total, leaf, allow_unused=True)
        return torch.zeros_like(scores) if grad is None else grad


def rows_at_once(pairs: Pairs) -> int:
    """Return the number of anchors whose scores are in memory at once."""
    gathered = 1 if pairs.columns is None else max(1, pairs.anchors.shape[1] // 8)  # rows (n, k, d)
    return max(1, (pairs.block or BLOCK) // (pairs.width * gathered))


def in_blocks(
    task: Callable[..., Any], pairs: Pairs, *inputs: Tensor, on_fraction: OnFraction = ignore_fraction
) -> list[Any]:
    """Call `task(pairs, anchors, candidates, *inputs)` for blocks of anchors. If there are several, the backward pass
    recomputes them. Gradients reach only the tensors."""
    n, size = len(pairs), rows_at_once(pairs)
    if n <= size:
        return [task(pairs, pairs.anchors, pairs.candidates, *inputs)]
    results = []
    for start in range(0, n, size):
        part = pairs.take_anchors(slice(start, start + size))
        tensors = (part.anchors, part.candidates, *inputs)
        is_learned = torch.is_grad_enabled()
        results.append(_Recomputed.apply(partial(task, part), *tensors) if is_learned else task(part, *tensors))
        on_fraction(min(1.0, (start + size) / n))
    return results


class _Recomputed(torch.autograd.Function):
    """A task that is computed again in the backward pass instead of stored. Unlike `torch.utils.checkpoint`, it imports
    no compiler (nine seconds, 190 MB) and supports `torch.func`."""

    @staticmethod
    def forward(task: Callable[..., Any], *inputs: Tensor) -> Any:
        return task(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.task = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():  # within a transform, or for a second derivative
            with full_precision(inputs[0].device):
                outputs, back, *_ = torch.func.vjp(ctx.task, *inputs)
                return None, *back(grads if isinstance(outputs, tuple) else grads[0])
        needs = ctx.needs_input_grad[1:]
        leaves = [x.detach().requires_grad_(n) for x, n in zip(inputs, needs, strict=True)]
        with torch.enable_grad(), full_precision(leaves[0].device):
            outputs = ctx.task(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        attached = [(y, g) for y, g in zip(outputs, grads, strict=True) if y.requires_grad]
        if attached:  # as a scalar: with gradients given, autograd's first call imports sympy (30 MB)
            with torch.enable_grad():
                total = torch.stack([(y * g).sum() for y, g in attached]).sum()
            total.backward(inputs=[x for x in leaves if x.requires_grad])
        return None, *(x.grad for x in leaves)
