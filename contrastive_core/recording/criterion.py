"""`w.wrap(criterion)`: any loss module, each of whose calls while training is a step.

What a call's arguments are is read from the names of the module's own `forward`, and where these
say nothing, from the tensors: floating-point rows of one shape are views, whole numbers (n) labels.
Tested in real loops of lightly 1.6 (`NTXentLoss`, `NegativeCosineSimilarity`, with a memory bank as
the queue) and pytorch-metric-learning 2.9 (`embeddings, labels, indices_tuple, ref_emb,
ref_labels`, and `SelfSupervisedLoss`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor, nn

from contrastive_core.messages import N_

if TYPE_CHECKING:
    from contrastive_core.recording.watch import Watch

__all__ = ["Wrapped", "read_call"]

LABELS = ("labels", "label", "targets", "target", "y")
TAU = ("temperature", "tau")


class LossCall(TypedDict, total=False):
    """The arguments of one call of a loss, as `Watch.step` takes them."""

    views: list[Tensor]
    labels: Any
    queue: Tensor
    temperature: Any


class Wrapped(nn.Module):
    """The criterion, with the same results; each of its calls is a step of the recording.

    `criterion(z0, z1, watch_ids=index, watch_labels=y)` passes values that the loss itself does not
    take. Calls without gradients, as in validation, are not steps.
    """

    watch: Watch

    def __init__(self, watch: Watch, criterion: Callable[..., Any]) -> None:
        super().__init__()
        self.criterion = criterion
        object.__setattr__(self, "watch", watch)  # no module, and not to be saved

    def forward(self, *args: Any, watch_ids: Any = None, watch_labels: Any = None, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self.criterion(*args, **kwargs)
        call = self._read(args, kwargs)
        if call is not None and "queue" in call and self.watch.records_next:
            call["queue"] = call["queue"].clone()  # before the loss pushes its own keys into it
        value = self.criterion(*args, **kwargs)
        if call is not None:
            if watch_labels is not None:
                call["labels"] = watch_labels
            loss = value if isinstance(value, Tensor) and value.ndim == 0 else None
            views = call.pop("views")
            self.watch.step(*views, ids=watch_ids, caller_loss=loss, **call)
        return value

    def _read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LossCall | None:
        """The arguments of the step; None if the call has no rows."""
        try:
            call, remark = read_call(self.criterion, args, kwargs)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return None
        if remark:
            self.watch.omissions.remark(remark)
        return call


def read_call(criterion: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[LossCall, str]:
    """The rows of a call of a loss with its labels, queue and temperature if it has any, and a sentence
    on values that are not recorded. Raises ValueError if it has no rows."""
    arguments = _arguments_by_name(criterion, args, kwargs)
    rows = {k: v for k, v in arguments.items() if _is_rows(v)}
    labels = next((arguments[k] for k in LABELS if _is_labels(arguments.get(k))), None)
    if labels is None:
        labels = next((v for v in arguments.values() if _is_labels(v)), None)
    first = next(iter(rows.values()), None)
    if first is None:
        raise ValueError(N_("the call of the loss has no rows (n, d)"))
    call: LossCall = {"views": [first], "labels": labels}
    remark = ""
    if arguments.get("ref_labels") is not None:  # another batch, or a memory, not another view
        remark = N_("Rows that a loss compares with those of its batch (ref_emb) are not recorded.")
    elif first.ndim == 2:
        call["views"] = [v for v in rows.values() if v.shape == first.shape]
    if call["labels"] is not None and len(call["labels"]) != len(first):
        call["labels"] = None
    if (queue := _queue_of(criterion)) is not None:
        call["queue"] = queue
    tau = next((t for name in TAU if (t := _temperature(criterion, name)) is not None), None)
    if tau is not None:
        call["temperature"] = tau
    return call, remark


def _arguments_by_name(
    criterion: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The call's arguments by name; those behind a `*` by number."""
    forward = getattr(criterion, "forward", criterion)
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {str(i): value for i, value in enumerate(args)} | dict(kwargs)
    named: dict[str, Any] = {}
    for name, value in bound.items():
        if isinstance(value, tuple):
            named |= {f"{name}.{i}": one for i, one in enumerate(value)}
        elif isinstance(value, dict):
            named |= value
        else:
            named[name] = value
    return named


def _is_rows(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim in (2, 3) and value.is_floating_point()


def _is_labels(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 1 and not value.is_floating_point() and not value.is_complex()


def _queue_of(criterion: Any) -> Tensor | None:
    """The keys (k, d) of lightly's memory bank."""
    bank = getattr(criterion, "memory_bank", None)
    keys = getattr(bank, "bank", None)
    if not isinstance(keys, Tensor) or keys.ndim != 2 or not keys.numel():
        return None
    return keys.detach()


def _temperature(criterion: Any, name: str) -> Any:
    """A τ that is learned: of one that is set, the recording's own setting tells."""
    value = getattr(criterion, name, None)
    return value if isinstance(value, nn.Parameter) and value.numel() == 1 else None
