"""A run's encoder on a whole split: h or z of every image, in evaluation mode, cached.

Raw pixels and the untrained encoder, which stand beside it, are of all images, or of a sample that is said: of so many
as have REFERENCE_BYTES in float32.

The cache lies in the run's folder (for shipped runs: in `data_home()`) under the hash of weights and data, so a page
that only reads needs no torch. Of many processes (torchrun) each encodes its share of the images, in the chunks that
one process would take, so that the rows are the same.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

from contrastive_core.data import datasets
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.caption_sources import captions_of
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.overrides import take
from contrastive_core.device import choose, enough_memory
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import SPREAD
from contrastive_core.embeddings import file_formats
from contrastive_core.messages import N_, message
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.ops.sampling import rows_of_sample, sample_text
from contrastive_core.ops.similarity import full_precision
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records.embedding_ref import TOWERS, cached, find, path_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_core.records.towers import with_captions
from contrastive_core.records.train_config import TrainConfig, from_dict
from contrastive_core.runs import checkpoints
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.large_arrays import RowBuffer, part_of
from contrastive_core.training.defaults import resolve
from contrastive_core.training.setup import create_method, weights_lock

__all__ = [
    "data_of",
    "embed_run",
    "encode_texts",
    "from_weights",
    "load_model",
    "parts",
    "random_encoder",
    "raw_pixels",
    "tower_rows",
]

CHUNK = 500  # images per forward pass, at most
ALL = slice(None)
PIXELS = 32  # a side of raw pixels as a reference: a probe of 128 × 128 × 3 columns takes minutes
REFERENCE_BYTES = 1 << 30  # of raw pixels in float32: 87,381 images of 32 × 32 in color
ONE = (0, 1)  # the part of a process that is alone


def embed_run(
    run: Run,
    split: str = "test",
    layer: str = "h",
    device: str = "auto",
    progress: OnFraction = ignore_fraction,
    method: Any = None,
) -> EmbeddingSet:
    """The embedding of a split, computed once: whole on every process, written by the first. Of the layer "towers":
    z of its images, then of its captions. `method`: the run's, if it is opened already.

    Raises ValueError without weights or data.
    """
    embedding = cached(run, split, layer)
    if not collectives.any_process(embedding is None) and embedding is not None:
        return embedding
    if layer == TOWERS:
        return _embed_towers(run, split, device, progress, method)
    dataset, world = data_of(run, split), collectives.world()
    folder = path_of(run, split, layer).parent
    folder.mkdir(parents=True, exist_ok=True)
    share = part_of(len(dataset), (world.rank, world.size))
    mine = _forward(method or load_model(run, dataset, device), dataset, share, progress, folder)
    sets = {k: _as_set(SPREAD.whole(v), dataset, k, _origin(run)) for k, v in mine.items()}
    if world.is_rank0:
        for name, rows in sets.items():
            json_files.write_npz(path_of(run, split, name), **rows.arrays())
    collectives.all_gather_object(None)  # from here on it is there for all
    return cached(run, split, layer) or sets[layer]  # large ones as a map of the file


def _embed_towers(run: Run, split: str, device: str, progress: OnFraction, method: Any) -> EmbeddingSet:
    if not run.has_towers:
        raise ValueError(message("{name} has no text tower", name=run.name))
    dataset = data_of(run, split)
    method = method or load_model(run, dataset, device)
    rows = tower_rows(method, embed_run(run, split, "z", device, progress, method), dataset)
    if collectives.world().is_rank0:
        json_files.write_npz(path_of(run, split, TOWERS), **rows.arrays())
    collectives.all_gather_object(None)
    return cached(run, split, TOWERS) or rows


def tower_rows(method: Any, images: EmbeddingSet, dataset: Dataset) -> EmbeddingSet:
    """Both towers in one set, z of images and of their captions; a caption has the label and the factors of its image.
    Raises BadSetting where captions cannot be read."""
    captions = captions_of(dataset)
    return with_captions(images, encode_texts(method, captions.texts), captions.image, captions.texts)


def encode_texts(method: Any, texts: Sequence[str]) -> np.ndarray:
    """z (m, e) of texts."""
    device = next(method.parameters()).device
    with torch.no_grad(), full_precision(device):
        parts = [method.encode_texts(texts[i : i + CHUNK]) for i in range(0, len(texts), CHUNK)]
    return torch.cat(parts).float().cpu().numpy()


def parts(run: Run, split: str, device: str = "auto") -> dict[str, EmbeddingSet]:
    """This process's rows of a split, and no others: "h", "z", "raw" pixels, "random" encoder.

    h and z are read from the cache if `embed_run` has made it, else computed. Raises ValueError where there are fewer
    rows than processes.
    """
    world, dataset = collectives.world(), data_of(run, split)
    if len(dataset) < world.size:
        raise ValueError(
            message("{dataset} images are too few for {size} processes", dataset=len(dataset), size=world.size)
        )
    part = (world.rank, world.size)
    paths = {layer: find(run, split, layer) for layer in "hz"}
    if collectives.any_process(not all(p.exists() for p in paths.values())):
        sets = from_weights(run, dataset, device, part)
    else:
        sets = {k: file_formats.read(p, part) for k, p in paths.items()}
    sets["random"], _ = random_encoder(run, dataset, device, part)
    return {**sets, "raw": raw_pixels(dataset, part)}


def from_weights(
    run: Run, dataset: Dataset, device: str = "auto", part: tuple[int, int] = ONE
) -> dict[str, EmbeddingSet]:
    """ "h" and "z" of a data set as the run's weights give them now, whatever has been kept; of a process among several
    (its number, their number) its share of them."""
    rows = part_of(len(dataset), part)
    both = _forward(load_model(run, dataset, device), dataset, rows)
    return {k: _as_set(v, dataset, k, _origin(run), rows) for k, v in both.items()}


def _origin(run: Run) -> JsonObject:
    return {"run": run.name, "weights": run.weights_hash()}


def load_model(run: Run, dataset: Dataset | None = None, device: str = "auto") -> Any:
    """The run's method with its encoder and head, and its text tower if it has one, in evaluation mode, on the device.

    Memory (queue, bank, key encoder) is left as it was made: nothing is encoded with it.
    """
    method = create_method(from_dict(run.config), dataset or data_of(run, "test"))
    method.load_parts(checkpoints.load_weights(run))
    return method.eval().to(choose(device))


def untrained_rows(config: TrainConfig, dataset: Dataset, device: str = "auto") -> np.ndarray:
    """h (n, d) of an encoder as a training with these settings would begin with."""
    where = choose(device)
    resolved, _ = resolve(config, dataset, where)
    return _forward(_untrained(resolved, dataset).to(where), dataset)["h"]


def random_encoder_of(run: Run, dataset: Dataset) -> Any:
    """The run's method as it was before training, in evaluation mode."""
    return _untrained(from_dict(run.config), dataset)


def _untrained(config: TrainConfig, dataset: Dataset) -> Any:
    """The method that a training with these settings begins with, in evaluation mode."""
    with weights_lock, torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return create_method(config, dataset).eval()


def data_of(run: Run, split: str) -> Dataset:
    """The data set a run was trained on. Raises ValueError for a recording."""
    if run.is_recording:
        run.weights_hash()  # its sentence: there is nothing to embed with
    return datasets.of_config(run.config, split)


def raw_pixels(dataset: Dataset, part: tuple[int, int] = ONE) -> EmbeddingSet:
    """The images themselves, centered at mid-gray, larger ones averaged to PIXELS a side: what any encoder has to beat;
    of a process among several (its number, their number) its share of them."""
    shape = dataset.images.shape[1:]
    sides = min(shape[1], PIXELS), min(shape[2], PIXELS)
    width = shape[0] * math.prod(sides)
    dataset, about = _reference(dataset, N_("raw pixels"), width)
    if is_averaged := sides != shape[1:]:
        averaged = message("pixels averaged to {sides} × {first}", sides=sides[1], first=sides[0])
        about["sample"] = ", ".join(filter(None, [about.get("sample"), averaged]))
    rows = part_of(len(dataset), part)
    first, last, _ = rows.indices(len(dataset))
    flat = np.empty((last - first, width), np.float32)
    chunk = forward_batch_size(CHUNK, dataset.images)
    for start in range(first, last, chunk):
        some = np.asarray(dataset.images[start : min(start + chunk, last)])
        if is_averaged:
            some = adaptive_avg_pool2d(torch.from_numpy(some.astype(np.float32)), sides).numpy()
        flat[start - first : start - first + len(some)] = some.reshape(len(some), -1)
    flat /= 255
    flat -= 0.5
    return _as_set(flat, dataset, "loaded", about, rows)


def random_encoder(
    run: Run,
    dataset: Dataset,
    device: str = "auto",
    part: tuple[int, int] = ONE,
    progress: OnFraction = ignore_fraction,
) -> tuple[EmbeddingSet, EmbeddingSet]:
    """h and z of the run's encoder as it was before training; part: as of `raw_pixels`."""
    dataset, about = _reference(dataset, N_("random encoder"))
    rows = part_of(len(dataset), part)
    both = _forward(random_encoder_of(run, dataset).to(choose(device)), dataset, rows, progress)
    h, z = (_as_set(v, dataset, k, about, rows) for k, v in both.items())
    return h, z


def _reference(dataset: Dataset, source: str, width: int | None = None) -> tuple[Dataset, JsonObject]:
    """The images that references are taken of, read when they are asked for, and what is said; width: the numbers that
    each becomes, where they are not its pixels."""
    n = len(dataset)
    most = max(1, REFERENCE_BYTES // (4 * (width or math.prod(dataset.images.shape[1:]))))
    chosen = rows_of_sample(n, most)
    if not (sample := sample_text(len(chosen), n, message("{split} images", split=dataset.split))):
        return dataset, {"source": source}
    return take(dataset, chosen), {"source": source, "sample": sample}


def _forward(
    method: Any, dataset: Dataset, rows: slice = ALL, progress: OnFraction = ignore_fraction, folder: Path | None = None
) -> dict[str, np.ndarray]:
    """h and z of the images `rows`, in float32 and without TF32, whatever the training used; large ones lie in files
    without a name in `folder`, if one is given. Chunks start where they do for all images, since a batch of another
    size may round its last digits otherwise. Raises CannotGoOn where the device has too little memory."""
    device = next(method.parameters()).device
    chunk = forward_batch_size(CHUNK, dataset.images, method.encoder)
    memory = enough_memory(device, min(chunk, len(dataset)), *dataset.images.shape[-2:])
    first, last, _ = rows.indices(len(dataset))
    h, z = (RowBuffer(last - first, folder) for _ in range(2))
    tf32 = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    with torch.no_grad(), full_precision(device), tf32, memory:
        for start in range(first // chunk * chunk, max(last, 1), chunk):
            part = torch.from_numpy(np.array(dataset.images[start : start + chunk])).to(device)
            features = method.features(to_float(part))
            inside = slice(max(0, first - start), max(0, last - start))
            h.add(features[inside].float().cpu().numpy())
            z.add(method.project(features)[inside].float().cpu().numpy())
            progress(min(1.0, (start + chunk - first) / (last - first or 1)))
    return {"h": h.full(), "z": z.full()}


def _as_set(features: np.ndarray, dataset: Dataset, layer: str, about: JsonObject, rows: slice = ALL) -> EmbeddingSet:
    is_labeled, form = bool((dataset.labels >= 0).any()), dataset.form
    brought_to = {"image_size": form.size, "resize": form.resize} if form is not None else {}  # the images of a folder
    return EmbeddingSet(
        np.ascontiguousarray(features, np.float32),
        np.asarray(dataset.labels[rows], np.int64) if is_labeled else None,
        tuple(dataset.ids[rows]),
        dataset.split,
        layer,
        tuple(dataset.classes),
        {k: np.asarray(v)[rows] for k, v in dataset.factors.items()},
        None,
        {"dataset": dataset.name, "fingerprint": dataset.fingerprint, **brought_to, **about},
    )
