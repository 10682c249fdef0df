"""Check whether a loop's loss is the declared one. Its value and its gradient at the rows are compared with those of
the declared loss on the same rows, and with those of each known fault."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from contrastive_core.base.messages import N_, join, message, sentence
from contrastive_core.base.registry import knobs_of
from contrastive_core.losses import Loss
from contrastive_core.recording.fault_kinds import OF_ROWS, Fault, fault_of, of_healthy, of_rows
from contrastive_core.recording.faults import EPS, Case, SavedBatch, Suspect, harmless, suspects, with_setting

NOT_EXPLAINED = N_("The loss is not the declared one, and no known fault explains it.")
VALUE_ALONE = N_("Only the loss value is compared: no gradient reached the rows. Call step before the backward pass.")
MOST_SCORES = 4 << 20  # anchors × candidates of a batch that is checked
VALUE, GRADIENT = 2e-3, 1e-2  # relative tolerances in float32
LOSS_SCALE = 1024  # of mixed precision, from which on a power of two is no fault
DRAWS = 4  # of noise, whose mean and spread are compared


@dataclass(frozen=True)
class Diagnosis:
    """Explanation of a loop's loss value and gradient. `faults` is empty for a healthy loop, and also if no known fault
    explains the numbers: then `is_explained` is False. `problem` says why nothing was compared."""

    faults: tuple[Fault, ...] = ()
    is_explained: bool = True
    problem: str = ""
    value: float | None = None
    expected: float | None = None
    factor: float | None = None  # of the gradient, along that of the declared loss
    cosine: float | None = None  # of both gradients

    @property
    def is_healthy(self) -> bool:
        return self.is_explained and not self.faults

    @property
    def text(self) -> str:
        """The faults in one line."""
        if self.faults:
            return sentences_of(self.faults)
        if self.is_explained:
            both = N_("The loss value and the gradient match the declared loss.")
            return self.problem or (both if self.value is not None else N_("The gradient matches the declared loss."))
        value, expected = self.value, self.expected
        if value is not None and expected is not None and math.isclose(value, expected, rel_tol=0.01):
            return N_(
                "The loss is the declared one, but its gradient is not: another loss may also send gradients to "
                "these rows."
            )
        return NOT_EXPLAINED

    @property
    def numbers(self) -> str:
        """Both loss values and a comparison of the gradients, as text."""
        parts = []
        if self.value is not None and self.expected is not None:
            values = {"value": f"{self.value:.5g}", "expected": f"{self.expected:.5g}"}
            parts.append(message("Loss of the loop: {value}; declared loss: {expected}.", **values))
        if self.factor is not None:
            values = {"factor": f"{self.factor:.3g}", "cosine": f"{self.cosine:.3f}"}
            parts.append(message("Gradient: {factor} times the declared one (cosine {cosine}).", **values))
        return join(" ", parts)


def sentences_of(faults: Sequence[Fault]) -> str:
    """Describe the faults: those that explain the numbers as alternatives, then those of the rows."""
    beside = [fault.text for fault in faults if fault.name in OF_ROWS]
    numbers = [fault.text for fault in faults if fault.name not in OF_ROWS]
    return join(" ", filter(None, [join(N_(" Or: "), numbers), *beside]))


class Numbers(NamedTuple):
    """A loss value and its gradient at the rows (n, d), with the tolerances for rounding: of the value, and of the
    gradient relative to its length."""

    value: float
    grad: Tensor
    of_value: float = 0.0
    of_grad: float = 0.0


def diagnose(batch: SavedBatch, loss: Loss | None) -> Diagnosis:
    """Name the faults that explain a loop's loss value and gradient. With `loss` None only the rows are checked."""
    faults = tuple(of_rows(batch.rows, batch.queue_before, batch.first_spread))
    try:
        judge = _Judge(Case(**vars(batch), loss=_comparable(batch, loss)))
    except ValueError as error:
        return Diagnosis(faults, problem=sentence(error), value=batch.value)
    has_grad = judge.grad is not None
    return Diagnosis(
        (*faults, *judge.faults),
        is_explained=judge.is_healthy or bool(judge.faults or faults),
        problem="" if has_grad else VALUE_ALONE,
        value=batch.value,
        expected=judge.declared.value,
        factor=judge.factor if has_grad else None,
        cosine=judge.cosine if has_grad else None,
    )


def _comparable(batch: SavedBatch, loss: Loss | None) -> Loss:
    """Return the loss if the batch can be compared with it. Raises ValueError otherwise."""
    rows, queue = len(batch.rows), batch.rows.queue
    size, most = (rows, math.isqrt(MOST_SCORES)) if queue is None else (rows + len(queue), MOST_SCORES // rows)
    if batch.value is None and batch.grad is None:
        raise ValueError(N_("Not checked: there is no loss value, and no gradient reached the rows."))
    if batch.value is not None and not math.isfinite(batch.value):
        raise ValueError(N_("Not checked: the loss is not finite."))
    if batch.grad is not None and not bool(torch.isfinite(batch.grad).all()):
        raise ValueError(N_("Not checked: the gradient is not finite."))
    if loss is None:
        raise ValueError(N_("Only the rows are checked: no loss of the library is declared."))
    if loss.needs_more_inputs:
        raise ValueError(message("Not checked: {title} needs inputs that are not recorded.", title=loss.card.title))
    if size > most:
        text = N_("Not checked: {count} rows are too many to compare; the limit is {most}.")
        raise ValueError(message(text, count=f"{size:,}", most=f"{most:,}"))
    return loss


# --- the numbers ---


class _Judge:
    """Comparison of a loop's loss value and gradient with those of suspected faults."""

    def __init__(self, case: Case) -> None:
        self.case, rows, learned = case, case.rows, case.grad
        own = np.ones(len(rows), bool) if case.process is None else case.process == 0
        by_design = case.is_one_sided or case.loss.detaches_targets  # one side may have no gradient
        if learned is not None and (by_design or rows.is_of_towers):
            reached = [side for side in (0, 1) if bool(learned[torch.from_numpy(rows.view == side)].any())]
            if by_design and reached:
                own = own & np.isin(rows.view, reached)
            elif case.is_learned is not None:
                own = own & case.is_learned
        self.compared = torch.from_numpy(own)  # (n) rows whose gradient is compared
        # Of rows that were normalized before, the gradient along them reaches nothing.
        self.are_unit = bool(((rows.z.norm(dim=1) - 1).abs() < max(4 * case.eps, 1e-3)).all())
        self.grad: Tensor | None = None
        if learned is not None:
            self.grad = self._across(learned)[self.compared] * (case.accumulate / case.processes)
        self.declared, self.factor, self.cosine, self.is_healthy = self._compare(self.numbers(case.of()))
        self.faults = [*of_healthy(rows)] if self.is_healthy else []
        for suspect in () if self.is_healthy else harmless(case):
            with contextlib.suppress(ValueError):  # the loss cannot use its pairs
                found = self._compare(self.numbers(suspect))
                if not self.is_healthy and (found[-1] or found[2] > self.cosine):
                    self.declared, self.factor, self.cosine, self.is_healthy = found
        if not self.is_healthy:
            self.faults = self._explanations()

    def _compare(self, declared: Numbers) -> tuple[Numbers, float, float, bool]:
        """Return `declared`, the factor and cosine of the loop's gradient relative to its gradient, and whether it
        explains the loop's numbers."""
        factor, cosine, is_scaled = math.inf, 0.0, False
        if self.grad is not None:
            along, own = float((self.grad * declared.grad).sum()), float(declared.grad.norm())
            factor = along / own**2 if own else math.inf
            cosine = along / (own * float(self.grad.norm())) if own and self.grad.any() else 0.0
        if LOSS_SCALE <= factor < math.inf:
            power = math.log2(factor)
            is_power = abs(power - round(power)) < 0.02
            is_scaled = is_power and self._is_value_of(declared) and self._is_scaled(declared, factor)
        return declared, factor, cosine, is_scaled or self.misfit(declared) <= 1

    def numbers(self, suspect: Suspect) -> Numbers:
        z, eps = self.case.rows.z, self.case.eps
        value, grad = self._value_and_grad(suspect.value, z)
        noise = (0.0, 0.0)
        if eps > EPS:
            draw = torch.randn(z.shape, generator=torch.Generator().manual_seed(0), dtype=z.dtype)
            near = self._value_and_grad(suspect.value, z * (1 + 0.3 * eps * draw))
            noise = abs(near[0] - value), _distance(near[1], grad)
        rounding = eps * suspect.scale
        of_value = VALUE * abs(value) + rounding / 4 + 3 * noise[0] + 1e-5
        return Numbers(value, grad, of_value, GRADIENT + rounding + 3 * noise[1])

    def _value_and_grad(self, loss: Callable[[Tensor], Tensor], z: Tensor) -> tuple[float, Tensor]:
        z = z.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = loss(z)
            grad = torch.autograd.grad(value, z, allow_unused=True)[0] if value.requires_grad else None
        grad = torch.zeros_like(z) if grad is None else self._across(grad)
        return float(value.detach()), grad[self.compared]

    def _across(self, grad: Tensor) -> Tensor:
        """Remove a gradient's (n, d) component along the rows if they are unit rows."""
        z = self.case.rows.z
        return grad - (grad * z).sum(1, keepdim=True) * z if self.are_unit else grad

    def misfit(self, of: Numbers) -> float:
        """Return the larger of both differences relative to its tolerance; at most 1 explains the numbers."""
        of_grad = 0.0 if self.grad is None else _distance(self.grad, of.grad) / of.of_grad
        of_value, value = 0.0, self.case.value
        if value is not None:
            of_value = min(abs(x - of.value) for x in (value, value * self.case.accumulate)) / of.of_value
        return max(of_value, of_grad) if math.isfinite(of_value + of_grad) else math.inf

    def _is_value_of(self, declared: Numbers) -> bool:
        return self.case.value is None or abs(self.case.value - declared.value) <= declared.of_value

    def _is_scaled(self, declared: Numbers, factor: float) -> bool:
        """Return whether the loop's gradient is the declared one times a number."""
        return self.grad is not None and factor > 0 and _distance(self.grad, factor * declared.grad) <= declared.of_grad

    def _explanations(self) -> list[Fault]:
        """Return the faults that fit best, each once."""
        fits: dict[str, tuple[float, Fault]] = {}
        for suspect in suspects(self.case):
            with contextlib.suppress(ValueError):  # the loss cannot use its pairs
                misfit, fault = self.misfit(self.numbers(suspect)), suspect.fault
                if fault is not None and misfit <= 1:
                    fits[fault.name] = min(fits.get(fault.name, (math.inf, fault)), (misfit, fault))
        scaled = self._factor()
        if scaled and self.grad is not None:  # half of the gradient is nearly that of detached candidates
            misfit = _distance(self.grad, self.factor * self.declared.grad) / self.declared.of_grad
            fits[scaled.name] = misfit, scaled
        if fits:
            best = min(misfit for misfit, _ in fits.values())
            return [fault for misfit, fault in fits.values() if misfit <= max(3 * best, 0.1)]
        found = scaled or self._other_tau() or self._noise()
        return [found] if found else []

    def _other_tau(self) -> Fault | None:
        """Find a τ that gives the declared loss the loop's value and gradient."""
        if self.case.value is None or "temperature" not in knobs_of(type(self.case.loss)):
            return None

        def at(log_tau: float) -> Suspect:
            return self.case.of(loss=with_setting(temperature=math.exp(log_tau)))

        def excess(log_tau: float) -> float:
            return float(at(log_tau).value(self.case.rows.z)) - (self.case.value or 0.0)

        grid = np.linspace(math.log(0.005), math.log(5.0), 15).tolist()
        for low, high in pairwise(grid):
            if (start := excess(low)) * excess(high) > 0:
                continue
            for _ in range(25):
                middle = (low + high) / 2
                low, high = (middle, high) if excess(middle) * start > 0 else (low, middle)
            if self.misfit(self.numbers(at(low))) <= 1:
                return fault_of("other_tau", tau=f"{math.exp(low):.3g}")
        return None

    def _noise(self) -> Fault | None:
        """Find the noise on unit rows that gives the declared loss about the loop's value and gradient."""
        if self.case.value is None or self.grad is None or self.cosine < 0.3:
            return None
        shape, generator = self.case.rows.z.shape, torch.Generator().manual_seed(0)
        draws = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(DRAWS)]

        def with_noise(noise: Tensor, z: Tensor) -> Tensor:
            return self.case.of().value(normalize(z, dim=1) + noise)

        def noisy(sigma: float) -> tuple[np.ndarray, np.ndarray]:
            """Return means and standard deviations over the draws: value, and the gradient's cosine and length."""
            each = []
            for draw in draws:
                value, grad = self._value_and_grad(partial(with_noise, sigma * draw), self.case.rows.z)
                along = float((grad * self.declared.grad).sum() / (grad.norm() * self.declared.grad.norm()))
                each.append((value, along, float(grad.norm())))
            return np.mean(each, 0), np.std(each, 0, ddof=1)

        own = np.array([self.case.value, self.cosine, float(self.grad.norm())])
        low, high = math.log(1e-3), 0.0
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if noisy(math.exp(middle))[0][1] > self.cosine else (low, middle)
        mean, deviation = noisy(sigma := math.exp(low))
        slack = [self.declared.of_value, 0.01, 0.03 * own[2]]
        is_explained = bool((np.abs(own - mean) <= 4 * deviation + slack).all())
        return fault_of("noise", sigma=f"{sigma:.2g}") if is_explained else None

    def _factor(self) -> Fault | None:
        """Return the fault of a loss or gradient that is the declared one times a constant."""
        own = self.declared.value
        of_value = self.case.value / own if self.case.value is not None and abs(own) > 1e-9 else None
        factor = of_value if self.grad is None else self.factor
        is_scaled = self.grad is None or self._is_scaled(self.declared, self.factor)
        if factor is None or factor <= 0 or not is_scaled:
            return None
        if self.grad is not None and self._is_value_of(self.declared):
            name = "gradient_too_large" if factor > 1 else "gradient_too_small"
            return fault_of(name, factor=f"{factor:.3g}", number=round(max(factor, 1 / factor)))
        if self.grad is not None and abs(factor - 1) < 0.02:
            return fault_of("value_scaled", factor=f"{of_value:.4g}")
        if of_value is None or abs(of_value / factor - 1) > 0.05:
            return None
        every = self.case.pairs(self.case.rows.z)[1]
        anchors, defined = len(every), int((every.relation_counts[0] > 0).sum())
        known = [("summed", defined), ("mean_over_all", defined / anchors)]
        for name, number in known if self.grad is None else [*known, ("scaled", factor)]:
            if abs(factor / number - 1) < 0.02 and abs(number - 1) > 0.001:
                count = defined if name == "summed" else anchors
                return fault_of(name, factor=f"{factor:.4g}", count=count, defined=defined)
        return None


def _distance(a: Tensor, b: Tensor) -> float:
    """Return ‖a − b‖ relative to ‖b‖."""
    return float((a - b).norm() / b.norm().clamp_min(1e-30)) if bool(a.any()) or bool(b.any()) else 0.0
