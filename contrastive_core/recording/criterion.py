"""Loss modules of other libraries: which loss of this library matches one (`watch("my-run", loss=criterion)`), and
`w.wrap(criterion)`, which records each of its training calls as a step.

Tested in real loops of lightly 1.6 (`NTXentLoss`, `NegativeCosineSimilarity`, with a memory bank as the queue),
pytorch-metric-learning 2.9 (`SupConLoss`, `SelfSupervisedLoss`) and sentence-transformers 6."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, is_grad_enabled, nn

from contrastive_core import losses
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs
from contrastive_core.losses import Loss
from contrastive_core.recording.steps import to_numpy

if TYPE_CHECKING:
    from contrastive_core.recording.watch import Watch

AS_VIEWS = N_(
    "The loss compares the rows of two encoders, which are recorded as two views: watch(..., towers=(...)) "
    "records them as two towers."
)


class Declaration(NamedTuple):
    """A loss as declared to `watch`: its name and settings. `name` is None if the library has no equivalent loss."""

    name: str | None
    settings: Knobs = MappingProxyType({})
    positives: str = "auto"
    towers: tuple[str, str] | None = None
    remark: str = ""

    def loss(self, knobs: Knobs) -> Loss | None:
        """Create the loss with changed settings. Raises UnknownName; ValueError; TypeError for settings but no loss."""
        if self.name:
            return losses.create(self.name, **{**self.settings, **knobs})
        if knobs:
            names = ", ".join(map(repr, knobs))
            raise TypeError(message("watch() got {names} without a loss that has this parameter", names=names))
        return None


def declaration_of(loss: Any) -> Declaration:
    """Return the declaration of a loss name, None, or a loss module of lightly, pytorch-metric-learning, open_clip or
    sentence-transformers, with its τ."""
    if loss is None or isinstance(loss, str):
        return Declaration(loss)
    match type(loss).__module__.partition(".")[0], type(loss).__name__:
        case "lightly", "NTXentLoss":
            size = getattr(loss, "memory_bank", loss).size  # 0, rows, or (rows, width)
            has_queue = bool(size if isinstance(size, int) else size[0])
            return Declaration("info_nce" if has_queue else "nt_xent", {"temperature": loss.temperature})
        case "lightly", "BarlowTwinsLoss":
            return Declaration("barlow_twins", {"off_diagonal": loss.lambda_param})
        case "open_clip", "ClipLoss":
            return Declaration("info_nce", {"critic": "cosine"}, towers=("image", "text"))
        case "open_clip", "SigLipLoss":
            return Declaration("siglip", {"normalize": True}, towers=("image", "text"))
        case "pytorch_metric_learning", kind:
            inner = loss.loss if kind == "SelfSupervisedLoss" else loss
            is_cosine = type(getattr(inner, "distance", None)).__name__ == "CosineSimilarity"
            if is_cosine and kind == "SupConLoss":
                return Declaration("sup_con", {"temperature": loss.temperature}, "labels")
            if is_cosine and kind == "SelfSupervisedLoss" and type(inner).__name__ in ("NTXentLoss", "SupConLoss"):
                name, positives = ("nt_xent", "views") if loss.symmetric else ("info_nce", "keys")
                return Declaration(name, {"temperature": inner.temperature}, positives)
        case "sentence_transformers", kind if kind.startswith("MultipleNegatives"):
            directions = set(getattr(loss, "directions", ("query_to_doc",)))
            is_both = directions == {"query_to_doc", "doc_to_query"} and loss.partition_mode == "per_direction"
            critics = {"cos_sim": "cosine", "dot_score": "dot"}
            critic = critics.get(getattr(loss.similarity_fct, "__name__", ""))
            is_plain = critic is not None and not getattr(loss, "hardness_mode", None)
            if is_plain and (is_both or directions == {"query_to_doc"}):
                settings = {"temperature": 1 / loss.scale, "critic": critic}
                return Declaration("info_nce", settings, "auto" if is_both else "keys", ("anchor", "candidate"))
    return Declaration(None, remark=N_("The loss is not checked: Contrastive Lab has no equivalent loss."))


class Wrapped(nn.Module):
    """A criterion with unchanged results whose calls are recorded as steps. `criterion(z0, z1, watch_ids=index,
    watch_labels=y)` passes values that the loss itself does not accept. Calls without gradients, as in validation, are
    not recorded."""

    watch: Watch

    def __init__(self, watch: Watch, criterion: Callable[..., Any]) -> None:
        super().__init__()
        self.criterion = criterion
        object.__setattr__(self, "watch", watch)  # no module, and not to be saved

    def forward(self, *args: Any, watch_ids: Any = None, watch_labels: Any = None, **kwargs: Any) -> Any:
        criterion = self.criterion
        if not is_grad_enabled():
            return criterion(*args, **kwargs)
        keys = getattr(getattr(criterion, "memory_bank", None), "bank", None)  # (k, d), lightly's
        queue = keys.detach() if isinstance(keys, Tensor) and keys.ndim == 2 and keys.numel() else None
        if queue is not None and self.watch.records_next:
            queue = queue.clone()  # before the loss pushes its own keys into it
        encoded: list[Tensor] = []  # sentence embeddings (n, d) that the loss's model computes

        def listen(module: nn.Module, args: Any, output: Any) -> None:
            rows = output.get("sentence_embedding") if isinstance(output, Mapping) else None
            if isinstance(rows, Tensor) and rows.ndim == 2 and rows.requires_grad:
                encoded.append(rows)

        model = getattr(criterion, "model", None)
        hook = model.register_forward_hook(listen) if isinstance(model, nn.Module) else None
        try:
            value = criterion(*args, **kwargs)
        finally:
            if hook is not None:
                hook.remove()
        try:
            given: dict[str, Any] = {"args": args, **kwargs}
            with suppress(TypeError, ValueError):  # it has no signature
                given = inspect.signature(getattr(criterion, "forward", criterion)).bind(*args, **kwargs).arguments
            arguments: dict[str, Any] = {}
            for name, part in given.items():
                arguments |= part if isinstance(part, dict) else {name: part}
            views, call = self._read(arguments, encoded, watch_ids)
            if not views:
                raise ValueError(N_("the loss was called without rows (n, d)"))
        except Exception as error:
            self.watch.on_error(error, "steps")
            return value
        if watch_labels is not None:
            call["labels"] = watch_labels
        loss = value.get("contrastive_loss") if isinstance(value, Mapping) else value  # open_clip's dictionary
        is_number = isinstance(loss, Tensor) and loss.ndim == 0
        self.watch.step(*views, queue=queue, caller_loss=loss if is_number else None, **call)
        return value

    def _read(self, arguments: Mapping[str, Any], encoded: list[Tensor], ids: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the views and the other arguments of `Watch.step` from those of a call."""
        are_towers, views = self.watch.settings.towers is not None, list[Any]()
        if arguments.keys() >= {"image_features", "text_features"}:  # open_clip
            if not are_towers:
                self.watch.omissions.remark(AS_VIEWS)
            call = {"ids": ids, "bias": arguments.get("logit_bias")}
            if (scale := arguments.get("logit_scale")) is not None:
                call["temperature"] = 1 / torch.as_tensor(scale).detach()
            return [arguments["image_features"], arguments["text_features"]], call
        values = [v for value in arguments.values() for v in (value if isinstance(value, tuple) else (value,))]
        tensors = [v for v in values if isinstance(v, Tensor)]
        if "sentence_features" in arguments:  # sentence-transformers: the model of the loss makes the rows
            n, candidates = len(encoded[0]) if encoded else 0, tuple(encoded[1:])
            columns = sum(map(len, candidates)) // max(n, 1)  # the library may encode several at once
            views = [*encoded[:1], *(z[:n] if len(z) > n else z for z in candidates[:1])]
            if are_towers and columns > 1:  # the positives, and negatives of no anchor
                own = [str(i) for i in to_numpy(range(n) if ids is None else ids).tolist()]
                others = [f"{name}, negative {k}" for k in range(1, columns) for name in own]
                views, ids = [encoded[0], candidates], (own, own + others)
        else:  # lightly, pytorch-metric-learning and others: floating-point arguments of one shape are views
            rows = [v for v in tensors if v.ndim in (2, 3) and v.is_floating_point()]
            views = rows[:1]
            if arguments.get("ref_labels") is not None:  # another batch, or a memory; not another view
                text = N_("Reference rows (ref_emb), which a loss compares with its batch, are not recorded.")
                self.watch.omissions.remark(text)
            elif rows and rows[0].ndim == 2:
                shape = rows[0].shape
                views = [v for v in rows if v.shape == shape or (are_towers and v.shape[1:] == shape[1:])]
        call = {"ids": ids}
        if len(views) > 1 and "sentence_features" in arguments:
            if not are_towers:
                self.watch.omissions.remark(AS_VIEWS)
        elif views:  # whole numbers (n) are labels
            whole = [v for v in tensors if v.ndim == 1 and not v.is_floating_point() and len(v) == len(views[0])]
            call["labels"] = whole[0] if whole else None
        for name in ("temperature", "tau"):  # a learned one
            tau = getattr(self.criterion, name, None)
            if isinstance(tau, nn.Parameter) and tau.numel() == 1:
                call.setdefault("temperature", tau)
        return views, call
