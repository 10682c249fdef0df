"""Rows for the Loss Lab: views of real images through an encoder, a snapshot, or loaded vectors. The encoder is frozen:
what moves when a knob is dragged is the loss's view of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.data.augmentations import make_views, to_float
from contrastive_core.data.caption_sources import training_set
from contrastive_core.data.datasets import Dataset
from contrastive_core.embeddings.reading import read_images, read_recorded, read_rows, recorded_pictures
from contrastive_core.evaluation.embed import data_of, embed_run, load_model, random_encoder_of
from contrastive_core.loss_lab.memory import bank_of, queue_of
from contrastive_core.loss_lab.towers import batch_of_towers, row_texts
from contrastive_core.messages import N_, message
from contrastive_core.methods import Method
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.records import embedding_ref, recorded_rows
from contrastive_core.records.embedding_ref import TOWERS
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.lab_towers import TowerBatch
from contrastive_core.records.lab_view import SNAPSHOT, STEP, BatchRequest, LabBatch, Memory
from contrastive_core.records.recorded_rows import PROBE, Recorded
from contrastive_core.records.run import Run
from contrastive_core.records.towers import towers_of, why_ordinary
from contrastive_core.runs import checkpoints

AT_ONCE = 500  # images per forward pass, where they are large
PER_QUERY = 3  # rows of a memory beside each query: a quarter of the columns are its own


def load_batch(run: Run, request: BatchRequest) -> LabBatch | TowerBatch:
    """The rows that are asked for; of two towers where a file has them. Raises ValueError when there are no such
    rows."""
    source, rows, seed = request.source, request.images * request.views, request.seed
    if source.startswith("file:"):
        return _batch_of_file(source.removeprefix("file:"), rows, seed)
    if source == TOWERS:
        return _batch_of_run_towers(run, request)
    if run.is_recording:
        return _batch_of_recording(run, request)
    in_training = request.memory or source.startswith(SNAPSHOT)
    split = "train" if in_training else request.split
    dataset = data_of(run, split)
    if split == "train":  # without what the run left out
        dataset = training_set(dataset, run.has_towers, run.config.get("exclude"), run.config.get("relabel"))
    if source.startswith(SNAPSHOT):
        return _batch_of_snapshot(run, source.removeprefix(SNAPSHOT), dataset, rows, seed)
    return _batch_of_images(run, request, dataset)


def _batch_of_file(key: str, rows: int, seed: int) -> LabBatch | TowerBatch:
    space = embedding_ref.of_vectors(key)
    try:
        vectors = read_rows(space)
    except FileNotFoundError:
        raise ValueError(N_("These vectors are no longer stored here. Open their file again.")) from None
    assert vectors is not None  # loaded vectors need no making
    if not (unused := why_ordinary(vectors)) and (towers := towers_of(vectors)) is not None:
        return batch_of_towers(towers, read_images(space), rows, seed)
    pictures = read_images(space)
    made = _batch_of_vectors(vectors, pictures, rows, seed)
    return replace(made, about=unused, of_images=pictures is not None)


def _batch_of_run_towers(run: Run, request: BatchRequest) -> TowerBatch:
    rows = embed_run(run, request.split, TOWERS)
    towers = towers_of(rows)
    assert towers is not None  # a run's layer of that name has two
    pictures = read_images(embedding_ref.of_run(run, request.split, TOWERS))
    return batch_of_towers(towers, pictures, request.images * request.views, request.seed, True)


def _batch_of_images(run: Run, request: BatchRequest, dataset: Dataset) -> LabBatch:
    source, images, views, seed = request.source, request.images, request.views, request.seed
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(dataset))
    chosen, others = order[:images], order[images:]
    chosen = chosen[np.argsort(dataset.labels[chosen], kind="stable")]
    method = random_encoder_of(run, dataset) if source == "random" else load_model(run, dataset)
    method = method.cpu()
    weights = checkpoints.load_weights(run) if request.memory and source == "z" else {}
    generator = torch.Generator().manual_seed(seed)

    def encode(x: Tensor) -> Tensor:
        return _encode(method, source, x)

    def once(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raw = torch.from_numpy(np.array(dataset.images[rows]))
        x = make_views(raw, method.recipe, 1, generator)[:, 0]
        return encode(x).numpy(), _pictures(x)

    raw = torch.from_numpy(np.array(dataset.images[chosen]))
    x = to_float(raw)[:, None] if views == 1 else make_views(raw, method.recipe, views, generator)
    rows = encode(x.flatten(0, 1)).reshape(len(chosen), views, -1).numpy()
    thumbs, memory = _pictures(x.flatten(0, 1)), None
    if request.memory == "queue":
        size = int(run.config.get("method_knobs", {}).get("queue", len(others)))
        memory = queue_of(weights, dataset, others, PER_QUERY * images, once, size, rng)
        if memory.thumbs is None:  # the run's own queue, and so its own keys
            rows = _with_keys(rows, method, weights, x)
    elif request.memory == "bank":
        memory = bank_of(weights, dataset, chosen, others, PER_QUERY * images, once)
    if memory is not None and memory.thumbs is not None:
        thumbs = np.concatenate([thumbs, memory.thumbs])
    ids = [dataset.ids[i] for i in chosen]
    return LabBatch(rows, np.asarray(dataset.labels[chosen]), thumbs, dataset.classes, ids, memory)


@torch.no_grad()
def _encode(method: Method, source: str, x: Tensor) -> Tensor:
    """Rows (n, d) of images (n, c, h, w) by the encoder, or by the encoder and its head; or their pixels."""
    if source == "pixels":
        return x.flatten(1) - 0.5
    chunk = forward_batch_size(max(AT_ONCE, len(x)), x, method.encoder)  # small ones at once
    rows = torch.cat([method.features(part) for part in x.split(chunk)])
    return rows if source == "h" else method.project(rows)


def _with_keys(rows: np.ndarray, method: Any, weights: Any, x: Any) -> np.ndarray:
    """Rows (b, v, d) with the second view's as the run's key encoder gives them."""
    for part in ("key_encoder", "key_head"):
        getattr(method, part).load_state_dict(checkpoints.strip_prefix(weights, f"{part}."))
    with torch.no_grad():
        rows[:, 1] = method.key_head(method.key_encoder(x[:, 1])).numpy()
    return rows


def _pictures(x: Any) -> np.ndarray:
    """Images (n, c, h, w) in [0, 1] as uint8."""
    pixels: np.ndarray = (x * 255).round().byte().numpy()
    return pixels


def _batch_of_snapshot(run: Run, epoch: str, dataset: Dataset, rows: int, seed: int) -> LabBatch:
    """z of some images of the fixed sample, by class: the same images in every snapshot."""
    epochs = {str(e): e for e in run.snapshots()}
    if epoch not in epochs:
        raise ValueError(message("{name} has no snapshot of epoch {epoch}.", name=run.name, epoch=epoch))
    snapshot = run.snapshot(epochs[epoch])
    at = np.sort(np.random.default_rng(seed).permutation(len(snapshot["index"]))[:rows])
    at = at[np.argsort(snapshot["labels"][at], kind="stable")]
    index = snapshot["index"][at]
    if len(index) and int(index.max()) >= len(dataset):
        raise ValueError(N_("The snapshot's images are not those of the data set as it is now."))
    z = np.ascontiguousarray(snapshot["z"][at, None], np.float32)
    ids = [dataset.ids[i] for i in index]
    return LabBatch(z, snapshot["labels"][at], np.asarray(dataset.images[index]), dataset.classes, ids)


def _batch_of_recording(run: Run, request: BatchRequest) -> LabBatch | TowerBatch:
    """Rows that a recording kept, of a step with what stood in the queue, or of its probe set."""
    kind, _, number = request.source.partition(":")
    if not number.isdigit() or f"{kind}:" not in (STEP, SNAPSHOT):
        raise ValueError(message("{name} is a recording: it has rows of steps and no encoder", name=run.name))
    place = Recorded(run, PROBE if f"{kind}:" == SNAPSHOT else "step", int(number))
    vectors, count = read_recorded(place), request.images * request.views
    pictures = recorded_pictures(vectors)
    if (towers := towers_of(vectors)) is not None:
        return batch_of_towers(towers, pictures, count, request.seed)
    batch = replace(_batch_of_vectors(vectors, pictures, count, request.seed), of_images=pictures is not None)
    if not request.memory or f"{kind}:" == SNAPSHOT:
        return batch
    queue = recorded_rows.read(run, place.number).queue[: PER_QUERY * request.images]
    if not len(queue):
        raise ValueError(N_("No queue was recorded with this step; compare views or classes."))
    note = message("{queue} keys of the queue were recorded with this step, spread over it.", queue=f"{len(queue):,}")
    names: list[str] = [message("queue key {index}", index=i) for i in range(1, len(queue) + 1)]
    return replace(batch, memory=Memory(queue, None, names, len(queue), note))


def _batch_of_vectors(vectors: EmbeddingSet, pictures: np.ndarray | None, rows: int, seed: int) -> LabBatch:
    """Some rows of loaded vectors, by class. Rows are views of an image if all ids are shared by as many."""
    ids, place = np.unique(np.array(vectors.ids), return_inverse=True)
    v = len(vectors) // len(ids)
    views = np.arange(len(vectors))[:, None]  # (b, v) row numbers
    if v > 1 and (np.bincount(place) == v).all():
        views = np.argsort(place, kind="stable").reshape(len(ids), v)
    labels = np.full(len(vectors), -1) if vectors.labels is None else vectors.labels
    views = views[np.random.default_rng(seed).permutation(len(views))][: max(1, rows // views.shape[1])]
    views = views[np.argsort(labels[views[:, 0]], kind="stable")]
    image_labels = labels[views[:, 0]]
    classes = vectors.classes or tuple(map(str, range(int(image_labels.max(initial=-1)) + 1)))
    thumbs = None if pictures is None else np.asarray(pictures[views.ravel()])
    z, image_ids = np.ascontiguousarray(vectors.features[views], np.float32), [vectors.ids[i] for i in views[:, 0]]
    texts = row_texts(vectors, views[:, 0])
    return LabBatch(z, image_labels, thumbs, classes, image_ids, texts=texts if any(texts) else ())
