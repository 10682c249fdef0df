"""The checks of a recording: the gradients that reach the rows of a step, the diagnosis of each step, and their
combined result. The training thread only registers hooks that copy gradients; the recorder's thread computes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.messages import N_, join, message, sentence
from contrastive_core.losses import Loss
from contrastive_core.ops import collectives
from contrastive_core.recording.doctor import Diagnosis, diagnose, sentences_of
from contrastive_core.recording.fault_kinds import Fault, fault_of, spread_of
from contrastive_core.recording.faults import EPS, SavedBatch
from contrastive_core.recording.figures import ProbeCopy
from contrastive_core.recording.steps import Omissions, StepCopy, batch_of
from contrastive_core.runs.records import LoopCheck

RANDOM = "random_evaluation"
FIRST, EVERY = 20, 200  # recorded steps that are checked, and then one of so many
CONFIRMED = 3  # checks that name a fault before it is reported
SHARE = 0.6  # of the checks of the most frequent fault, from which on another is named beside it
ROWS = 20  # ids that a report lists
REPEATED = 0.999  # mean cosine of rows of the probe set with the same ones, embedded again


@dataclass(eq=False)
class CheckCopy:
    """A step with the gradients of its views; None for a view that got none."""

    copy: StepCopy
    is_learned: tuple[bool, ...]
    grads: list[Tensor | None]
    sizes: tuple[int, ...] = ()  # rows of each view that are of this process; (): all
    copied: list[Any] = field(default_factory=list)  # events of a GPU
    handles: list[Any] = field(default_factory=list)
    eps: float = field(init=False)  # the coarsest precision among rows, loss and autocast

    def __post_init__(self) -> None:
        numbers, device = (*self.copy.views, self.copy.caller_loss), self.copy.views[0].device.type
        kinds = [x.dtype for x in numbers if isinstance(x, Tensor) and x.is_floating_point()]
        if torch.is_autocast_enabled(device):
            kinds.append(torch.get_autocast_dtype(device))
        self.eps = max(EPS, *(torch.finfo(kind).eps for kind in kinds))

    @property
    def step(self) -> int:
        return self.copy.step

    def saved_batch(self, positives: str, accumulate: int = 1) -> SavedBatch:
        """Return the batch to diagnose. Raises ValueError if the rows cannot be compared."""
        for event in self.copied:
            event.synchronize()
        copy, views = self.copy, self.copy.views
        if not copy.is_whole:
            raise ValueError(N_("Not checked: the step has more rows than are recorded."))
        if not all(bool(torch.isfinite(z).all()) for z in (*views, *([] if copy.queue is None else [copy.queue]))):
            raise ValueError(N_("Not checked: rows are not finite."))

        def flat(tensors: list[Tensor]) -> Tensor:
            """Return the tensors' rows in the order of `RecordedBatch`."""
            z = torch.cat(tensors) if copy.is_of_towers or len(tensors) == 1 else torch.stack(tensors, 1)
            return z.reshape(-1, z.shape[-1])

        def per_row(marks: list[Tensor]) -> np.ndarray:
            """Expand marks to one per row (n). Args: marks: (b), one per entry of each view, or (1) for all."""
            spread = zip(marks, views, strict=True)
            return flat([m.view(-1, *[1] * (z.ndim - 1)).expand(*z.shape[:-1], 1) for m, z in spread])[:, 0].numpy()

        grad = process = None
        if any(g is not None for g in self.grads):
            filled = [torch.zeros_like(z) if g is None else g for z, g in zip(views, self.grads, strict=True)]
            grad = flat([g.cpu().double() for g in filled])
        if copy.processes > 1:
            process = per_row([torch.arange(len(z)) // n for z, n in zip(views, self.sizes, strict=True)])
        return SavedBatch(
            rows=batch_of(copy, Omissions("")),
            value=None if copy.caller_loss is None else float(copy.caller_loss),
            grad=grad,
            is_learned=per_row([torch.tensor([x]) for x in self.is_learned]),
            eps=self.eps,
            positives=positives,
            accumulate=accumulate,
            process=process,
        )


class GradientCatcher:
    """Decides which recorded steps are checked, and copies the gradients of their rows during the backward pass."""

    def __init__(self) -> None:
        self.seen = 0  # recorded steps
        self._waiting: CheckCopy | None = None

    def begin(self, copy: StepCopy, views: tuple[Any, ...]) -> None:
        """Register gradient hooks on a recorded step if it is due for a check."""
        is_due = self.seen < FIRST or self.seen % EVERY == 0
        self.seen += 1
        is_apart = copy.processes == 1 and not collectives.is_single_process()
        parts = [z if isinstance(z, tuple) else (z,) for z in views]
        learned = tuple(any(isinstance(z, Tensor) and z.requires_grad for z in each) for each in parts)
        if not is_due or is_apart or (copy.caller_loss is None and not any(learned)):
            return
        self._waiting = check = CheckCopy(
            copy, is_learned=learned, grads=[None] * len(parts), sizes=tuple(sum(map(len, each)) for each in parts)
        )

        def listen(z: Tensor, place: int, first: int) -> None:
            """Add the gradient of a tensor to that of its view, from row `first` on."""

            def keep(grad: Tensor | None) -> None:
                if grad is None:  # another part of the same operation got one
                    return
                if (kept := check.grads[place]) is None:
                    kept = check.grads[place] = torch.zeros_like(copy.views[place])
                kept[first : first + len(grad)] += grad.detach()
                if grad.is_cuda:
                    event = torch.cuda.Event()
                    event.record(torch.cuda.current_stream(grad.device))
                    check.copied.append(event)

            check.handles.append(z.register_hook(keep))

        for place, each in enumerate(parts if copy.is_whole else ()):
            first = 0
            for z in each:
                if isinstance(z, Tensor) and z.requires_grad:
                    listen(z, place, first)
                first += len(z)

    def take(self) -> CheckCopy | None:
        """Return the pending check, whose backward pass is over, and remove its hooks; None if there is none."""
        check, self._waiting = self._waiting, None
        for handle in [] if check is None else check.handles:
            handle.remove()
        return check


class LoopFindings:
    """Combined findings of the checks of a recording."""

    def __init__(self, loss: Loss | None, positives: str, accumulate: int) -> None:
        self.loss, self.positives, self.accumulate = loss, positives, accumulate
        self.checked, self.counts, self.last = 0, Counter[str](), Diagnosis()
        self.faults: dict[str, Fault] = {}
        self.reported, self._problems, self._problem = list[str](), Counter[str](), ""
        self._step, self._collapsed = 0, 0  # of the last diagnosis, and the first that saw a collapse
        self._queue: Tensor | None = None  # of the previous step
        self._spread: float | None = None  # of the first step

    def add(self, check: CheckCopy) -> None:
        """Diagnose another step."""
        try:
            batch = check.saved_batch(self.positives, self.accumulate)
            batch = replace(batch, queue_before=self._queue, first_spread=self._spread)
            self._queue, self._spread = batch.rows.queue, self._spread or spread_of(batch.rows)[0]
            found = diagnose(batch, self.loss)
        except ValueError as error:
            found = Diagnosis(problem=sentence(error))
        self.checked += 1
        self._problems[found.problem] += 1
        if self.loss is not None and found.expected is None and self._problems[found.problem] == CONFIRMED:
            self._problem = found.problem
        faults = found.faults
        if not found.is_explained and found.value is not None:  # a gradient alone may be that of several losses
            faults = (Fault("not_explained", found.text),)
        for fault in faults:
            if fault.name == "collapse":
                self._collapsed = self._collapsed or check.step
                since = message("It was first seen at step {step}.", step=f"{self._collapsed:,}")
                fault = fault._replace(text=join(" ", [fault.text, since]))
            self.counts[fault.name] += 1
            rows = (*(self.faults[fault.name].rows if fault.name in self.faults else ()), *fault.rows)
            self.faults[fault.name] = fault._replace(rows=tuple(dict.fromkeys(rows))[:ROWS])
        if faults or self.last.is_healthy:
            self.last, self._step = found, check.step

    def add_probe(self, probe: ProbeCopy) -> None:
        """Note a fault if the probe's rows differ when it is embedded again."""
        if probe.cosine_again < REPEATED:
            self.counts[RANDOM] += 1
            self.faults[RANDOM] = fault_of(RANDOM, cosine=f"{probe.cosine_again:.2f}")

    def confirmed(self) -> list[str]:
        """Return the names of the faults that enough checks report."""
        most = max([0, *(count for name, count in self.counts.items() if name != RANDOM)])
        enough = max(CONFIRMED, SHARE * most)
        names = [name for name, count in self.counts.most_common() if count >= enough or name == RANDOM]
        return [name for name in names if name != "not_explained" or names == ["not_explained"]]

    def news(self) -> str:
        """Return a line for the console if the confirmed faults have changed or nothing can be compared; else ""."""
        names, problem, self._problem = self.confirmed(), self._problem, ""
        if not names or names == self.reported:
            return "" if names else problem
        self.reported, record = names, self.record()
        return join(" ", filter(None, [record["text"], record["numbers"]]))

    def record(self) -> LoopCheck:
        """Return the findings as a record for the recording's file."""
        names = self.confirmed()
        return {
            "checked": self.checked,
            "step": self._step,
            "problem": self.last.problem,
            "text": sentences_of([self.faults[name] for name in names]),
            "numbers": "" if names == [RANDOM] else self.last.numbers,
            "faults": [
                {"name": n, "text": self.faults[n].text, "steps": self.counts[n], "rows": [*self.faults[n].rows]}
                for n in names
            ],
        }
