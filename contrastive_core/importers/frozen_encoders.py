"""Frozen encoders, opened and run on a data set: what they give each image, kept by the data and the weights.

A model of torchvision or timm sees images of its own size and scale. A ResNet with the stem for ImageNet gets images
of 224 pixels, and the encoder of a run images of the size that it was trained on. Where a file does not tell its size,
images enter as they are, which is said. Gray images enter an encoder of color images three times.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from contrastive_core.data.augmentations import to_float
from contrastive_core.data.dataset import Dataset
from contrastive_core.device import choose, enough_memory
from contrastive_core.errors import BadSetting, CannotImport, NotDownloaded, explained
from contrastive_core.importers import pretrained
from contrastive_core.importers.checkpoint import OpenedCheckpoint, create_run, open_checkpoint
from contrastive_core.messages import N_, message
from contrastive_core.models.encoders import create_encoder, forward_batch_size
from contrastive_core.ops.similarity import full_precision
from contrastive_core.paths import data_home, runs_home
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.records import runs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.frozen import LIBRARIES, RUN, FrozenEncoder
from contrastive_core.runs import checkpoints
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.regular_files import printable
from contrastive_core.training.image_size import IMAGENET

__all__ = ["OpenedEncoder", "check_frozen", "embed_frozen", "open_frozen", "start_from"]

CHUNK = 250  # images per forward pass, at most
VERSION = 1  # of kept embeddings


@dataclass(frozen=True, eq=False)
class OpenedEncoder:
    """A frozen encoder's network in evaluation mode, its name and settings; `content` is the hash of its weights and of
    how images enter."""

    title: str
    network: Any
    content: str
    name: str
    knobs: JsonObject
    notes: tuple[str, ...] = ()


def embed_frozen(
    encoder: FrozenEncoder, dataset: Dataset, device: str = "auto", progress: OnFraction = ignore_fraction
) -> EmbeddingSet:
    """What a frozen encoder gives each image of a split (n, d), kept under the hashes of both. Raises ValueError with
    one sentence where it cannot be opened or cannot take these images."""
    opened = open_frozen(encoder, dataset)
    path = data_home() / "frozen" / dataset.fingerprint[:16] / f"{opened.content[:16]}-v{VERSION}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError):
        kept = EmbeddingSet.from_arrays(json_files.read_npz(path))
        if kept.ids == tuple(dataset.ids):
            return kept
    features = _encode(opened, dataset, device, progress)
    rows = _as_set(features, dataset, opened)
    path.parent.mkdir(parents=True, exist_ok=True)
    json_files.write_npz(path, **rows.arrays())
    return rows


def check_frozen(encoder: FrozenEncoder) -> str:
    """What an encoder is, in one sentence; opens its weights, in color. Raises ValueError with one sentence."""
    if encoder.name.startswith(RUN):
        run = runs.load(encoder.name.removeprefix(RUN))
        run.weights_hash()
        return message("{title}: {name}", title=encoder.title, name=str(run.config.get("encoder")))
    with _opened(encoder) as it:
        _check_tensors(encoder, it)
        values = {"title": encoder.title, "kind": it.recognized.kind, "name": it.recognized.encoder}
        return message("{title}: {kind}, {name}", **values)


def open_frozen(encoder: FrozenEncoder, dataset: Dataset) -> OpenedEncoder:
    """An encoder for the images of a data set. Raises ValueError with one sentence."""
    c, h, w = dataset.images.shape[1:]
    if encoder.name.startswith(RUN):
        opened = _of_run(encoder, c, h)
    else:
        with _opened(encoder) as it:
            opened = _of_checkpoint(encoder, it, c, h)
    try:
        with torch.no_grad():
            made = opened.network(torch.zeros(1, c, h, w))
    except Exception as error:  # of a foreign network
        values = {"title": encoder.title, "height": h, "width": w, "why": printable(explained(error), 200)}
        raise CannotImport("{title} cannot take images of {height} × {width} pixels: {why}", **values) from None
    if made.ndim != 2:
        raise CannotImport("{title} gives no single vector for an image", title=encoder.title)
    return opened


def start_from(encoder: FrozenEncoder, dataset: Dataset, run_name: str, root: str | None = None) -> JsonObject:
    """Settings of a training that goes on from an encoder on these images. Its weights are imported as the run
    `run_name`, unless they are a run's or that run exists. Raises ValueError with one sentence."""
    opened, start = open_frozen(encoder, dataset), encoder.name.removeprefix(RUN)
    if not encoder.name.startswith(RUN):
        start = run_name
        if not (runs_home() / run_name).exists():
            with _opened(encoder) as it:
                fitted = replace(it, recognized=replace(it.recognized, encoder_knobs=opened.knobs))
                create_run(fitted, dataset.name, run_name, root)
    return {"start": start, "encoder": opened.name, **{f"encoder.{k}": v for k, v in opened.knobs.items()}}


@contextlib.contextmanager
def _opened(encoder: FrozenEncoder) -> Iterator[OpenedCheckpoint]:
    """The checkpoint of a library's model or of a file, while inside."""
    if not encoder.name.startswith(LIBRARIES):
        with open_checkpoint(Path(encoder.name).expanduser()) as it:
            yield it
        return
    weights = str(Path(encoder.weights).expanduser()) if encoder.weights else ""
    try:
        with pretrained.open_model(pretrained.Wanted(encoder.name, weights)) as it:
            yield it
    except NotDownloaded:
        raise NotDownloaded(
            "no weights of {name} are on this computer; name a file of them, {name}=FILE, or fetch them once with "
            "`import {name} --fetch`",
            name=encoder.name,
        ) from None


def _of_run(encoder: FrozenEncoder, channels: int, height: int) -> OpenedEncoder:
    run = runs.load(encoder.name.removeprefix(RUN))
    knobs = dict(run.config.get("encoder_knobs") or {})
    weights = checkpoints.strip_prefix(checkpoints.load_weights(run), "encoder.")
    shape = run.manifest.get("image_shape") or (channels, height, height)  # a run without it: its weights must fit
    own = 3 if knobs.get("gray_as_color") else int(shape[0])
    knobs["gray_as_color"], notes = _gray(encoder, own, channels)
    if not knobs.get("pixels") and shape[1] and shape[1] != height:
        knobs["pixels"] = int(shape[1])
        notes += (message("images scaled to {pixels} pixels", pixels=shape[1]),)
    return _loaded(encoder, (str(run.config.get("encoder")), knobs), (channels, height), weights, notes)


def _of_checkpoint(encoder: FrozenEncoder, it: OpenedCheckpoint, channels: int, height: int) -> OpenedEncoder:
    _check_tensors(encoder, it)
    recognized = it.recognized
    knobs = dict(recognized.encoder_knobs)
    gray, notes = _gray(encoder, recognized.channels, channels)
    knobs["gray_as_color"] = gray
    if knobs.get("stem") == "imagenet" and not knobs.get("pixels"):
        knobs["pixels"] = IMAGENET
    if pixels := knobs.get("pixels"):
        notes += (message("images scaled to {pixels} pixels", pixels=pixels),)
    else:
        notes += (message("the size of its own images is unknown: these enter at {pixels} pixels", pixels=height),)
    tensors = load_file(it.weights)
    matched = {k: tensors[recognized.keys[k]] for k in it.matched if k.startswith("encoder.")}
    weights = {k.removeprefix("encoder."): v for k, v in matched.items()}
    return _loaded(encoder, (recognized.encoder, knobs), (channels, height), weights, notes)


def _check_tensors(encoder: FrozenEncoder, it: OpenedCheckpoint) -> None:
    """Raises CannotImport where the file lacks some of the encoder's tensors."""
    bad = [name for name in (*it.missing, *it.unlike) if name.startswith("encoder.")]
    if bad:
        values = {"title": encoder.title, "name": it.recognized.encoder, "count": len(bad), "first": bad[0]}
        raise CannotImport(
            "{title} is no {name}: {count} of its tensors are missing or have another shape, for example {first}",
            **values,
        )


def _gray(encoder: FrozenEncoder, own: int, channels: int) -> tuple[bool, tuple[str, ...]]:
    """Whether gray images enter an encoder of color images three times, and the note on it."""
    if own == 3 and channels == 1:
        return True, (N_("gray images enter it three times"),)
    if own != channels:
        values = {"title": encoder.title, "own": own, "channels": channels}
        raise BadSetting("{title} takes images of {own} channels; these have {channels}", **values)
    return False, ()


def _loaded(
    encoder: FrozenEncoder,
    form: tuple[str, dict[str, Any]],
    images: tuple[int, int],
    weights: dict[str, torch.Tensor],
    notes: tuple[str, ...],
) -> OpenedEncoder:
    """The network of a name and its settings, with these weights, for images of so many channels and pixels."""
    name, knobs = form
    try:
        network: nn.Module = create_encoder(name, *images, **knobs)
        kept = {k: v for k, v in network.state_dict().items() if k.endswith("num_batches_tracked")}
        network.load_state_dict(kept | weights)
    except (RuntimeError, ValueError) as error:
        values = {"title": encoder.title, "name": name, "why": printable(explained(error), 200)}
        raise CannotImport("{title} cannot be made a {name}: {why}", **values) from None
    digest = hashlib.sha256(json.dumps([name, knobs, *images], sort_keys=True).encode())
    for key in sorted(weights):
        digest.update(key.encode() + weights[key].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    frozen = network.eval().requires_grad_(False)
    return OpenedEncoder(encoder.title, frozen, digest.hexdigest(), name, dict(knobs), notes)


def _encode(opened: OpenedEncoder, dataset: Dataset, device: str, progress: OnFraction) -> np.ndarray:
    """h (n, d) of every image in float32. Raises CannotImport for values that are not finite; CannotGoOn where the
    device has too little memory."""
    where = choose(device)
    network, n = opened.network.to(where), len(dataset)
    chunk = forward_batch_size(CHUNK, dataset.images, network)
    rows = []
    memory = enough_memory(where, min(chunk, n), *dataset.images.shape[-2:])
    with torch.no_grad(), full_precision(where), memory:
        for start in range(0, n, chunk):
            images = torch.from_numpy(np.array(dataset.images[start : start + chunk])).to(where)
            rows.append(network(to_float(images)).float().cpu().numpy())
            progress(min(1.0, (start + chunk) / n))
    features = np.concatenate(rows)
    if not np.isfinite(features).all():
        raise CannotImport(
            "{title} gives values that are not finite for these images: its weights are damaged", title=opened.title
        )
    return features


def _as_set(features: np.ndarray, dataset: Dataset, opened: OpenedEncoder) -> EmbeddingSet:
    about = {"dataset": dataset.name, "fingerprint": dataset.fingerprint, "frozen": opened.title}
    labels = np.asarray(dataset.labels, np.int64)
    return EmbeddingSet(
        np.ascontiguousarray(features, np.float32),
        labels if (labels >= 0).any() else None,
        tuple(dataset.ids),
        dataset.split,
        "h",
        tuple(dataset.classes),
        {k: np.asarray(v) for k, v in dataset.factors.items()},
        None,
        {**about, "weights": opened.content, "notes": list(opened.notes)},
    )
