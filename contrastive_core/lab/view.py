"""The loss on a batch of the Loss Lab: which rows are compared, with the resulting loss and gradients."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from contrastive_core import losses, pairs
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.registry import KnobEntry, Knobs, LossEntry
from contrastive_core.lab.lab_view import MOST_DIMENSIONS, PAIRINGS, LabBatch, LabView, TowerBatch, Trade
from contrastive_core.losses import Anatomy
from contrastive_core.losses._two_views import TwoViewLoss

TEMPERATURES = tuple(float(f"{t:.3g}") for t in np.geomspace(0.02, 2.0, 25))


class Compared(NamedTuple):
    """Pairs, with the thumbnails and names of anchors and candidates; `columns` selects the displayed candidates, and
    `words` holds a view's texts and towers."""

    pairs: Any
    row_thumbs: list[int]
    column_thumbs: list[int]
    names: Sequence[str]
    column_names: Sequence[str]
    columns: slice = slice(None)
    words: dict[str, Any] | None = None


def compute_view(batch: LabBatch | TowerBatch, pairing: str, loss: str, knobs: Knobs) -> LabView:
    """Compute the scores, weights and gradients of a loss on a batch. Raises ValueError for unsuitable pairs.

    Args: pairing: one of PAIRINGS; for two towers one of DIRECTIONS."""
    criterion = losses.create(loss, **knobs)
    compared = _across(batch, pairing) if isinstance(batch, TowerBatch) else _related(batch, pairing)
    anatomy, shown = criterion.anatomy(compared.pairs), compared.columns
    score_name = anatomy.score_kind.replace("_", " ")
    if anatomy.score_kind == "dot":
        score_name = N_("cosine similarity") if criterion.normalize else N_("similarity")
    mask = torch.zeros(anatomy.scores.shape, dtype=torch.uint8)
    for number, part in enumerate((anatomy.positive, anatomy.negative, anatomy.self_pair), 1):
        mask[part] = number
    reason, views = "" if anatomy.output.n_valid else _why_undefined(anatomy, batch, pairing), None
    if isinstance(criterion, TwoViewLoss) and isinstance(batch, LabBatch) and not reason:
        terms = {name: v for name, v in anatomy.extras.items() if torch.is_tensor(v) and v.ndim == 0}
        reason = message(
            "{title} compares dimensions over the batch and puts no weight on pairs. "
            "Its value on this batch is {value} ({parts}).",
            title=criterion.card.title,
            value=f"{float(anatomy.output.value):.4g}",
            parts=", ".join(f"{name.replace('_', ' ')} {value.item():.3g}" for name, value in terms.items()),
        )
        if criterion.card.matrix and (d := batch.rows.shape[2]) <= MOST_DIMENSIONS:
            views = np.ascontiguousarray(batch.rows[:, :2], np.float32)
        elif criterion.card.matrix:
            wide = N_("The view of dimensions takes at most {most}, and these vectors have {d}.")
            reason = join(" ", [reason, message(wide, most=f"{MOST_DIMENSIONS:,}", d=f"{d:,}")])
    return LabView(
        scores=np.ascontiguousarray(anatomy.scores.float()[:, shown]),
        mask=np.ascontiguousarray(mask[:, shown]),
        kernel=criterion.kernel(),
        row_thumbs=compared.row_thumbs,
        column_thumbs=compared.column_thumbs,
        names=compared.names,
        column_names=compared.column_names,
        score_name=score_name,
        value=float(anatomy.output.value),
        n_valid=anatomy.output.n_valid,
        per_anchor=anatomy.output.per_anchor.numpy(),
        weight=np.ascontiguousarray(anatomy.weight[:, shown]),
        grad=np.ascontiguousarray(anatomy.grad_scores[:, shown]),
        extras={k: v.numpy() if hasattr(v, "numpy") else v for k, v in anatomy.extras.items()},
        reason=reason,
        note=batch.note,
        views=views,
        **(compared.words or {}),
    )


def _across(batch: TowerBatch, direction: str) -> Compared:
    """Compare rows of one tower as anchors with rows of the other as candidates."""
    anchors, candidates = batch.sides(direction)
    a, b = (torch.from_numpy(np.ascontiguousarray(tower.rows, np.float32)) for tower in (batch.a, batch.b))
    groups_a, groups_b = (torch.from_numpy(tower.groups.astype(np.int64)) for tower in (batch.a, batch.b))
    texts, column_texts = (tower.texts if any(tower.texts) else () for tower in (anchors, candidates))
    row, column = batch.given.T if direction == "a_to_b" else batch.given.T[::-1]
    return Compared(
        pairs=pairs.from_towers(a, b, groups_a, groups_b, direction),
        row_thumbs=anchors.thumbs,
        column_thumbs=candidates.thumbs,
        names=anchors.names,
        column_names=candidates.names,
        columns=slice(len(a), None) if direction == "a_to_b" else slice(len(a)),
        words={
            "towers": [anchors.title, candidates.title],
            "texts": texts,
            "column_texts": column_texts,
            "given": (row * len(candidates.names) + column).tolist(),
        },
    )


def _related(batch: LabBatch, pairing: str) -> Compared:
    """Compare rows of one encoder according to the pairing: queries with keys and a memory, or all rows with all."""
    if pairing not in PAIRINGS:
        text = N_("pairing must be one of {pairings}; got {pairing}")
        raise ValueError(message(text, pairings=", ".join(PAIRINGS), pairing=repr(pairing)))
    z, memory = torch.from_numpy(batch.rows), batch.memory  # (b, v, d)
    b, v, _ = z.shape
    every = list(range(b * v))
    names = [batch.name(row) for row in every]
    if pairing in ("views", "classes"):
        made = pairs.from_views(z, torch.from_numpy(batch.labels) if pairing == "classes" else None)
        return _of_rows(batch, made, every, every, names)
    if v < 2:
        text = N_(
            "A query and a key need two views of each sample, but there is only one. Compare rows of one class instead."
        )
        raise ValueError(text)
    q, k, keys = z[:, 0], z[:, 1], every[1::v]
    if memory is None:
        queries = torch.arange(0, b, 4)  # every fourth image is a query, so each class has some
        rows = [i * v for i in queries.tolist()]
        if pairing == "bank":
            return _of_rows(batch, pairs.from_bank(q[queries], queries, k), rows, keys, names)
        queued = [i for i in range(b) if i % 4]  # the keys of the others form the queue
        columns = [keys[i] for i in [*queries.tolist(), *queued]]
        return _of_rows(batch, pairs.from_queue(q[queries], k[queries], k[queued]), rows, columns, names)
    stored, queried = torch.from_numpy(memory.rows), names[::v]
    thumbs = [-1] * len(stored) if memory.thumbs is None else [b * v + i for i in range(len(stored))]
    if pairing == "queue":
        key_names = [names[key] for key in keys]
        return Compared(pairs.from_queue(q, k, stored), every[::v], keys + thumbs, queried, [*key_names, *memory.names])
    assert memory.query_slots is not None  # a bank has a slot for each query
    bank = pairs.from_bank(q, torch.from_numpy(memory.query_slots), stored, log_z=memory.log_z)
    return Compared(replace(bank, population=memory.size), every[::v], thumbs, queried, memory.names)


def _of_rows(batch: LabBatch, made: Any, rows: list[int], columns: list[int], names: list[str]) -> Compared:
    """Return the comparison of rows of the batch (image-major numbers), with their texts if it has any."""
    said = [text for text in batch.texts for _ in range(batch.rows.shape[1])]
    words = {"texts": [said[i] for i in rows], "column_texts": [said[j] for j in columns]} if said else {}
    return Compared(made, rows, columns, [names[i] for i in rows], [names[j] for j in columns], words=words)


def _why_undefined(anatomy: Anatomy, batch: LabBatch | TowerBatch, pairing: str) -> str:
    if isinstance(batch, TowerBatch):
        return N_("No row has a negative here: all rows belong together. Choose more rows of each tower.")
    if not bool(anatomy.positive.any()):
        reason = message("No anchor has a positive in this batch, so the loss is undefined for all of them. ")
        if pairing == "views" and batch.rows.shape[1] == 1:
            return reason + N_("There is one view of each sample; compare rows of one class instead.")
        if pairing == "classes" and (batch.labels < 0).all():
            return reason + N_("These rows have no labels.")
        return reason + N_("Choose a larger batch.")
    if len(batch.rows) == 1 and batch.rows.shape[1] > 1:
        return N_("With one image, no dimension varies. Choose at least two images.")
    if not bool(anatomy.negative.any()):
        return N_("No anchor has a negative in this batch: all rows are positives of each other.")
    return N_("The loss is undefined for every anchor of this batch.")


def trade(
    scores: np.ndarray,
    negative: np.ndarray,
    same_class: np.ndarray | None,
    temperatures: tuple[float, ...] = TEMPERATURES,
) -> list[Trade]:
    """Compute the trade-off between temperatures on a batch, from the softmax over negatives: a low τ pushes mainly the
    nearest rows, which increases uniformity but separates similar rows (low tolerance); a high τ pushes all equally
    (Wang and Liu, https://arxiv.org/abs/2012.09740). Raises ValueError if no anchor has a negative.

    Args: scores (n, w) similarities; negative (n, w) bool; same_class (n, w) bool, or None without labels."""
    from scipy.special import entr, softmax

    anchors = negative.any(1)
    if not anchors.any():
        raise ValueError(N_("no anchor of this batch has a negative"))
    s = np.where(negative, scores.astype(np.float64), -np.inf)[anchors]  # (m, w)
    count = negative[anchors].sum(1)  # (m)
    found = []
    for t in temperatures:
        p = softmax(s / t, axis=1)
        entropy = entr(p).sum(1)
        own = None if same_class is None else float((p * same_class[anchors]).sum(1).mean())
        found.append(Trade(t, float((np.exp(entropy) / count).mean()), own, float(p.max(1).mean())))
    return found


def about_loss(loss: str, knobs: Knobs | None = None) -> LossEntry:
    """Describe a loss for the live view: its catalog entry with the `values` of its settings. Raises ValueError."""
    criterion, registered = losses.create(loss, **(knobs or {})), losses.knobs(loss)
    return LossEntry(
        title=criterion.card.title,
        score=criterion.score,
        kernel=criterion.kernel(),
        knobs={name: KnobEntry(**asdict(knob)) for name, knob in registered.items()},  # type: ignore[typeddict-item]
        values={name: getattr(criterion, name) for name in registered},
    )
