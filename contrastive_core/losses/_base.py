"""Base class of losses: rows in, a value per anchor out, and the terms of the same formula for display.

A loss writes its formula once, in `per_anchor(scores, masks, pairs)`, over the scores of some
anchors (rows) with their candidates (columns). This class computes the scores: it converts rows to float32
or better, normalizes them if the loss requires it, and compares them. A large matrix is split into blocks
of anchors that the backward pass recomputes, so memory grows with m, not n·m."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from contrastive_core.base.cards import Kernel, LossCard
from contrastive_core.base.messages import message
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.base.registry import knobs_of
from contrastive_core.losses._output import Anatomy, Details, LossOutput, dissect
from contrastive_core.ops import similarity
from contrastive_core.ops.similarity import compare, full_precision
from contrastive_core.pairs.types import Masks, Pairs, how_to_build

BLOCK = 1 << 21  # scores in memory: 8 MB in float32, and as much for each step of a formula

Result = tuple[Tensor, Tensor]  # loss and weight (n) of some anchors


@dataclass(frozen=True)
class Loss(ABC):
    """A contrastive loss without state: a frozen dataclass whose fields are its settings."""

    card: ClassVar[LossCard]
    needs_more_inputs: ClassVar[bool] = False  # needs a bank, codes or random directions besides rows
    detaches_targets: ClassVar[bool] = False  # one side gets no gradient by design

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
            loss.refuse_overflow(pairs)
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

    def refuse_overflow(self, pairs: Pairs) -> None:
        """Raise ValueError if finite rows are so long that sums of their products overflow."""
        if self.normalize:
            return
        length = similarity.longest(pairs.anchors, pairs.candidates)
        dtype, terms = pairs.anchors.dtype, max(1, len(pairs)) * max(1, pairs.width)
        score = 4 * length**2 * max(1.0, abs(self.logit_scale))  # ‖a − c‖² ≤ 4 length²
        if score * terms > torch.finfo(dtype).max and length < float("inf"):
            raise ValueError(
                message(
                    "some rows have length {length}: their products exceed {dtype}, so {title} of raw rows would be "
                    "infinite. Scale them down, or compare unit rows",
                    length=f"{length:.2g}",
                    dtype=dtype,
                    title=self.card.title,
                )
            )

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

        Scores and their gradients (n, w) come from the same formula by autograd."""
        return dissect(self, pairs)


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
    """A task whose intermediate results are recomputed in the backward pass instead of stored. Unlike
    `torch.utils.checkpoint`, whose first call imports a compiler (nine seconds, 190 MB), it also supports `torch.func`.
    """

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
