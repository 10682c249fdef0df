"""Rows for the Loss Lab: encoded views of real images, a snapshot, or loaded vectors. The encoder is frozen: settings
change only the loss on these rows.

The Loss Lab's memory is MoCo's queue or Inst Disc's bank. If the weights contain the run's own memory, it is used as
training left it. Shipped runs contain only encoder and head: then the memory is filled with encoded training images,
as in training."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_, join, message, printable, thousands
from contrastive_core.compare.embed import data_of, embed_run, load_model, untrained
from contrastive_core.data.augmentations import make_views, to_float
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.overrides import training_set
from contrastive_core.lab.lab_view import (
    EPOCH,
    SNAPSHOT,
    STEP,
    BatchRequest,
    LabBatch,
    LabTower,
    Memory,
    TowerBatch,
    images_of_batch,
    label_name,
)
from contrastive_core.methods._asymmetric import MomentumMethod
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import from_dict
from contrastive_core.spaces import recorded_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.recorded_rows import PROBE, Recorded
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import TEXT, Towers, towers_of, why_ordinary

# Rows (n, d) and pictures (n, c, h, w) uint8 of one augmented view of each of some images.
Encode = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Weights = Mapping[str, Tensor]  # by name; empty unless rows are the trained encoder's z
AT_ONCE = 500  # maximum images per forward pass if they are large
PER_QUERY = 3  # rows of a memory per query; a quarter of the columns are keys of the queries


def load_batch(run: Run, request: BatchRequest) -> LabBatch | TowerBatch:
    """Return the requested rows; those of two towers if a file has them. Raises ValueError if there are none."""
    source, rows, seed = request.source, request.images * request.views, request.seed
    if source.startswith("file:"):
        space = Space.of_vectors(source.removeprefix("file:"))
        try:
            vectors = space.rows()
        except FileNotFoundError:
            raise ValueError(N_("These vectors are no longer stored here. Open their file again.")) from None
        return _batch_of_space(space, vectors, rows, seed)
    if source == TOWERS:
        towers = towers_of(embed_run(run, request.split, TOWERS))
        assert towers is not None  # a run's layer of this name has two towers
        return _batch_of_towers(towers, Space.of_run(run, request.split, TOWERS).images(), rows, seed, only_a=True)
    if run.is_recording:
        return _batch_of_recording(run, request)
    in_training = request.memory or source.startswith(SNAPSHOT)
    split = "train" if in_training else request.split
    dataset = data_of(run, split)
    if split == "train":  # without samples that the run left out
        dataset = training_set(dataset, run.has_towers, run.config.get("exclude"), run.config.get("relabel"))
    if source.startswith(SNAPSHOT):
        return _batch_of_snapshot(run, source.removeprefix(SNAPSHOT), dataset, rows, seed)
    return _batch_of_images(run, request, dataset)


def _batch_of_images(run: Run, request: BatchRequest, dataset: Dataset) -> LabBatch:
    source, images, views, seed = request.source, request.images, request.views, request.seed
    rng = np.random.default_rng(seed)
    chosen, others = images_of_batch(np.asarray(dataset.labels), images, rng)
    epoch, is_z = source.removeprefix(EPOCH), source == "z" or source.startswith(EPOCH)
    weights = checkpoints.weights_after(run, "" if source == "z" else epoch) if is_z else None
    is_random = source == "random"
    method = untrained(from_dict(run.config), dataset) if is_random else load_model(run, dataset, weights=weights)
    method, weights = method.cpu(), weights or {}
    generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def encode(x: Tensor) -> Tensor:  # (n, c, h, w) to (n, d): h, z (encoder and head), or the pixels
        if source == "pixels":
            return x.flatten(1) - 0.5
        chunk = forward_batch_size(max(AT_ONCE, len(x)), x, method.encoder)  # small ones in one pass
        found = torch.cat([method.features(part) for part in x.split(chunk)])
        return found if source == "h" else method.project(found)

    def pictures(x: Tensor) -> np.ndarray:
        return np.asarray((x * 255).round().byte())

    def once(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raw = torch.from_numpy(np.array(dataset.images[rows]))
        x = make_views(raw, method.recipe, 1, generator)[:, 0]
        return encode(x).numpy(), pictures(x)

    raw = torch.from_numpy(np.array(dataset.images[chosen]))
    x = to_float(raw)[:, None] if views == 1 else make_views(raw, method.recipe, views, generator)
    rows = encode(x.flatten(0, 1)).reshape(len(chosen), views, -1).numpy()
    thumbs, memory = pictures(x.flatten(0, 1)), None
    if request.memory == "queue":
        size = int(run.config.get("method_knobs", {}).get("queue", len(others)))
        memory = _queue_of(weights, dataset, others, PER_QUERY * images, once, size, rng)
        if memory.thumbs is None:  # the run's own queue, so its own keys too
            assert isinstance(method, MomentumMethod)
            for part in ("key_encoder", "key_head"):
                getattr(method, part).load_state_dict(checkpoints.strip_prefix(weights, f"{part}."))
            rows[:, 1] = method.encode_keys(x[:, 1:2])[:, 0].numpy()
    elif request.memory == "bank":
        memory = _bank_of(weights, dataset, chosen, others[: PER_QUERY * images], once)
    if memory is not None and memory.thumbs is not None:
        thumbs = np.concatenate([thumbs, memory.thumbs])
    ids = [dataset.ids[i] for i in chosen]
    return LabBatch(rows, np.asarray(dataset.labels[chosen]), thumbs, dataset.classes, ids, memory)


def _queue_of(
    weights: Weights,
    dataset: Dataset,
    others: np.ndarray,
    count: int,
    encode: Encode,
    size: int,
    rng: np.random.Generator,
) -> Memory:
    """Return `count` keys of the run's queue, newest first, or of a queue made of `others`. `size`: its length K."""
    if enqueued := int(weights.get("queue.enqueued", 0)):
        size = len(weights["queue.rows"])
        filled = min(size, enqueued)  # the rest still holds initial values
        ages = 1 + np.sort(rng.permutation(filled)[:count])
        rows = weights["queue.rows"][(int(weights["queue.pointer"]) - ages) % size].numpy()
        note = message(
            "This is the run's own queue after training: {count} keys, key 1 the newest. Keys come from the run's key "
            "encoder. The images of old keys are unknown.",
            count=_of(len(ages), filled),
        )
        return Memory(rows, None, [message("queue key {age}", age=age) for age in ages], size, note)
    chosen = _by_class(dataset, others[: min(count, size)])
    rows, thumbs = encode(chosen)
    note = message(
        "{missing}. The queue is filled with other training images ({count} keys), each encoded once by this "
        "encoder, as during training.",
        missing=_missing(weights, N_("queue")),
        count=_of(len(chosen), size),
    )
    names = [message("key {index} ({label_name})", index=i, label_name=label_name(dataset, i)) for i in chosen.tolist()]
    return Memory(rows, thumbs, names, size, note)


def _bank_of(weights: Weights, dataset: Dataset, queries: np.ndarray, others: np.ndarray, encode: Encode) -> Memory:
    """Return the bank's slots of the queries and of other images, each by its row number in the training set: the run's
    own, or filled with their images."""
    slots = _by_class(dataset, np.concatenate([queries, others]))
    size, log_z = len(dataset), None
    share = message("{count} slots, including those of the queries", count=_of(len(slots), size))
    if len(weights.get("bank.rows", ())) == size:
        rows, thumbs = weights["bank.rows"][slots].numpy(), np.asarray(dataset.images[slots])
        log_z = float(weights["bank.log_z"])
        note = message("This is the run's own memory bank after training: {share}.", share=share)
    else:
        rows, thumbs = encode(slots)
        note = message(
            "{missing}. The slots of the bank ({share}) are filled with one augmented view of each training image, "
            "encoded by this encoder, as at the start of training.",
            missing=_missing(weights, N_("bank")),
            share=share,
        )
    return Memory(
        rows=rows,
        thumbs=thumbs,
        names=[
            message("slot {index} ({label_name})", index=i, label_name=label_name(dataset, i)) for i in slots.tolist()
        ],
        size=size,
        note=note,
        query_slots=np.array([int(np.flatnonzero(slots == q)[0]) for q in queries]),
        log_z=None if log_z is None or np.isnan(log_z) else log_z,
    )


def _missing(weights: Weights, kind: str) -> str:
    """Explain why the run's own memory is not available."""
    if not weights:
        return message("A {kind} contains z of the trained encoder, but these vectors are not z", kind=kind)
    return message("The run's weights hold no {kind} (shipped runs keep encoder and head only)", kind=kind)


def _by_class(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort((rows, dataset.labels[rows]))]


def _of(n: int, size: int) -> str:
    return message("all {n}", n=f"{n:,}") if n >= size else message("{n} of {size}", n=f"{n:,}", size=f"{size:,}")


def _batch_of_snapshot(run: Run, epoch: str, dataset: Dataset, rows: int, seed: int) -> LabBatch:
    """Return z of some images of a snapshot's fixed sample, by class: the same images in every snapshot."""
    epochs = {str(e): e for e in run.snapshots()}
    if epoch not in epochs:
        raise ValueError(message("{name} has no snapshot of epoch {epoch}.", name=run.name, epoch=epoch))
    snapshot = run.snapshot(epochs[epoch])
    at = np.sort(np.random.default_rng(seed).permutation(len(snapshot["index"]))[:rows])
    at = at[np.argsort(snapshot["labels"][at], kind="stable")]
    index = snapshot["index"][at]
    if len(index) and int(index.max()) >= len(dataset):
        raise ValueError(N_("The images of the snapshot differ from the current images of the data set."))
    z = np.ascontiguousarray(snapshot["z"][at, None], np.float32)
    ids = [dataset.ids[i] for i in index]
    return LabBatch(z, snapshot["labels"][at], np.asarray(dataset.images[index]), dataset.classes, ids)


def _batch_of_recording(run: Run, request: BatchRequest) -> LabBatch | TowerBatch:
    """Return recorded rows of a step, with the queue's content, or of the probe set."""
    kind, _, number = request.source.partition(":")
    if not number.isdigit() or f"{kind}:" not in (STEP, SNAPSHOT):
        raise ValueError(message("{name} is a recording: it has rows of steps and no encoder", name=run.name))
    place = Recorded(run, PROBE if f"{kind}:" == SNAPSHOT else "step", int(number))
    space = Space.of_recording(place)
    batch = _batch_of_space(space, space.rows(), request.images * request.views, request.seed)
    if isinstance(batch, TowerBatch) or not request.memory or place.kind == PROBE:
        return batch
    queue = recorded_rows.read(run, place.number).queue[: PER_QUERY * request.images]
    if not len(queue):
        raise ValueError(N_("No queue was recorded with this step; compare views or classes."))
    note = message("{queue} keys were recorded with this step, taken evenly from the queue.", queue=f"{len(queue):,}")
    names = [message("queue key {index}", index=i) for i in range(1, len(queue) + 1)]
    return replace(batch, memory=Memory(queue, None, names, len(queue), note))


def _batch_of_space(space: Space, vectors: EmbeddingSet | None, rows: int, seed: int) -> LabBatch | TowerBatch:
    """Return some of a space's `vectors`, by class. Rows with equal ids are views if every id has as many."""
    assert vectors is not None  # files and recordings always have rows
    pictures = space.images()
    if (towers := towers_of(vectors)) is not None:
        return _batch_of_towers(towers, pictures, rows, seed)
    ids, place = np.unique(np.array(vectors.ids), return_inverse=True)
    v = len(vectors) // len(ids)
    views = np.arange(len(vectors))[:, None]  # (b, v) row numbers
    if v > 1 and (np.bincount(place) == v).all():
        views = np.argsort(place, kind="stable").reshape(len(ids), v)
    labels = np.full(len(vectors), -1) if vectors.labels is None else vectors.labels
    views = views[np.random.default_rng(seed).permutation(len(views))][: max(1, rows // views.shape[1])]
    views = views[np.argsort(labels[views[:, 0]], kind="stable")]
    first = views[:, 0]
    texts = row_texts(vectors, first)
    return LabBatch(
        rows=np.ascontiguousarray(vectors.features[views], np.float32),
        labels=labels[first],
        thumbs=None if pictures is None else np.asarray(pictures[views.ravel()]),
        classes=vectors.classes or tuple(map(str, range(int(labels[first].max(initial=-1)) + 1))),
        ids=[vectors.ids[i] for i in first],
        about=why_ordinary(vectors),
        texts=texts if any(texts) else (),
        of_images=pictures is not None,
    )


# --- rows of two towers: as many whole groups as the matrix shows, chosen by a seed -----------------------

NO_PARTNERS = N_("No usable row of {a} has a partner in {b}: the column pair has no value that both towers share.")
SOME = N_("Shown: {n} of {total_a} rows of {a} and {m} of {total_b} rows of {b}. Change the batch number for others.")
GIVEN = N_("Given negatives: {count}. Each is also a negative of every other query in the batch.")
ALONE = N_("Rows without a partner: {count}. They are negatives of every row of the other tower.")
LONGEST = 200  # characters of a row's text
LONGEST_ID = 40


def _batch_of_towers(towers: Towers, pictures: Any, most: int, seed: int, only_a: bool = False) -> TowerBatch:
    """Return some rows of two towers, by class if rows have one: partners, their given negatives, and rows without a
    partner in the same proportion as in all rows, at most half.
    Args: pictures: (n, c, h, w) uint8 of all rows, or None; most: rows per tower; only_a: pictures of tower a only.
    Raises: UnusableEmbedding without partners."""
    sides, given, all_rows = towers.usable_sides(), towers.given_negatives(), towers.rows
    given = given[np.isin(given[:, 0], sides[1][0])]
    group_a, group_b = (group[group >= 0] for _, group in sides)
    shared = np.intersect1d(group_a, group_b)
    if not len(shared):
        raise UnusableEmbedding(NO_PARTNERS, a=towers.names[0], b=towers.names[1])
    rng = np.random.default_rng(seed)
    order = rng.permutation(shared)
    alone = [np.setdiff1d(at[~np.isin(group, shared)], given[:, 0]) for at, group in sides]
    kept = [min(len(rows), most // 2, most * len(rows) // len(at)) for rows, (at, _) in zip(alone, sides, strict=True)]
    related = [sides[0], (np.append(sides[1][0], given[:, 0]), np.append(sides[1][1], given[:, 1]))]
    chosen = _choose(related, order, [max(1, most - count) for count in kept])
    order = order[: len(chosen[0])]
    if (labels := all_rows.labels) is not None:  # keep groups of a class together
        by_class = np.argsort([labels[rows[0]] for rows in chosen[0]], kind="stable")
        order, chosen = order[by_class], [[groups[g] for g in by_class] for groups in chosen]
    parts = [np.array([*dict.fromkeys(np.concatenate(groups).tolist())]) for groups in chosen]
    others = [rng.permutation(rows)[: max(0, most - len(part))] for rows, part in zip(alone, parts, strict=True)]
    at = [np.append(part, rows).astype(np.int64) for part, rows in zip(parts, others, strict=True)]
    thumbs, numbers = None, np.full(len(at[0]) + len(at[1]), -1)
    if pictures is not None:
        thumbs = np.asarray(pictures[at[0] if only_a else np.concatenate(at)])
        flat = thumbs.reshape(len(thumbs), -1)
        differ = np.flatnonzero(flat.min(1) < flat.max(1))  # a picture of a single color fills a gap in a file
        numbers[differ] = np.arange(len(differ))
        thumbs = thumbs[differ] if len(differ) else None
    own, place = np.full(len(all_rows), -1), {group: k for k, group in enumerate(order.tolist())}
    own[towers.a], own[towers.b] = towers.group_a, towers.group_b
    groups = [place.get(g, len(order) + k) for k, g in enumerate(own[np.concatenate(at)].tolist())]
    a, b = (
        LabTower(
            title=name,
            rows=all_rows.features[rows],
            groups=np.array(groups)[part],  # a row without a partner here has its own number
            names=[
                message(
                    "{tower} {row}", tower=name, row=printable(all_rows.ids[i].removeprefix(f"{name}:"), LONGEST_ID)
                )
                for i in rows.tolist()
            ],
            texts=row_texts(all_rows, rows),
            thumbs=numbers[part].tolist(),
        )
        for name, rows, part in zip(towers.names, at, (slice(len(at[0])), slice(len(at[0]), None)), strict=True)
    )
    negatives, notes = towers.given_in(*at), []
    if len(a.rows) < len(towers.a) or len(b.rows) < len(towers.b):
        counts = thousands(n=len(a.rows), m=len(b.rows), total_a=len(towers.a), total_b=len(towers.b))
        notes.append(message(SOME, a=a.title, b=b.title, **counts))
    if count := len(np.setdiff1d(negatives[:, 1], np.flatnonzero(np.isin(b.groups, a.groups)))):
        notes.append(message(GIVEN, **thousands(count=count)))
    if (left := len(np.setxor1d(a.groups, b.groups)) - count) > 0:
        notes.append(message(ALONE, **thousands(count=left)))
    return TowerBatch(a, b, thumbs, join(" ", notes), negatives)


def row_texts(rows: EmbeddingSet, at: np.ndarray) -> list[str]:
    """Return the texts of rows, each on one line, long ones shortened; "" for rows without text."""
    texts = rows.columns.get(TEXT)
    if texts is None or texts.dtype.kind != "U":
        return [""] * len(at)
    return [printable(" ".join(str(text)[: 2 * LONGEST].split()), LONGEST) for text in texts[at]]


def _choose(sides: list[tuple[np.ndarray, np.ndarray]], order: np.ndarray, most: list[int]) -> list[list[np.ndarray]]:
    """Choose row numbers of a and b, group by group in this order, until a tower has `most`; cut the last group."""
    ends = []
    for _, group in sides:
        by_group = np.argsort(group, kind="stable")
        ends.append((by_group, *(np.searchsorted(group[by_group], order, side) for side in ("left", "right"))))
    chosen: list[list[np.ndarray]] = [[], []]
    left = [*most]
    for g in range(len(order)):
        if not min(left):
            break
        for side, ((at, _), (by_group, start, stop)) in enumerate(zip(sides, ends, strict=True)):
            chosen[side].append(at[by_group[start[g] : stop[g]]][: left[side]])
            left[side] -= len(chosen[side][-1])
    return chosen
