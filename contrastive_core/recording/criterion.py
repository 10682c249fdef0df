"""Loss modules of other libraries: which loss of this library matches one (`watch("my-run", loss=criterion)`), and
`w.wrap(criterion)`, which records each of its training calls as a step.

`CRITERIONS` lists the call signatures of known losses. Tested in real loops of lightly 1.6 (`NTXentLoss`,
`NegativeCosineSimilarity`, with a memory bank as the queue), pytorch-metric-learning 2.9 (`SupConLoss`,
`SelfSupervisedLoss`) and sentence-transformers 6."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
            raise TypeError(
                message("watch() got {map} without a loss that has this parameter", map=", ".join(map(repr, knobs)))
            )
        return None


def declaration_of(loss: Any) -> Declaration:
    """Return the declaration of a loss name, None, or a loss module of lightly, pytorch-metric-learning, open_clip or
    sentence-transformers, with its τ."""
    if loss is None or isinstance(loss, str):
        return Declaration(loss)
    remark = N_("The loss is not checked: Contrastive Lab has no equivalent loss.")
    return _of_module(loss) or Declaration(None, remark=remark)


def _of_module(criterion: Any) -> Declaration | None:
    library, name = type(criterion).__module__.partition(".")[0], type(criterion).__name__
    if library == "lightly" and name == "NTXentLoss":
        size = getattr(criterion, "memory_bank", criterion).size  # 0, rows, or (rows, width)
        is_of_queue = bool(size if isinstance(size, int) else size[0])
        return Declaration("info_nce" if is_of_queue else "nt_xent", {"temperature": criterion.temperature})
    if library == "lightly" and name == "BarlowTwinsLoss":
        return Declaration("barlow_twins", {"off_diagonal": criterion.lambda_param})
    if library == "pytorch_metric_learning":
        return _of_metric_learning(criterion, name)
    if library == "open_clip" and name in ("ClipLoss", "SigLipLoss"):
        normalized = {"critic": "cosine"} if name == "ClipLoss" else {"normalize": True}
        return Declaration("info_nce" if name == "ClipLoss" else "siglip", normalized, towers=("image", "text"))
    if library == "sentence_transformers" and name.startswith("MultipleNegatives"):
        return _of_ranking(criterion)
    return None


def _of_metric_learning(criterion: Any, name: str) -> Declaration | None:
    inner = criterion.loss if (is_of_views := name == "SelfSupervisedLoss") else criterion
    kind, distance = type(inner).__name__, getattr(inner, "distance", None)
    is_cosine = type(distance).__name__ == "CosineSimilarity"
    if kind not in (("NTXentLoss", "SupConLoss") if is_of_views else ("SupConLoss",)) or not is_cosine:
        return None
    settings = {"temperature": inner.temperature}
    if not is_of_views:
        return Declaration("sup_con", settings, "labels")
    return (
        Declaration("nt_xent", settings, "views") if criterion.symmetric else Declaration("info_nce", settings, "keys")
    )


def _of_ranking(criterion: Any) -> Declaration | None:
    directions = set(getattr(criterion, "directions", ("query_to_doc",)))
    is_both = directions == {"query_to_doc", "doc_to_query"} and criterion.partition_mode == "per_direction"
    critics = {"cos_sim": "cosine", "dot_score": "dot"}
    critic = critics.get(getattr(criterion.similarity_fct, "__name__", ""))
    if getattr(criterion, "hardness_mode", None) or critic is None or not (is_both or directions == {"query_to_doc"}):
        return None
    settings = {"temperature": 1 / criterion.scale, "critic": critic}
    return Declaration("info_nce", settings, "auto" if is_both else "keys", ("anchor", "candidate"))


class Criterion(NamedTuple):
    """Losses with the same call signature. Without `rows`, floating-point arguments of one shape are views, and whole
    numbers (n) are labels."""

    classes: str
    rows: tuple[str, ...]  # the arguments that hold them, which also tell these losses from others
    temperature: tuple[str, ...]  # names of a learned τ, a parameter of the loss; or of an argument that holds 1/τ
    is_scale: bool = False  # it is an argument with 1/τ
    encodes: bool = False  # the model of the loss makes the rows


CRITERIONS = (  # the first whose arguments the call has
    Criterion("open_clip's ClipLoss, SigLipLoss", ("image_features", "text_features"), ("logit_scale",), is_scale=True),
    Criterion("losses of sentence-transformers", ("sentence_features",), (), encodes=True),
    Criterion("lightly, pytorch-metric-learning, others", (), ("temperature", "tau")),
)


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
        if not is_grad_enabled():
            return self.criterion(*args, **kwargs)
        keys = getattr(getattr(self.criterion, "memory_bank", None), "bank", None)  # (k, d), lightly's
        queue = keys.detach() if isinstance(keys, Tensor) and keys.ndim == 2 and keys.numel() else None
        if queue is not None and self.watch.records_next:
            queue = queue.clone()  # before the loss pushes its own keys into it
        with _sentence_embeddings(self.criterion) as encoded:
            value = self.criterion(*args, **kwargs)
        try:
            call = self._read(_arguments_by_name(self.criterion, args, kwargs), encoded, watch_ids)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return value
        if watch_labels is not None:
            call["labels"] = watch_labels
        loss = value.get("contrastive_loss") if isinstance(value, Mapping) else value  # open_clip's dictionary
        is_number = isinstance(loss, Tensor) and loss.ndim == 0
        self.watch.step(*call.pop("views"), queue=queue, caller_loss=loss if is_number else None, **call)
        return value

    def _read(self, arguments: Mapping[str, object], encoded: Sequence[Tensor], ids: Any) -> dict[str, Any]:
        """Return the arguments of `Watch.step`, views included, from those of a call. Raises ValueError without
        rows."""
        kind = next(kind for kind in CRITERIONS if arguments.keys() >= {*kind.rows})
        values = [v for value in arguments.values() for v in (value if isinstance(value, tuple) else (value,))]
        tensors, are_towers = [v for v in values if isinstance(v, Tensor)], self.watch.settings.towers is not None
        call: dict[str, Any] = {"ids": ids}
        if kind.encodes:
            n, candidates = len(encoded[0]) if encoded else 0, tuple(encoded[1:])
            columns = sum(map(len, candidates)) // max(n, 1)  # the library may encode several at once
            views: list[Any] = [*encoded[:1], *(z[:n] if len(z) > n else z for z in candidates[:1])]
            if are_towers and columns > 1:  # the positives, and negatives of no anchor
                own = [str(i) for i in to_numpy(range(n) if ids is None else ids).tolist()]
                others = [f"{name}, negative {k}" for k in range(1, columns) for name in own]
                views, call["ids"] = [encoded[0], candidates], (own, own + others)
        elif kind.rows:
            views, call["bias"] = [arguments[name] for name in kind.rows], arguments.get("logit_bias")
        else:
            rows = [v for v in tensors if v.ndim in (2, 3) and v.is_floating_point()]
            has_reference = arguments.get("ref_labels") is not None  # another batch, or a memory; not another view
            views = rows[:1]
            if rows and rows[0].ndim == 2 and not has_reference:
                shape = rows[0].shape
                views = [v for v in rows if v.shape == shape or (are_towers and v.shape[1:] == shape[1:])]
            if has_reference:
                text = N_("Reference rows (ref_emb), which a loss compares with its batch, are not recorded.")
                self.watch.omissions.remark(text)
        if not views:
            raise ValueError(N_("the loss was called without rows (n, d)"))
        if len(views) == 1 or not kind.rows:
            whole = [v for v in tensors if v.ndim == 1 and not v.is_floating_point() and len(v) == len(views[0])]
            call["labels"] = whole[0] if whole else None
        elif not are_towers:
            text = N_(
                "The loss compares the rows of two encoders, which are recorded as two views: watch(..., towers=(...)) "
                "records them as two towers."
            )
            self.watch.omissions.remark(text)
        for name in kind.temperature:
            tau = arguments.get(name) if kind.is_scale else getattr(self.criterion, name, None)
            if kind.is_scale and tau is not None:
                call["temperature"] = 1 / torch.as_tensor(tau).detach()
            elif isinstance(tau, nn.Parameter) and tau.numel() == 1:
                call.setdefault("temperature", tau)
        return {**call, "views": views}


@contextmanager
def _sentence_embeddings(criterion: Any) -> Iterator[list[Tensor]]:
    """Collect the sentence embeddings (n, d) computed by the loss's model; a tensor may join several columns."""
    encoded: list[Tensor] = []
    model = getattr(criterion, "model", None)
    if not isinstance(model, nn.Module):
        yield encoded
        return

    def listen(module: nn.Module, args: Any, output: Any) -> None:
        rows = output.get("sentence_embedding") if isinstance(output, Mapping) else None
        if isinstance(rows, Tensor) and rows.ndim == 2 and rows.requires_grad:
            encoded.append(rows)

    hook = model.register_forward_hook(listen)
    try:
        yield encoded
    finally:
        hook.remove()


def _arguments_by_name(
    criterion: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> dict[str, object]:
    try:
        bound = inspect.signature(getattr(criterion, "forward", criterion)).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {"args": args, **kwargs}
    named: dict[str, object] = {}
    for name, value in bound.items():
        named |= value if isinstance(value, dict) else {name: value}
    return named
