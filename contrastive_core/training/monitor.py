"""Scores during training: of a fixed sample of training images, after an epoch. The test set is never read.
`knn_train_sample` is no accuracy of the evaluation: the other images of the sample vote on each image. Alignment is
taken between two augmented views, the same in every epoch."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.data.augmentations import make_views, to_float
from contrastive_core.data.captions import Captions
from contrastive_core.distributed import collectives
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import CannotScore
from contrastive_core.methods import Method
from contrastive_core.metrics import create
from contrastive_core.metrics.knn import leave_one_out
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.ops.partner_ranks import RightAnswers, contents, gap_of_means, partner_ranks, unit_rows
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.recipe import Recipe

ALIGNED = 256  # images whose two views measure alignment
CHUNK = 500  # images per forward pass, at most
CAPTIONS = 5  # of an image of the sample, at most
SEED = 20_020  # of the sample and its views: the same for every run, so that maps compare
ALIGNMENT, UNIFORMITY, RANKME = map(create, ("alignment", "uniformity", "rankme"))


@dataclass(frozen=True, eq=False)
class MonitoredSample:
    """The fixed sample: its rows in the data set, images (s, c, h, w) uint8, labels (s), and captions if there are."""

    index: np.ndarray
    images: Tensor
    labels: np.ndarray
    captions: Captions | None = None


def fixed_sample(
    images: Any, labels: np.ndarray, size: int, device: torch.device, captions: Captions | None = None
) -> MonitoredSample:
    """At most `size` rows, drawn once from a seed of their own, in rising order."""
    n = len(labels)
    chosen = np.random.default_rng(SEED).permutation(n)[:size]
    chosen = np.sort(chosen)
    of_sample = captions and captions.take(chosen).at_most(CAPTIONS)
    return MonitoredSample(chosen, torch.from_numpy(np.asarray(images[chosen])).to(device), labels[chosen], of_sample)


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


@torch.no_grad()
def embed_captions(method: Method, sample: MonitoredSample, amp: bool = False) -> dict[str, np.ndarray]:
    """`text_z` (m, e) float16, z of the sample's captions in evaluation mode, and `text_of` (m), the place of the image
    of each in the sample; {} without captions."""
    if sample.captions is None or not sample.captions.texts:
        return {}
    texts, at = np.unique(np.array(sample.captions.texts), return_inverse=True)  # equal texts get equal rows
    was_training = method.training
    method.eval()
    with torch.autocast(sample.images.device.type, torch.bfloat16, enabled=amp):
        parts = [texts[i : i + CHUNK].tolist() for i in range(0, len(texts), CHUNK)]
        z = torch.cat([method.encode_texts(part).float() for part in parts])
    method.train(was_training)
    return {"text_z": z.cpu().numpy().astype(np.float16)[at], "text_of": sample.captions.image}


def embed_sample(method: Method, sample: MonitoredSample, amp: bool = False) -> dict[str, np.ndarray]:
    """`h` and `z` of the sample, and `text_z` and `text_of` if it has captions."""
    h, z = embed(method, sample.images, amp)
    return {"h": h, "z": z, **embed_captions(method, sample, amp)}


def tower_scores(z: np.ndarray, text_z: np.ndarray, text_of: np.ndarray) -> dict[str, float]:
    """Recall@1 of the sample in both directions, and the modality gap, of the rows that a snapshot holds."""
    rows = [x.astype(np.float16).astype(np.float32) for x in (z, text_z)]
    a, b = map(unit_rows, rows)
    group = np.arange(len(z))
    answers = RightAnswers.of(group, text_of, *map(contents, rows))
    is_captioned = np.flatnonzero(np.isin(group, text_of))
    forth = partner_ranks(a[is_captioned], b, answers.take(is_captioned)).hits(1)
    back = partner_ranks(b, a, answers.reversed).hits(1)
    recall = {"recall_1_forth": float(forth.mean()), "recall_1_back": float(back.mean())}
    return {**recall, "modality_gap": gap_of_means(a, b)}


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
