"""Compute a recorded step's loss, per row and as figures, on the CPU in the recorder's thread. It uses float64 and the
losses' own dense formula, so nothing depends on the precision and threads of the training.

Embedding a fixed probe set during training changes no later result: the random generators of torch, NumPy and Python
and the modes of the modules are restored."""

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import RandomSampler

from contrastive_core import pairs as builders
from contrastive_core.base.errors import CannotScore, UnusableEmbedding
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knobs_of
from contrastive_core.compare.towers import modality_gap, retrieval
from contrastive_core.losses import Loss
from contrastive_core.metrics import create
from contrastive_core.metrics.knn import leave_one_out
from contrastive_core.ops.similarity import compare
from contrastive_core.pairs import Pairs
from contrastive_core.pairs.types import describe
from contrastive_core.recording.steps import RecordedBatch, to_numpy
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.towers import Towers

SCORES = 1 << 21  # of anchors with candidates that are held at once: 16 MB in float64
WHOLE = 1024  # rows of a loss that needs all of a batch
SPREAD = 1024  # images that the figures of the embedding are taken of
AGAIN = 32  # samples of a probe set that are embedded twice
QUERIES = 1024  # of a step whose partner is looked for, each among all rows of the other tower


def measure(batch: RecordedBatch, loss: Loss | None, positives: str, rows: int) -> tuple[np.ndarray, dict[str, float]]:
    """Return the loss of each row (n) of a step, NaN if it was not computed or is undefined, and figures by name.

    `loss` is Σ w·L / Σ w. `effective_negatives` and `negatives` are means over the anchors with a loss. `grad_positive`
    and `grad_negative` are the mean gradient lengths that an anchor's own loss gives it through its positives and
    negatives. In large batches about `rows` anchors are used, each compared with all candidates. Raises ValueError if
    the loss cannot use these rows."""
    values = _spread_figures(batch)
    per_row = np.full(len(batch), np.nan)
    if loss is not None:
        every, at = pairs_of(batch, loss, positives)
        loss, every = with_learned(batch, loss, every)
        if loss.needs_whole_batch and len(every) > WHOLE:
            raise CannotScore("{title} is not computed above {whole} rows", title=loss.card.title, whole=WHOLE)
        if len(every) * every.width > SCORES and not loss.needs_whole_batch:
            chosen = np.linspace(0, len(every) - 1, min(rows, len(every))).round().astype(np.int64)
            every, at = every.take_anchors(torch.from_numpy(chosen)), at[chosen]
        per_row[at], figures = _of_anchors(every, loss)
        values |= figures
    if batch.losses is not None:
        per_row = batch.losses
        defined = per_row[np.isfinite(per_row)]
        if len(defined):
            values["loss" if loss is None else "caller_loss"] = float(defined.mean())
    learned = {"temperature": batch.temperature, "bias": batch.bias}
    return per_row, values | {name: value for name, value in learned.items() if value is not None}


def with_learned(batch: RecordedBatch, loss: Loss, pairs: Pairs) -> tuple[Loss, Pairs]:
    """Return loss and pairs with the batch's learned τ and bias, if the loss has them."""
    knobs = knobs_of(type(loss))
    if batch.temperature is not None and "temperature" in knobs:
        loss = loss.at_temperature(batch.temperature)
    if batch.bias is not None and "bias" in knobs:
        pairs = loss.with_bias(pairs, pairs.anchors.new_tensor(batch.bias))
    return loss, pairs


def pairs_of(batch: RecordedBatch, loss: Loss, positives: str) -> tuple[Pairs, np.ndarray]:
    """Return the pairs of a batch and the indices (n) of the anchors. With two towers, rows of both (with "keys": of
    the first only) are compared with rows of the other. Raises ValueError if no row has a positive."""
    if batch.is_of_towers:
        sides = [np.flatnonzero(batch.view == tower) for tower in (0, 1)]
        a, b = (batch.z[torch.from_numpy(side)] for side in sides)
        group_a, group_b = (torch.from_numpy(batch.image[side]) for side in sides)
        pairs = builders.from_towers(a, b, group_a, group_b, "a_to_b" if positives == "keys" else "both")
        return pairs, np.concatenate(sides)[: len(pairs)]
    if batch.queue is not None or positives == "keys":  # first views against the second ones, and the queue
        first, second = np.flatnonzero(batch.view == 0), np.flatnonzero(batch.view == 1)
        if len(first) != len(second):
            raise ValueError(N_("queries and keys need two views of each image"))
        q, k = batch.z[torch.from_numpy(first)], batch.z[torch.from_numpy(second)]
        if batch.queue is not None:
            return builders.from_queue(q, k, batch.queue), first
        own = torch.arange(len(q))
        return builders.from_labels(q, own, ref=k, ref_labels=own), first
    if positives == "auto":
        by_label = batch.has_labels and (loss.card.by_label or not batch.has_views)
        positives = "labels" if by_label else "views"
    if positives == "views" and not batch.has_views:
        raise ValueError(N_("its rows have no views and no labels, so no row has a positive"))
    if positives == "labels" and not batch.has_labels:
        raise ValueError(N_("its rows have no labels to pair them by"))
    groups = torch.from_numpy(batch.labels if positives == "labels" else batch.image)
    view = torch.from_numpy(batch.view)
    pairs = builders.from_labels(batch.z, groups)
    return replace(pairs, anchor_views=view, candidate_views=view), np.arange(len(batch))


def _of_anchors(pairs: Pairs, loss: Loss) -> tuple[np.ndarray, dict[str, float]]:
    """Return the loss of each anchor, NaN if it is undefined, and figures by name."""
    if problem := loss.check(pairs):
        raise ValueError(problem)
    with torch.no_grad():
        unit = loss.rows(pairs)
        scores, masks = compare(unit, loss.score), unit.masks()
    with torch.enable_grad():
        leaf = scores.requires_grad_()
        value, weight = loss.per_anchor(leaf, masks, unit)
        if (balance := unit.tower_weight()) is not None:
            weight = weight * balance
        defined = weight > 0
        total = torch.where(defined, value, 0.0).sum()
        grad = torch.autograd.grad(total, leaf, allow_unused=True)[0] if total.requires_grad else None
    value = value.detach()
    values: dict[str, float] = {"n_valid": int(defined.sum())}
    if not values["n_valid"]:
        return np.full(len(pairs), np.nan), values
    values["loss"] = float((weight * torch.where(defined, value, 0.0)).sum() / weight.sum())
    values["negatives"] = float(masks.negative.sum(1)[defined].double().mean())
    details = loss.details(scores.detach(), masks, unit)
    if "effective_negatives" in details:
        values["effective_negatives"] = float(details["effective_negatives"][defined].mean())
    if grad is not None:
        values["active_negatives"] = float(((grad != 0) & masks.negative).sum(1)[defined].double().mean())
        for name, mask in (("grad_positive", masks.positive), ("grad_negative", masks.negative)):
            with torch.enable_grad():  # at the anchors before their normalization
                leaf = pairs.anchors.detach().clone().requires_grad_()
                anchors = loss.rows(pairs.with_rows(leaf, pairs.candidates.detach())).anchors
                scores = compare(unit.with_rows(anchors, unit.candidates.detach()), loss.score)
                (force,) = torch.autograd.grad((scores * torch.where(mask, grad, 0.0)).sum(), leaf)
            values[name] = float(force.norm(dim=1).mean())
    return torch.where(defined, value, torch.nan).numpy(), values


def _spread_figures(batch: RecordedBatch) -> dict[str, float]:
    """Compute alignment, uniformity, RankMe and leave-one-out kNN accuracy on one row of each image, where defined; for
    two towers also recall@1 in both directions, with at most QUERIES rows each, and the modality gap."""
    first = batch.take(batch.view == 0)
    if len(first) > SPREAD:
        kept = np.linspace(0, len(first) - 1, SPREAD).round().astype(np.int64)
        first = first.take(np.isin(np.arange(len(first)), kept))
    views, mask = None, np.isin(batch.image, first.image)
    counts = np.unique(batch.image[mask], return_counts=True)[1]
    is_even = counts[0] > 1 and (counts == counts[0]).all()
    if is_even and not (batch.is_of_towers and len(counts) < len(first)):  # several rows of one tower are no views
        order = np.lexsort((batch.view[mask], batch.image[mask]))
        views = batch.take(mask).z.float().numpy()[order].reshape(len(counts), counts[0], -1)
    rows = EmbeddingSet(first.z.float().numpy(), first.labels if first.has_labels else None, views=views)
    values = scores_of(rows, "alignment", "uniformity", "rankme")
    if batch.is_of_towers:
        sides = [np.flatnonzero(batch.view == tower) for tower in (0, 1)]
        shared = np.isin(batch.image, batch.shared_groups())
        groups = [np.where(shared[at], batch.image[at], -1) for at in sides]
        towers = Towers(EmbeddingSet(batch.z.float().numpy()), sides[0], sides[1], groups[0], groups[1], ("a", "b"))
        for name, reverse in (("recall_1_forth", False), ("recall_1_back", True)):
            with contextlib.suppress(CannotScore):
                values[name] = retrieval(towers, reverse, most=QUERIES).recall(1).value
        with contextlib.suppress(CannotScore):
            values["modality_gap"] = modality_gap(towers)
    return values


def scores_of(rows: EmbeddingSet, *names: str) -> dict[str, float]:
    """Return the named metrics that are defined, and the leave-one-out kNN accuracy as "knn"."""
    values: dict[str, float | None] = {}
    for name in names:
        with contextlib.suppress(CannotScore):
            values[name] = create(name)(None, rows, Graphs("cpu")).value
    values["knn"] = leave_one_out(rows, "cpu") if len(rows) > 2 else None
    return {name: value for name, value in values.items() if value is not None}


# --- the probe set ---

MOST = 2000  # samples, as many as of our own runs
UNFOLLOWED = N_(
    "the probe's loader shuffles and returns no ids, so its samples cannot be followed; set shuffle=False or return ids"
)
LABELS, IDS = ("labels", "label", "y"), ("ids", "id", "index", "idx")


@dataclass(frozen=True, eq=False)
class ProbeCopy:
    """The embedding of the probe set at a step, with labels and ids of its samples."""

    step: int
    h: np.ndarray  # (n, d)
    z: np.ndarray  # (n, e)
    labels: np.ndarray  # (n), −1 where there is none
    ids: np.ndarray  # (n) texts
    cosine_again: float = 1.0  # mean, of some rows with the same ones, embedded again


def embed_probe(step: int, encode: Callable[[Any], Any], loader: Iterable[Any], model: nn.Module | None) -> ProbeCopy:
    """Embed at most 2,000 samples as h and z. Raises ValueError without rows, or if samples cannot be followed."""
    if isinstance(encode, DistributedDataParallel):
        encode = encode.module  # on one process alone it would wait for the others
    owner = encode if isinstance(encode, nn.Module) else getattr(encode, "__self__", None)
    modules = [m for m in (model, owner) if isinstance(m, nn.Module)]
    h, z = list[np.ndarray](), list[np.ndarray]()
    labels, ids, cosine = list[Any](), list[Any](), 1.0
    with _without_trace(modules), torch.no_grad():
        for batch in loader:
            inputs, label, name = parts_of(batch)
            rows = encode(inputs)
            first, second = rows if isinstance(rows, tuple) else (rows, rows)
            for rows, kept in ((first, h), (second, z)):
                if not isinstance(rows, Tensor) or rows.ndim != 2:
                    raise UnusableEmbedding("encode must give rows (n, d), or (h, z); got {rows}", rows=describe(rows))
                kept.append(rows.detach().float().cpu().numpy())
            labels.append(label)
            ids.append(name)
            if len(z) == 1:  # dropout and batch normalization in training mode change a smaller batch
                with contextlib.suppress(Exception):  # the encoder may not take it
                    rows = encode(inputs[:AGAIN] if isinstance(inputs, Tensor) else inputs)
                    rows = rows[1] if isinstance(rows, tuple) else rows
                    again = torch.nn.functional.cosine_similarity(rows.double(), second[: len(rows)].double())
                    cosine = float(again.mean())
            if sum(map(len, z)) >= MOST:
                break
    if not z:
        raise ValueError(N_("the probe's loader returns no batches"))
    names, known = _together(ids, np.str_), _together(labels, np.int64)
    if names is None and isinstance(getattr(loader, "sampler", None), RandomSampler):
        raise ValueError(UNFOLLOWED)
    n = min(MOST, sum(map(len, z)))
    names = np.arange(n).astype(np.str_) if names is None else names[:n]
    known = np.full(n, -1) if known is None else np.maximum(known[:n], -1)
    return ProbeCopy(
        step=step, h=np.concatenate(h)[:n], z=np.concatenate(z)[:n], labels=known, ids=names, cosine_again=cosine
    )


def parts_of(batch: Any) -> tuple[Any, Any, Any]:
    """Return input, labels and ids of a batch: a tensor, (x, labels, ids), or a mapping."""
    if isinstance(batch, Mapping):
        label, name = (next((batch[k] for k in keys if k in batch), None) for keys in (LABELS, IDS))
        return batch, label, name
    if isinstance(batch, (tuple, list)) and batch:
        more = [*batch[1:3], None, None]
        return batch[0], more[0], more[1]
    return batch, None, None


def _together(parts: list[Any], dtype: Any) -> np.ndarray | None:
    """Concatenate the labels or ids of all batches; None if one batch has none that can be used."""
    if any(part is None for part in parts):
        return None
    arrays = [np.asarray(to_numpy(part)) for part in parts]
    if any(a.ndim != 1 or (dtype is np.int64 and a.dtype.kind not in "iub") for a in arrays):
        return None
    return np.concatenate([a.astype(dtype) for a in arrays])


@contextmanager
def _without_trace(modules: list[nn.Module]) -> Iterator[None]:
    """Switch modules to evaluation mode inside, then restore their modes and the global random generators."""
    before = {part: part.training for module in modules for part in module.modules()}
    python, array = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()):
        try:
            for module in modules:
                module.eval()
            yield
        finally:
            random.setstate(python)
            np.random.set_state(array)
            for part, training in before.items():
                part.training = training
