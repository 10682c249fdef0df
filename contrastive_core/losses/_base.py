"""What every loss shares: rows in, a value per anchor out, and the same formula taken apart.

A loss writes its formula once, in `per_anchor(scores, masks, pairs)`, over the scores of some
anchors (rows) with their candidates (columns). Scores are made here: rows are brought to float32
or better, normalized where the loss says so, and compared. When the matrix would be large, anchors
are taken in blocks that the backward pass computes again, so that memory grows with m, not n·m.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from contrastive_core.losses._anatomy import Anatomy, dissect
from contrastive_core.losses._output import Details, LossOutput
from contrastive_core.messages import message
from contrastive_core.ops import similarity
from contrastive_core.ops.recomputation import recomputed
from contrastive_core.ops.similarity import compare, full_precision
from contrastive_core.pairs.checks import how_to_build
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knobs_of

BLOCK = 1 << 21  # scores held at once: 8 MB in float32, and as much for each step of a formula


@dataclass(frozen=True)
class Loss(ABC):
    """A contrastive loss: frozen, its fields are its knobs, it has no state."""

    card: ClassVar[LossCard]

    @property
    def score(self) -> str:
        """How rows are compared: "dot", "distance" or "squared_distance"."""
        return self.card.score

    @property
    def normalize(self) -> bool:
        """Whether unit rows are compared; most losses have it as a knob."""
        return False

    @property
    def needs_whole_batch(self) -> bool:
        """Whether an anchor's loss depends on which other rows are anchors."""
        return False

    @property
    def takes_weights(self) -> bool:
        """Whether masks of `per_anchor` may be numbers, how many candidates each stands for: then
        the loss over all candidates can be estimated from some."""
        return False

    @property
    def logit_scale(self) -> float:
        """What a score is multiplied by before anything else: ±1/τ where there is a τ."""
        return 1.0

    def __call__(
        self,
        pairs: Any,
        *others: Any,
        temperature: Tensor | None = None,
        bias: Tensor | None = None,
        on_fraction: OnFraction = ignore_fraction,
    ) -> LossOutput:
        """The loss of every anchor of some `Pairs`. Sources and weights: see the class.

        Args:
            temperature: a learned τ (a tensor of one number), with its gradient, in place of the knob; default: the
                pairs' own.
            bias: a learned bias likewise, for `siglip`.
            on_fraction: called with the share done of many pairs, to 1; what it raises stops the work.
        Raises: TypeError for what are no pairs, with the builder to use; ValueError for pairs it cannot use.
        """
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
        """The same loss of pairs that were checked before, without `extras`: no number is read, so that the host never
        waits for a device and a compiler sees one graph."""
        temperature = pairs.temperature
        loss = self if temperature is None else self._at(temperature.detach())
        with full_precision(pairs.anchors.device):
            return LossOutput(*loss.weighted(loss.rows(pairs), temperature))

    def weighted(
        self, pairs: Pairs, temperature: Tensor | None, on_fraction: OnFraction = ignore_fraction
    ) -> tuple[Tensor, Tensor]:
        """Loss and weight (n) of every anchor of pairs whose rows are ready, with the gradient of a learned τ."""
        if temperature is not None:
            pairs = _attach_temperature(pairs, temperature)
        if len(pairs) and pairs.width:
            value, weight = self.over_blocks(pairs, on_fraction)
        else:
            value = weight = pairs.anchors.new_zeros(len(pairs))
        value = torch.where(weight > 0, value, 0.0)
        if (balance := pairs.tower_weight()) is not None:
            weight = weight * balance
        if not value.requires_grad:
            value = value + 0 * (pairs.anchors.sum() + pairs.candidates.sum())
        return value, weight

    @abstractmethod
    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Loss and weight (n) of the anchors whose scores (n, w) and masks these are."""

    def from_some(self, scores: Tensor, masks: Masks, pairs: Pairs, positives: Tensor | None) -> tuple[Tensor, Tensor]:
        """`per_anchor` where some candidates stand for all.

        Args:
            masks: how many candidates each of (n, w) stands for; only the first k columns hold
                positives, and `masks.positive` is (n, k).
            positives: by `positive_means` of all pairs, those of these anchors (n).
        """
        none = (0, scores.shape[1] - masks.positive.shape[1])
        positive = torch.nn.functional.pad(masks.positive, none)
        return self.per_anchor(scores, masks._replace(positive=positive), pairs)

    def positive_means(self, pairs: Pairs) -> Tensor | None:
        """The mean score (n) of each anchor's positives, exact however many they are, where it
        steadies `from_some`."""
        return None

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """What the loss puts on each pair (n, w), for display."""
        return torch.zeros_like(scores)

    def extras(self, value: Tensor, weight: Tensor, pairs: Pairs) -> dict[str, float]:
        """Further figures of a batch, detached."""
        return {}

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        """Further matrices and vectors of the anatomy, detached."""
        return {}

    def check(self, pairs: Pairs) -> str | None:
        """Why the loss cannot use these pairs, or None."""
        return None

    def kernel(self) -> Kernel | None:
        """How the browser computes this loss while a knob is dragged; None: it cannot."""
        return None

    def at_temperature(self, temperature: float) -> Loss:
        """The same loss with another τ. Raises ValueError where there is none, or none to learn."""
        knobs = knobs_of(type(self))
        if "temperature" not in knobs:
            raise ValueError(message("{title} has no temperature to learn", title=self.card.title))
        value = knobs["temperature"].check("temperature", temperature)
        return dataclasses.replace(self, temperature=value)  # type: ignore[call-arg]

    def _at(self, temperature: Tensor) -> Loss:
        """The same loss whose τ stays on its device."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        made = object.__new__(type(self))  # a knob is a number
        for name, value in {**fields, "temperature": temperature}.items():
            object.__setattr__(made, name, value)
        return made

    def with_bias(self, pairs: Pairs, bias: Tensor) -> Pairs:
        """The pairs with a learned bias. Raises ValueError where the loss has none."""
        raise ValueError(message("{title} has no bias to learn", title=self.card.title))

    def rows(self, pairs: Pairs) -> Pairs:
        """The pairs with rows in float32 or better, unit rows where the loss asks for them."""

        def ready(z: Tensor) -> Tensor:
            z = z if z.dtype == torch.float64 else z.float()
            return similarity.normalize(z) if self.normalize else z

        anchors = ready(pairs.anchors)
        same = pairs.candidates is pairs.anchors
        return pairs.with_rows(anchors, anchors if same else ready(pairs.candidates))

    def refuse_overflow(self, pairs: Pairs) -> None:
        """Raise ValueError when finite rows are so long that products, summed, are not."""
        if self.normalize:
            return
        length = similarity.longest(pairs.anchors, pairs.candidates)
        dtype, terms = pairs.anchors.dtype, max(1, len(pairs)) * max(1, pairs.width)
        score = 4 * length**2 * max(1.0, abs(self.logit_scale))  # ‖a − c‖² ≤ 4 length²
        if score * terms > torch.finfo(dtype).max and length < float("inf"):
            raise ValueError(
                message(
                    "rows up to {length} long have products beyond {dtype}, so {title} of raw rows would be infinite: "
                    "scale them down, or compare unit rows",
                    length=f"{length:.2g}",
                    dtype=dtype,
                    title=self.card.title,
                )
            )

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        """`per_anchor` over all anchors, in blocks of rows where the whole would be large."""
        blocks = self.in_blocks(self._block, pairs, on_fraction=on_fraction)
        values, weights = zip(*blocks, strict=True)
        return torch.cat(values), torch.cat(weights)

    @staticmethod
    def in_blocks(
        task: Callable[..., Any], pairs: Pairs, *inputs: Tensor, on_fraction: OnFraction = ignore_fraction
    ) -> list[Any]:
        """`task(pairs, anchors, candidates, *inputs)` for blocks of anchors, computed again
        backward; gradients reach the tensors only."""
        n, each = len(pairs), pairs.width
        if pairs.columns is not None:
            each *= max(1, pairs.anchors.shape[1] // 8)  # (n, k, d) rows are gathered
        size = max(1, BLOCK // each)
        if n <= size:  # done at once
            return [task(pairs, pairs.anchors, pairs.candidates, *inputs)]
        results = []
        for start in range(0, n, size):
            part = pairs.take_anchors(slice(start, start + size))
            tensors = (part.anchors, part.candidates, *inputs)
            results.append(recomputed(partial(task, part), *tensors))
            on_fraction(min(1.0, (start + size) / n))
        return results

    def _block(self, pairs: Pairs, anchors: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        pairs = pairs.with_rows(anchors, candidates)
        return self.per_anchor(compare(pairs, self.score), pairs.masks(), pairs)

    def anatomy(self, pairs: Pairs) -> Anatomy:
        """The loss taken apart, dense, for up to about 1,000 rows.

        Scores and their gradients (n, w) come from the same formula by autograd.
        """
        return dissect(self, pairs)


def _attach_temperature(pairs: Pairs, temperature: Tensor) -> Pairs:
    """The same rows, times √(τ/τ) = 1, whose gradient is what a score's division by τ sends to τ.

    Every score is of degree two in its rows, so each row takes a half: this is exact for whole
    matrices, tiles and shares of a batch, and leaves rows of unit length as they are.
    """
    a, c = pairs.anchors, pairs.candidates
    one = (temperature.detach() / temperature).sqrt().to(a.dtype)
    anchors = a * one
    return pairs.with_rows(anchors, anchors if c is a else c * one)
