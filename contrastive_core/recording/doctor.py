"""Is a loop's loss the declared one? Its value and its gradient at the rows are compared with those of the declared
loss on the same rows, and with those of each known fault."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.registry import knobs_of
from contrastive_core.losses import Loss
from contrastive_core.recording.faults import Case, Fault, Suspect, suspects, with_setting
from contrastive_core.recording.recorded_batch import RecordedBatch
from contrastive_core.recording.row_faults import of_healthy, of_rows

NOT_EXPLAINED = N_("The loss is not the declared one, and no known fault explains it.")
OF_ROWS = ("collapse", "duplicates", "own_keys_in_queue", "queue_unfilled")  # faults that do not exclude others
MOST_SCORES = 1 << 22  # anchors × candidates of a batch that is checked
VALUE, GRADIENT = 2e-3, 1e-2  # relative tolerances in float32
EPS = 2.0**-12  # of float32, whose products may be TF32
LOSS_SCALE = 1024  # of mixed precision, from which on a power of two is no fault


@dataclass(frozen=True, eq=False)
class SavedBatch:
    """Rows of a step with the loop's loss value and the gradient (n, d) that reached them; None for what is missing.

    Args:
        is_learned: (n) rows that require a gradient; default: all. eps: the precision of the loop's numbers.
        accumulate: batches whose gradients add up, each divided by this number.
        process: (n) number of the process that has the row, 0 for this one; None: there is one. `value` is the mean
            over processes, `grad` what reaches the rows of this one from the sum of their losses.
        queue_before: the queue of an earlier step. first_spread: `spread_of` the rows of the first step.
    """

    rows: RecordedBatch
    value: float | None = None
    grad: Tensor | None = None
    is_learned: np.ndarray | None = None
    eps: float = EPS
    positives: str = "auto"
    accumulate: int = 1
    process: np.ndarray | None = None
    queue_before: Tensor | None = None
    first_spread: float | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What explains the loop's numbers. `faults` is empty for a healthy loop, and where nothing explains them:
    then `is_explained` is False. `problem` says why nothing was compared."""

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
            return self.problem or N_("Value and gradient are those of the declared loss.")
        value, expected = self.value, self.expected
        if value is not None and expected is not None and math.isclose(value, expected, rel_tol=0.01):
            return N_("The loss is the declared one, but its gradient is not: another loss may reach these rows too.")
        return NOT_EXPLAINED

    @property
    def numbers(self) -> str:
        """Both loss values, and how the gradients compare."""
        parts = []
        if self.value is not None and self.expected is not None:
            values = {"value": f"{self.value:.5g}", "expected": f"{self.expected:.5g}"}
            parts.append(message("Loss of the loop: {value}; declared loss: {expected}.", **values))
        if self.factor is not None:
            values = {"factor": f"{self.factor:.3g}", "cosine": f"{self.cosine:.3f}"}
            parts.append(message("Gradient: {factor} times the declared one (cosine {cosine}).", **values))
        return join(" ", parts)


def sentences_of(faults: Sequence[Fault]) -> str:
    """Faults that explain the numbers are alternatives; those of the rows stand beside them."""
    beside = [fault.text for fault in faults if fault.name in OF_ROWS]
    numbers = [fault.text for fault in faults if fault.name not in OF_ROWS]
    return join(" ", filter(None, [join(N_(" Or: "), numbers), *beside]))


class Numbers(NamedTuple):
    """A loss value and its gradient at the rows (n, d)."""

    value: float
    grad: Tensor


def diagnose(batch: SavedBatch, loss: Loss | None) -> Diagnosis:
    """Name the faults that explain a loop's loss value and gradient. Of `loss` None only the rows are checked."""
    faults = of_rows(batch.rows, batch.queue_before, batch.first_spread)
    if problem := _problem(batch, loss):
        return Diagnosis(tuple(faults), problem=problem, value=batch.value)
    assert loss is not None
    try:
        judge = _Judge(batch, Case(batch.rows, loss, batch.positives, batch.process))
    except ValueError as error:
        return Diagnosis(tuple(faults), problem=str(error), value=batch.value)
    about = judge.about()
    if judge.is_healthy():
        return replace(about, faults=(*faults, *of_healthy(batch.rows)))
    found = judge.explanations()
    is_explained = found is None or bool(faults or found)
    return replace(about, faults=(*faults, *(found or [])), is_explained=is_explained)


def _problem(batch: SavedBatch, loss: Loss | None) -> str:
    if batch.value is None and batch.grad is None:
        return N_("Not checked: there is no loss value, and no gradient reached the rows.")
    if batch.value is not None and not math.isfinite(batch.value):
        return N_("Not checked: the loss is not finite.")
    if batch.grad is not None and not bool(torch.isfinite(batch.grad).all()):
        return N_("Not checked: the gradient is not finite.")
    if loss is None:
        return N_("Only the rows are checked: no loss of the library is declared.")
    if loss.needs_more_inputs:
        return message("Not checked: {title} needs inputs that are not recorded.", title=loss.card.title)
    size = len(batch.rows) + (0 if batch.rows.queue is None else len(batch.rows.queue))
    if len(batch.rows) * size > MOST_SCORES:
        return message("Not checked: {count} rows are more than are compared.", count=f"{size:,}")
    return ""


# --- the numbers ---


class _Judge:
    """Compares the loop's numbers with those of suspects."""

    def __init__(self, batch: SavedBatch, case: Case) -> None:
        self.batch, self.case = batch, case
        self.compared = torch.from_numpy(self._compared())
        lengths = batch.rows.z.norm(dim=1)
        # Of rows that were normalized before, the gradient along them reaches nothing.
        self.are_unit = bool(((lengths - 1).abs() < max(4 * batch.eps, 1e-3)).all())
        self.declared = self.numbers(case.declared)
        self.value = batch.value
        self.grad = None
        if batch.grad is not None:
            self.grad = self._across(batch.grad)[self.compared] * (batch.accumulate / case.processes)

    def _compared(self) -> np.ndarray:
        """Rows (n) whose gradient is compared: of one-sided losses not of a side that gets none by design."""
        rows, grad = self.batch.rows, self.batch.grad
        own = np.ones(len(rows), bool) if self.batch.process is None else self.batch.process == 0
        every = own if self.batch.is_learned is None else self.batch.is_learned & own
        by_design = self.case.is_one_sided or self.case.loss.detaches_targets
        if grad is None or not (by_design or rows.is_of_towers):
            return own
        reached = [side for side in (0, 1) if bool(grad[torch.from_numpy(rows.view == side)].any())]
        return np.isin(rows.view, reached) & own if by_design and reached else every

    def numbers(self, suspect: Suspect, z: Tensor | None = None) -> Numbers:
        z = (self.case.rows.z if z is None else z).detach().clone().requires_grad_()
        with torch.enable_grad():
            value = suspect.value(z)
            (grad,) = torch.autograd.grad(value, z, allow_unused=True)
        grad = torch.zeros_like(z) if grad is None else self._across(grad)
        return Numbers(float(value.detach()), grad[self.compared])

    def _across(self, grad: Tensor) -> Tensor:
        """A gradient (n, d), without what is along unit rows."""
        z = self.case.rows.z
        return grad - (grad * z).sum(1, keepdim=True) * z if self.are_unit else grad

    def tolerances(self, suspect: Suspect, of: Numbers) -> tuple[float, float]:
        """Differences of the value and, relative to its length, of the gradient that rounding explains."""
        eps, noise = self.batch.eps, (0.0, 0.0)
        if eps > EPS:
            generator = torch.Generator().manual_seed(0)
            z = self.case.rows.z
            near = self.numbers(suspect, z * (1 + 0.3 * eps * torch.randn(z.shape, generator=generator, dtype=z.dtype)))
            noise = abs(near.value - of.value), _distance(near.grad, of.grad)
        rounding = eps * suspect.scale
        return VALUE * abs(of.value) + rounding / 4 + 3 * noise[0] + 1e-5, GRADIENT + rounding + 3 * noise[1]

    def misfit(self, suspect: Suspect, of: Numbers | None = None) -> float:
        """The larger of both differences, in tolerances: a suspect up to 1 explains the numbers."""
        of = of or self.numbers(suspect)
        of_value, of_grad = self.tolerances(suspect, of)
        found = 0.0
        if self.value is not None:
            found = min(abs(x - of.value) for x in (self.value, self.value * self.batch.accumulate)) / of_value
        if self.grad is not None:
            found = max(found, _distance(self.grad, of.grad) / of_grad)
        return found if math.isfinite(found) else math.inf

    def about(self) -> Diagnosis:
        """The numbers alone."""
        numbers = Diagnosis(value=self.value, expected=self.declared.value)
        if self.grad is None:
            return numbers
        lengths = float(self.grad.norm() * self.declared.grad.norm())
        cosine = float((self.grad * self.declared.grad).sum()) / lengths if lengths else 0.0
        return replace(numbers, factor=self.factor, cosine=cosine)

    @property
    def factor(self) -> float:
        """Of the gradient, along that of the declared loss."""
        assert self.grad is not None
        own = float(self.declared.grad.square().sum())
        return float((self.grad * self.declared.grad).sum()) / own if own else math.inf

    def is_healthy(self) -> bool:
        if self.misfit(self.case.declared, self.declared) <= 1:
            return True
        if self.grad is None or not self._is_scaled():
            return False
        power = math.log2(self.factor)
        return self.is_value_right() and self.factor >= LOSS_SCALE and abs(power - round(power)) < 0.02

    def is_value_right(self) -> bool:
        tolerance = self.tolerances(self.case.declared, self.declared)[0]
        return self.value is None or abs(self.value - self.declared.value) <= tolerance

    def _is_scaled(self) -> bool:
        """Return whether the gradient is that of the declared loss times a number."""
        assert self.grad is not None
        tolerance = self.tolerances(self.case.declared, self.declared)[1]
        return self.factor > 0 and _distance(self.grad, self.factor * self.declared.grad) <= tolerance

    def explanations(self) -> list[Fault] | None:
        """The faults that fit best, each once; None where a harmless variant of the loss fits."""
        fits: dict[str, tuple[float, Fault | None]] = {}
        for suspect in suspects(self.case):
            try:
                misfit = self.misfit(suspect)
            except ValueError:
                continue  # the loss cannot use such pairs
            name = suspect.fault.name if suspect.fault else ""
            if misfit <= 1 and misfit < fits.get(name, (math.inf, None))[0]:
                fits[name] = misfit, suspect.fault
        if fits:
            best = min(misfit for misfit, _ in fits.values())
            chosen = [fault for misfit, fault in fits.values() if misfit <= max(3 * best, 0.1)]
            return None if None in chosen else [fault for fault in chosen if fault]
        return self._detached() or self._factors() or self._other_tau()

    def _detached(self) -> list[Fault]:
        rows, grad = self.case.rows, self.declared.grad
        if self.grad is None or not self.is_value_right():
            return []
        tolerance = self.tolerances(self.case.declared, self.declared)[1]
        if not self.grad.any():
            return [Fault("detached", N_("No gradient reaches the rows."))]
        for side in (1, 0):
            kept = torch.from_numpy(rows.view != side)[self.compared][:, None]
            if _distance(self.grad, grad * kept) <= tolerance:
                text = N_(
                    "No gradient reaches the rows of side {side}: they are detached, or the loss uses other tensors."
                )
                return [Fault("detached", message(text, side=side + 1))]
        if self.case.process is not None:
            alone = self.case.of(
                change=lambda pairs: pairs.take_anchors(torch.from_numpy(self.case.of_anchors(pairs) == 0))
            )
            if _distance(self.grad * self.case.processes, self.numbers(alone).grad) <= tolerance:
                return [Fault("gathered_detached", N_("Rows of other processes are gathered without their gradient."))]
        as_anchors = self.case.of(change=lambda pairs: pairs.with_rows(pairs.anchors, pairs.candidates.detach()))
        if _distance(self.grad, self.numbers(as_anchors).grad) <= tolerance:
            return [Fault("detached", N_("Rows get a gradient only as anchors: the candidates are detached."))]
        return []

    def _other_tau(self) -> list[Fault]:
        """τ with which the declared loss has the loop's value and gradient."""
        if self.value is None or "temperature" not in knobs_of(type(self.case.loss)):
            return []
        value, z = self.value, self.case.rows.z

        def excess(log_tau: float) -> float:
            return float(self.case.of(loss=with_setting(temperature=math.exp(log_tau))).value(z)) - value

        grid = np.linspace(math.log(0.005), math.log(5.0), 15).tolist()
        over = [excess(x) for x in grid]
        for low, high, a, b in zip(grid[:-1], grid[1:], over[:-1], over[1:], strict=True):
            if a * b > 0:
                continue
            for _ in range(25):
                middle = (low + high) / 2
                low, high = (middle, high) if excess(middle) * a > 0 else (low, middle)
            tau = math.exp(low)
            fault = Fault("other_tau", message("τ is {tau}, not the declared value.", tau=f"{tau:.3g}"))
            if self.misfit(self.case.of(fault, loss=with_setting(temperature=tau))) <= 1:
                return [fault]
        return []

    def _factors(self) -> list[Fault]:
        """The numbers are those of the declared loss times a number."""
        own = self.declared.value
        of_value = self.value / own if self.value is not None and abs(own) > 1e-9 else None
        if self.grad is not None and not self._is_scaled():
            return []
        factor = self.factor if self.grad is not None else of_value
        if factor is None or factor <= 0:
            return []
        if self.grad is not None and self.is_value_right():
            text = N_(
                "The gradient is {factor} times that of the loss, as for a wrong number of processes or of accumulated "
                "batches. If that is meant, pass accumulate={number}."
            )
            if factor > 1:
                text = N_(
                    "The gradient is {factor} times that of the loss, as for gradients that are summed over processes "
                    "or accumulated batches."
                )
            number = round(max(factor, 1 / factor))
            return [Fault("gradient_scaled", message(text, factor=f"{factor:.3g}", number=number))]
        if self.grad is not None and abs(factor - 1) < 0.02:
            text = N_("The loss value is {factor} times the declared one. Its gradient is right.")
            return [Fault("value_scaled", message(text, factor=f"{of_value:.4g}"))]
        if of_value is None or abs(of_value / factor - 1) > 0.05:
            return []
        return self._of_count(factor)

    def _of_count(self, factor: float) -> list[Fault]:
        _, every = self.case.pairs(self.case.rows.z)
        anchors, defined = len(every), int((every.relation_counts[0] > 0).sum())
        texts = {
            float(defined): message("The losses are summed over {count} anchors, not averaged.", count=defined),
            defined / anchors: message(
                "The mean is over all {count} rows, but only {defined} have a positive.", count=anchors, defined=defined
            ),
        }
        for number, text in texts.items():
            if abs(factor / number - 1) < 0.02 and abs(number - 1) > 0.001:
                return [Fault("wrong_count", text)]
        if self.grad is None:
            return []
        of_both = N_("Loss and gradient are {factor} times those of the declared loss.")
        return [Fault("wrong_count", message(of_both, factor=f"{factor:.4g}"))]


def _distance(a: Tensor, b: Tensor) -> float:
    """‖a − b‖ relative to ‖b‖."""
    return float((a - b).norm() / b.norm().clamp_min(1e-30)) if bool(a.any()) or bool(b.any()) else 0.0
