"""Find the loss of this library that matches the loss module of another one: `watch("my-run", loss=criterion)`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

from contrastive_core import losses
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs
from contrastive_core.losses import Loss


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
