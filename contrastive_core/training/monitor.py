"""What is watched while training: scores of a fixed sample of training images, once per epoch.

The test set is never looked at. `knn_train_sample` is no accuracy of the evaluation: each image of
the sample is voted on by the others. Alignment is taken between two augmented views, drawn alike in
every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.data.at_once import images_at_once
from contrastive_core.data.augmentations import make_views, to_float
from contrastive_core.data.recipe import Recipe
from contrastive_core.device import autocast
from contrastive_core.distributed import collectives
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import CannotScore
from contrastive_core.methods import Method
from contrastive_core.metrics import create
from contrastive_core.metrics.knn import leave_one_out
from contrastive_core.pairs.types import Pairs

__all__ = ["Sample", "embed", "fixed_sample", "pair_similarity", "scores"]

ALIGNED = 256  # images whose two views measure alignment
CHUNK = 500  # images per forward pass, at most
SEED = 20_020  # of the sample and its views: the same for every run, so that maps compare


@dataclass(frozen=True, eq=False)
class Sample:
    """The fixed sample: its rows in the data set, images (s, c, h, w) uint8, labels (s)."""

    index: np.ndarray
    images: Tensor
    labels: np.ndarray


def fixed_sample(images: Any, labels: np.ndarray, size: int, device: torch.device) -> Sample:
    """At most `size` rows, drawn once from a seed of their own, in rising order."""
    n = len(labels)
    chosen = np.random.default_rng(SEED).permutation(n)[:size]
    chosen = np.sort(chosen)
    return Sample(chosen, torch.from_numpy(np.asarray(images[chosen])).to(device), labels[chosen])


@torch.no_grad()
def embed(method: Method, images: Tensor, amp: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """h (s, d) and z (s, e) of uint8 images, in evaluation mode; the mode is put back.

    Args: amp: bf16 autocast, as the training has it; h and z come back in float32.
    """
    was_training = method.training
    method.eval()
    h, z = [], []
    for part in images.split(images_at_once(CHUNK, images, method.encoder)):
        with autocast(images.device, amp):
            features = method.features(to_float(part))
            projected = method.project(features)
        h.append(features.float())
        z.append(projected.float())
    method.train(was_training)
    return torch.cat(h).cpu().numpy(), torch.cat(z).cpu().numpy()


def scores(
    method: Method, sample: Sample, recipe: Recipe, h: np.ndarray, z: np.ndarray, amp: bool = False
) -> dict[str, float]:
    """kNN and RankMe of h, alignment and uniformity of z; a score that has no value is left out."""
    generator = torch.Generator().manual_seed(SEED)
    images, device = sample.images[:ALIGNED], str(sample.images.device)
    views = [
        (make_views(part, recipe, 2, generator).flatten(0, 1) * 255).round().to(torch.uint8)
        for part in images.split(images_at_once(ALIGNED, images))
    ]
    _, twice = embed(method, torch.cat(views), amp)
    rows_h = _rows(h, sample)
    rows_z = _rows(z, sample, twice.reshape(len(images), 2, -1))
    values = {
        "knn_train_sample": leave_one_out(rows_h, device),
        "alignment": _score("alignment", rows_z, device),
        "uniformity": _score("uniformity", rows_z, device),
        "rankme": _score("rankme", rows_h, device),
    }
    return {name: value for name, value in values.items() if value is not None}


def _rows(features: np.ndarray, sample: Sample, views: np.ndarray | None = None) -> EmbeddingSet:
    labels = sample.labels if (sample.labels >= 0).any() else None
    return EmbeddingSet(features, labels, split="train", views=views)


def _score(name: str, rows: EmbeddingSet, device: str) -> float | None:
    try:
        return create(name)(None, rows, Graphs(device)).value
    except CannotScore:
        return None


@torch.no_grad()
def pair_similarity(pairs: Pairs, rows: int = 256, columns: int = 8192) -> dict[str, float]:
    """Mean cosine of the positive and of the negative pairs of a global batch (its first rows).

    All processes call it together, each with its own anchors.
    """
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
