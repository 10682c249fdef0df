"""`w.wrap(criterion)`: any loss module, each of whose calls while training is a step.

What a call's arguments are is read from the names of the module's own `forward`, and where these say nothing, from the
tensors: floating-point rows of one shape are views, whole numbers (n) labels. Tested in real loops of lightly 1.6
(`NTXentLoss`, `NegativeCosineSimilarity`, with a memory bank as the queue) and pytorch-metric-learning 2.9
(`embeddings, labels, indices_tuple, ref_emb, ref_labels`, and `SelfSupervisedLoss`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, is_grad_enabled, nn

from contrastive_core.messages import N_

if TYPE_CHECKING:
    from contrastive_core.recording.watch import Watch

LABELS = ("labels", "label", "targets", "target", "y")


class LossCall(NamedTuple):
    """The arguments of one call of a loss, as `Watch.step` takes them."""

    views: list[Tensor]
    labels: Tensor | None
    queue: Tensor | None  # the keys (k, d) of lightly's memory bank
    temperature: nn.Parameter | None  # only where it is learned: one that is set is a setting of the recording


class Wrapped(nn.Module):
    """The criterion, with the same results; each of its calls is a step of the recording. `criterion(z0, z1,
    watch_ids=index, watch_labels=y)` passes values that the loss itself does not take. Calls without gradients, as in
    validation, are not steps."""

    watch: Watch

    def __init__(self, watch: Watch, criterion: Callable[..., Any]) -> None:
        super().__init__()
        self.criterion = criterion
        object.__setattr__(self, "watch", watch)  # no module, and not to be saved

    def forward(self, *args: Any, watch_ids: Any = None, watch_labels: Any = None, **kwargs: Any) -> Any:
        call = self._read(args, kwargs) if is_grad_enabled() else None
        queue = None if call is None else call.queue
        if queue is not None and self.watch.records_next:
            queue = queue.clone()  # before the loss pushes its own keys into it
        value = self.criterion(*args, **kwargs)
        if call is not None:
            labels = call.labels if watch_labels is None else watch_labels
            loss = value if isinstance(value, Tensor) and value.ndim == 0 else None
            self.watch.step(
                *call.views, queue=queue, labels=labels, ids=watch_ids, temperature=call.temperature, caller_loss=loss
            )
        return value

    def _read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LossCall | None:
        """The arguments of the step; None if the call has no rows."""
        try:
            arguments = _arguments_by_name(self.criterion, args, kwargs)
            call = _call_of(self.criterion, arguments)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return None
        if arguments.get("ref_labels") is not None:
            text = N_("Rows that a loss compares with those of its batch (ref_emb) are not recorded.")
            self.watch.omissions.remark(text)
        return call


def _call_of(criterion: Callable[..., Any], arguments: Mapping[str, Any]) -> LossCall:
    """The rows of a call of a loss, and what goes along. Raises ValueError if it has no rows."""
    tensors = [v for v in arguments.values() if isinstance(v, Tensor)]
    rows = [v for v in tensors if v.ndim in (2, 3) and v.is_floating_point()]
    if not rows:
        raise ValueError(N_("the loss was called without rows (n, d)"))
    first, views = rows[0], rows[:1]
    if arguments.get("ref_labels") is None and first.ndim == 2:  # else another batch, or a memory, no other view
        views = [v for v in rows if v.shape == first.shape]
    named = [arguments[k] for k in LABELS if k in arguments]
    labels = next((v for v in (*named, *arguments.values()) if _is_labels(v)), None)
    if labels is not None and len(labels) != len(first):
        labels = None
    keys = getattr(getattr(criterion, "memory_bank", None), "bank", None)
    queue = keys.detach() if isinstance(keys, Tensor) and keys.ndim == 2 and keys.numel() else None
    taus = (getattr(criterion, name, None) for name in ("temperature", "tau"))
    tau = next((t for t in taus if isinstance(t, nn.Parameter) and t.numel() == 1), None)
    return LossCall(views, labels, queue, tau)


def _arguments_by_name(
    criterion: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The call's arguments by name; those behind a `*` by number."""
    try:
        bound = inspect.signature(getattr(criterion, "forward", criterion)).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {str(i): value for i, value in enumerate(args)} | dict(kwargs)
    named: dict[str, Any] = {}
    for name, value in bound.items():
        if isinstance(value, tuple):
            named |= {f"{name}.{i}": one for i, one in enumerate(value)}
        else:
            named |= value if isinstance(value, dict) else {name: value}
    return named


def _is_labels(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 1 and not value.is_floating_point() and not value.is_complex()
