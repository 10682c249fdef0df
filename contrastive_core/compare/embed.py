"""The embedding of a whole split with a run's encoder: h and z of every image, in evaluation mode, cached.

The baselines, raw pixels and the untrained encoder, use all images, or a stated sample if the images exceed
REFERENCE_BYTES in float32.

The cache is in the run's folder (for shipped runs: in `data_home()`) under the hash of weights and data. Pages that
only read it need no torch."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

from contrastive_core.base import storage
from contrastive_core.base.device import choose, enough_memory
from contrastive_core.base.memory import RowBuffer, rows_of_sample, sample_text, write_npz
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.data import datasets
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.captions import captions_of
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.overrides import take
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.ops.similarity import full_precision
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig, from_dict
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import TOWERS, cached, path_of
from contrastive_core.spaces.towers import with_captions
from contrastive_core.train.settings import facts_of, resolve
from contrastive_core.train.setup import create_method, weights_lock

CHUNK = 500  # images per forward pass, at most
PIXELS = 32  # side of the raw-pixel baseline: a probe on 128 × 128 × 3 columns takes minutes
REFERENCE_BYTES = 1 << 30  # of raw pixels in float32: 87,381 images of 32 × 32 in color


def embed_run(
    run: Run,
    split: str = "test",
    layer: str = "h",
    device: str = "auto",
    progress: OnFraction = ignore_fraction,
    method: Any = None,
) -> EmbeddingSet:
    """Return the embedding of a split, computed once and cached. The layer "towers" holds z of the images, then of
    captions. `method` is the run's loaded method, if available. Raises ValueError without weights or data."""
    if (embedding := cached(run, split, layer)) is not None:
        return embedding
    if layer == TOWERS and not run.has_towers:
        raise ValueError(message("{name} has no text tower", name=run.name))
    dataset, folder = data_of(run, split), storage.make_folder(path_of(run, split, layer).parent)
    method = method or load_model(run, dataset, device)
    if layer == TOWERS:
        sets = {layer: tower_rows(method, embed_run(run, split, "z", device, progress, method), dataset)}
    else:
        sets = _both_layers(run, method, dataset, progress, folder)
    for name, rows in sets.items():
        write_npz(path_of(run, split, name), **rows.arrays())
    return cached(run, split, layer) or sets[layer]  # large ones are mapped from the file


def tower_rows(method: Any, images: EmbeddingSet, dataset: Dataset) -> EmbeddingSet:
    """Return z of the images and of their captions in one set. A caption has the label and factors of its image.
    Raises BadSetting if the captions cannot be read."""
    captions = captions_of(dataset)
    return with_captions(images, encode_texts(method, captions.texts), captions.image, captions.texts)


def encode_texts(method: Any, texts: Sequence[str]) -> np.ndarray:
    """Return z (m, e) of texts."""
    device = next(method.parameters()).device
    with torch.no_grad(), full_precision(device):
        parts = [method.encode_texts(texts[i : i + CHUNK]) for i in range(0, len(texts), CHUNK)]
    return torch.cat(parts).float().cpu().numpy()


def from_weights(run: Run, dataset: Dataset, device: str = "auto") -> dict[str, EmbeddingSet]:
    """Compute h and z of a data set from the run's weights, without the cache; keys "h" and "z"."""
    return _both_layers(run, load_model(run, dataset, device), dataset)


def _both_layers(
    run: Run, method: Any, dataset: Dataset, progress: OnFraction = ignore_fraction, folder: Path | None = None
) -> dict[str, EmbeddingSet]:
    about = {"run": run.name, "weights": run.weights_hash()}
    return {k: _as_set(v, dataset, k, about) for k, v in _forward(method, dataset, progress, folder).items()}


def load_model(
    run: Run, dataset: Dataset | None = None, device: str = "auto", weights: Mapping[str, torch.Tensor] | None = None
) -> Any:
    """Load the run's method with encoder, head and text tower (if any), in evaluation mode, on the device.

    Its memory (queue, bank, key encoder) keeps its initial values, because encoding does not use it. `weights`: tensors
    by name, if not the run's newest ones."""
    method = create_method(from_dict(run.config), dataset or data_of(run, "test"))
    method.load_parts(checkpoints.load_weights(run) if weights is None else weights)
    return method.eval().to(choose(device))


def untrained_rows(config: TrainConfig, dataset: Dataset, device: str = "auto") -> np.ndarray:
    """Return h (n, d) of the untrained encoder with these settings."""
    where = choose(device)
    resolved = resolve(config, facts_of(dataset), where).config
    return _forward(untrained(resolved, dataset).to(where), dataset)["h"]


def untrained(config: TrainConfig, dataset: Dataset) -> Any:
    """Return the method of a run with these settings and seed before training, in evaluation mode."""
    with weights_lock, torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return create_method(config, dataset).eval()


def data_of(run: Run, split: str) -> Dataset:
    """Load a split of the data set that a run was trained on. Raises ValueError for a recording."""
    if run.is_recording:
        run.weights_hash()  # raises the error that explains it
    return datasets.of_config(run.config, split)


def raw_pixels(dataset: Dataset) -> EmbeddingSet:
    """Return the pixels as an embedding, centered at mid-gray; larger images are averaged to PIXELS a side. It is the
    baseline that every encoder has to beat."""
    shape = dataset.images.shape[1:]
    sides = min(shape[1], PIXELS), min(shape[2], PIXELS)
    width = shape[0] * math.prod(sides)
    dataset, about = _reference(dataset, N_("raw pixels"), width)
    if is_averaged := sides != shape[1:]:
        averaged = message("pixels averaged to {sides} × {first}", sides=sides[1], first=sides[0])
        about["sample"] = ", ".join(filter(None, [about.get("sample"), averaged]))
    flat = np.empty((len(dataset), width), np.float32)
    chunk = forward_batch_size(CHUNK, dataset.images)
    for start in range(0, len(dataset), chunk):
        some = np.asarray(dataset.images[start : start + chunk])
        if is_averaged:
            some = adaptive_avg_pool2d(torch.from_numpy(some.astype(np.float32)), sides).numpy()
        flat[start : start + len(some)] = some.reshape(len(some), -1)
    flat /= 255
    flat -= 0.5
    return _as_set(flat, dataset, "loaded", about)


def random_encoder(
    run: Run, dataset: Dataset, device: str = "auto", progress: OnFraction = ignore_fraction
) -> tuple[EmbeddingSet, EmbeddingSet]:
    """Return h and z of the run's encoder before training."""
    dataset, about = _reference(dataset, N_("random encoder"))
    both = _forward(untrained(from_dict(run.config), dataset).to(choose(device)), dataset, progress)
    h, z = (_as_set(v, dataset, k, about) for k, v in both.items())
    return h, z


def _reference(dataset: Dataset, source: str, width: int | None = None) -> tuple[Dataset, dict[str, str]]:
    """Return the images for a baseline, all or a sample, and a note on it. `width` is the number of values per image,
    if not all pixels."""
    n = len(dataset)
    most = max(1, REFERENCE_BYTES // (4 * (width or math.prod(dataset.images.shape[1:]))))
    chosen = rows_of_sample(n, most)
    if not (sample := sample_text(len(chosen), n, message("{split} images", split=dataset.split))):
        return dataset, {"source": source}
    return take(dataset, chosen), {"source": source, "sample": sample}


def _forward(
    method: Any, dataset: Dataset, progress: OnFraction = ignore_fraction, folder: Path | None = None
) -> dict[str, np.ndarray]:
    """Return h and z of all images in float32, without TF32. With a `folder`, large results are in unnamed files there.
    Raises CannotGoOn if the device has too little memory."""
    device = next(method.parameters()).device
    chunk = forward_batch_size(CHUNK, dataset.images, method.encoder)
    memory = enough_memory(device, min(chunk, len(dataset)), *dataset.images.shape[-2:])
    h, z = (RowBuffer(len(dataset), folder) for _ in range(2))
    tf32 = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    with torch.no_grad(), full_precision(device), tf32, memory:
        for start in range(0, max(len(dataset), 1), chunk):
            part = torch.from_numpy(np.array(dataset.images[start : start + chunk])).to(device)
            features = method.features(to_float(part))
            h.add(features.float().cpu().numpy())
            z.add(method.project(features).float().cpu().numpy())
            progress(min(1.0, (start + chunk) / (len(dataset) or 1)))
    return {"h": h.full(), "z": z.full()}


def _as_set(features: np.ndarray, dataset: Dataset, layer: str, about: Mapping[str, str]) -> EmbeddingSet:
    is_labeled, form = bool((dataset.labels >= 0).any()), dataset.form
    brought_to = {"image_size": form.size, "resize": form.resize} if form is not None else {}  # of a folder's images
    return EmbeddingSet(
        features=np.ascontiguousarray(features, np.float32),
        labels=np.asarray(dataset.labels, np.int64) if is_labeled else None,
        ids=tuple(dataset.ids),
        split=dataset.split,
        layer=layer,
        classes=tuple(dataset.classes),
        columns={k: np.asarray(v) for k, v in dataset.factors.items()},
        views=None,
        provenance={"dataset": dataset.name, "fingerprint": dataset.fingerprint, **brought_to, **about},
    )
