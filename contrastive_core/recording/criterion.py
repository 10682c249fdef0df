"""`w.wrap(criterion)`: any loss module, each of whose calls while training is a step.

What a call's arguments are is read from the names of the module's own `forward`, and where these say nothing, from the
tensors: floating-point rows of one shape are views, whole numbers (n) labels. Tested in real loops of lightly 1.6
(`NTXentLoss`, `NegativeCosineSimilarity`, with a memory bank as the queue) and pytorch-metric-learning 2.9
(`embeddings, labels, indices_tuple, ref_emb, ref_labels`, and `SelfSupervisedLoss`).

Losses of two towers: open_clip's `ClipLoss` and `SigLipLoss` are called with `image_features, text_features,
logit_scale[, logit_bias]`, where the scale is 1/τ. Losses of sentence-transformers encode their `sentence_features`
themselves, so their model is listened to meanwhile.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, is_grad_enabled, nn

from contrastive_core.messages import N_

if TYPE_CHECKING:
    from contrastive_core.recording.watch import Watch

CLIP = ("image_features", "text_features")
SENTENCES = "sentence_features"
LABELS = ("labels", "label", "targets", "target", "y")


class LossCall(NamedTuple):
    """The arguments of one call of a loss, as `Watch.step` takes them."""

    views: list[Tensor]
    labels: Tensor | None = None
    queue: Tensor | None = None  # the keys (k, d) of lightly's memory bank
    temperature: Tensor | None = None  # only where it is learned: one that is set is a setting of the recording
    bias: Tensor | None = None
    ids: Any = None


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
        with _listening(self.criterion) as heard:
            value = self.criterion(*args, **kwargs)
        if call is not None and not call.views:
            call = self._of_sentences(heard, call.labels, watch_ids)
        if call is not None:
            labels = call.labels if watch_labels is None else watch_labels
            ids = watch_ids if call.ids is None else call.ids
            about = {"queue": queue, "labels": labels, "ids": ids, "caller_loss": _number(value)}
            self.watch.step(*call.views, temperature=call.temperature, bias=call.bias, **about)
        return value

    def _read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LossCall | None:
        """The arguments of the step, without views where the loss encodes; None if the call has no rows."""
        try:
            arguments = _arguments_by_name(self.criterion, args, kwargs)
            if any(name.partition(".")[0] == SENTENCES for name in arguments):
                return LossCall([], next(filter(_is_labels, arguments.values()), None))
            if all(isinstance(arguments.get(name), Tensor) for name in CLIP):
                return self._of_clip(arguments)
            call = _call_of(self.criterion, arguments, self.watch.settings.towers is not None)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return None
        if arguments.get("ref_labels") is not None:
            text = N_("Rows that a loss compares with those of its batch (ref_emb) are not recorded.")
            self.watch.omissions.remark(text)
        return call

    def _of_clip(self, arguments: Mapping[str, Any]) -> LossCall:
        """A call of open_clip's losses."""
        scale, bias = (arguments.get(name) for name in ("logit_scale", "logit_bias"))
        tau = None if scale is None else 1 / torch.as_tensor(scale).detach()
        self._suggest_towers()
        return LossCall([arguments[name] for name in CLIP], temperature=tau, bias=bias)

    def _of_sentences(self, heard: Sequence[Tensor], labels: Tensor | None, ids: Any) -> LossCall | None:
        """A call of sentence-transformers' losses, which encoded the columns `heard`: rows with their labels, or
        anchors with positives and negatives."""
        if not heard:
            self.watch.on_error(ValueError(N_("the loss encoded no sentences that could be listened to")), "steps")
            return None
        if len(heard) == 1:
            return LossCall([*heard], labels)
        if self.watch.settings.towers is None:
            self._suggest_towers()
            return LossCall([*heard[:2]])
        anchor, negatives, n = heard[0], range(1, len(heard) - 1), len(heard[0])
        names = (
            [f"{place}" for place in range(n)]
            if ids is None
            else [str(getattr(i, "item", lambda i=i: i)()) for i in ids]
        )
        if not negatives:
            return LossCall([*heard])
        others = [f"{name}, negative {k}" for k in negatives for name in names]
        return LossCall([anchor, torch.cat(list(heard[1:]))], ids=(names, names + others))

    def _suggest_towers(self) -> None:
        if self.watch.settings.towers is None:
            text = N_(
                "The loss compares the rows of two encoders, which are recorded as two views: watch(..., towers=(...)) "
                "records them as two towers."
            )
            self.watch.omissions.remark(text)


@contextmanager
def _listening(criterion: Any) -> Iterator[list[Tensor]]:
    """The sentence embeddings (n, d) that the model of a loss gives meanwhile, a column each."""
    heard: list[Tensor] = []
    model = getattr(criterion, "model", None)
    if not isinstance(model, nn.Module) or not is_grad_enabled():
        yield heard
        return

    def listen(module: nn.Module, args: Any, output: Any) -> None:
        rows = output.get("sentence_embedding") if isinstance(output, Mapping) else None
        if isinstance(rows, Tensor) and rows.ndim == 2 and rows.requires_grad:
            heard.append(rows.detach())

    hook = model.register_forward_hook(listen)
    try:
        yield heard
    finally:
        hook.remove()


def _number(value: Any) -> Tensor | None:
    """The loss of the batch that a call gave; open_clip's may be in a dictionary."""
    if isinstance(value, Mapping):
        value = value.get("contrastive_loss")
    return value if isinstance(value, Tensor) and value.ndim == 0 else None


def _call_of(criterion: Callable[..., Any], arguments: Mapping[str, Any], are_towers: bool) -> LossCall:
    """The rows of a call of a loss, and what goes along. Raises ValueError if it has no rows."""
    tensors = [v for v in arguments.values() if isinstance(v, Tensor)]
    rows = [v for v in tensors if v.ndim in (2, 3) and v.is_floating_point()]
    if not rows:
        raise ValueError(N_("the loss was called without rows (n, d)"))
    first, views = rows[0], rows[:1]
    if arguments.get("ref_labels") is None and first.ndim == 2:  # else another batch, or a memory, no other view
        views = [v for v in rows if v.shape == first.shape or (are_towers and v.shape[1:] == first.shape[1:])]
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
