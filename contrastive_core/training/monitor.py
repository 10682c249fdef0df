"""Scores during training: of a fixed sample of training images, once per epoch. The test set is never read.
`knn_train_sample` is no accuracy of the evaluation: the other images of the sample vote on each image. Alignment is
taken between two augmented views, the same in every epoch."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.data.augmentations import make_views, to_float
from contrastive_core.distributed import collectives
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import CannotScore
from contrastive_core.methods import Method
from contrastive_core.metrics import create
from contrastive_core.metrics.knn import leave_one_out
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.recipe import Recipe

ALIGNED = 256  # images whose two views measure alignment
CHUNK = 500  # images per forward pass, at most
SEED = 20_020  # of the sample and its views: the same for every run, so that maps compare
ALIGNMENT, UNIFORMITY, RANKME = map(create, ("alignment", "uniformity", "rankme"))


@dataclass(frozen=True, eq=False)
class MonitoredSample:
    """The fixed sample: its rows in the data set, images (s, c, h, w) uint8, labels (s)."""

    index: np.ndarray
    images: Tensor
    labels: np.ndarray


def fixed_sample(images: Any, labels: np.ndarray, size: int, device: torch.device) -> MonitoredSample:
    """At most `size` rows, drawn once from a seed of their own, in rising order."""
    n = len(labels)
    chosen = np.random.default_rng(SEED).permutation(n)[:size]
    chosen = np.sort(chosen)
    return MonitoredSample(chosen, torch.from_numpy(np.asarray(images[chosen])).to(device), labels[chosen])


@torch.no_grad()
def embed(method: Method, images: Tensor, amp: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """h (s, d) and z (s, e), float32, of uint8 images in evaluation mode; the mode is put back. `amp`: bf16."""
    was_training = method.training
    method.eval()
    h, z = [], []
    for part in images.split(forward_batch_size(CHUNK, images, method.encoder)):
        with torch.autocast(images.device.type, torch.bfloat16, enabled=amp):
            features = method.features(to_float(part))
            projected = method.project(features)
        h.append(features.float())
        z.append(projected.float())
    method.train(was_training)
    return torch.cat(h).cpu().numpy(), torch.cat(z).cpu().numpy()


def scores(
    method: Method, sample: MonitoredSample, recipe: Recipe, h: np.ndarray, z: np.ndarray, amp: bool = False
) -> dict[str, float]:
    """kNN and RankMe of h, alignment and uniformity of z; a score that has no value is left out."""
    generator = torch.Generator().manual_seed(SEED)
    images, device = sample.images[:ALIGNED], str(sample.images.device)
    views = [
        (make_views(part, recipe, 2, generator).flatten(0, 1) * 255).round().to(torch.uint8)
        for part in images.split(forward_batch_size(ALIGNED, images))
    ]
    _, twice = embed(method, torch.cat(views), amp)
    rows_h = EmbeddingSet(h, sample.labels, split="train")
    rows_z = EmbeddingSet(z, sample.labels, split="train", views=twice.reshape(len(images), 2, -1))
    knn, graphs, values = leave_one_out(rows_h, device), Graphs(device), {}
    if knn is not None:
        values["knn_train_sample"] = knn
    for name, metric, rows in (
        ("alignment", ALIGNMENT, rows_z),
        ("uniformity", UNIFORMITY, rows_z),
        ("rankme", RANKME, rows_h),
    ):
        with contextlib.suppress(CannotScore):
            values[name] = metric(None, rows, graphs).value
    return values


@torch.no_grad()
def pair_similarity(pairs: Pairs, rows: int = 256, columns: int = 8192) -> dict[str, float]:
    """Mean cosine of positive and negative pairs of a global batch (its first rows). All processes call it together."""
    counts = [one for (one,) in collectives.all_gather_ints(len(pairs))]
    before = sum(counts[: collectives.world().rank])
    r, c = slice(0, max(0, rows - before)), slice(0, columns)
    masks = pairs.masks(r, c)
    anchors = torch.nn.functional.normalize(pairs.anchors[r].float(), dim=1)  # (r, d)
    if pairs.columns is None:
        others = torch.nn.functional.normalize(pairs.candidates[c].float(), dim=1)
        s = anchors @ others.mT  # (r, c)
    else:
        others = pairs.candidates[pairs.columns[r, c]].float()  # (r, c, d)
        s = torch.einsum("nd,nkd->nk", anchors, torch.nn.functional.normalize(others, dim=2))
    sums = [x for mask in (masks.positive, masks.negative) for x in (s[mask].sum(), mask.sum())]
    positive, n_positive, negative, n_negative = collectives.all_reduce_sum(
        torch.stack([x.to(s.dtype) for x in sums])
    ).tolist()
    means = {"pos": (positive, n_positive), "neg": (negative, n_negative)}
    return {name: total / n for name, (total, n) in means.items() if n}
