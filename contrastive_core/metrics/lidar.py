"""LiDAR: the effective rank of linear discriminants between images. Thilakaratne et al., ICLR 2024,
https://arxiv.org/abs/2312.04000.

Each image is a class; its augmented views are the rows of that class. Σ_b is the scatter of the class means, Σ_w the
mean scatter within classes plus δ·I. LiDAR is exp of the entropy of the eigenvalues of Σ_w^(−1/2) Σ_b Σ_w^(−1/2),
scaled to sum 1. Unlike RankMe it ignores dimensions in which views of one image differ as much as images do."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.metrics.rankme import effective_rank
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

BLOCK = 1 << 22  # numbers that are brought to float64 at a time


@dataclass(frozen=True)
class Lidar(Metric):
    title = "LiDAR"
    reading = N_(
        "How many dimensions separate samples, ignoring differences between views of one sample: from 1 to the width. "
        "It needs augmented views. With dense tasks such as segmentation it correlates negatively (arXiv 2510.17299)."
    )
    paper = "https://arxiv.org/abs/2312.04000"
    unit_rows = False
    delta: float = knob(1e-4, 0, 1, N_("added to the within-class scatter to make it invertible"))

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        if test.views is None:
            raise CannotScore(N_("LiDAR needs augmented views"))
        m, v, d = test.views.shape
        if m < 2 or v < 2:
            raise CannotScore("LiDAR needs two views of two images; got {views} of {images}", views=v, images=m)
        values = discriminant_spectrum(test.views, self.delta)
        if not values.sum() > 0:
            raise CannotScore(N_("LiDAR needs different images, but the encoder maps all of them to one point"))
        extras = {"width": d, "images": m, "views": v}
        return MetricResult(effective_rank(values), unit="dimensions", extras=extras)


def discriminant_spectrum(views: np.ndarray, delta: float) -> np.ndarray:
    """Return the eigenvalues ≥ 0, ascending, of Σ_b relative to Σ_w + δ·I, for views (m, v, d)."""
    from scipy.linalg import eigh

    m, v, d = views.shape
    step = max(1, BLOCK // (v * d))
    parts = [slice(i, i + step) for i in range(0, m, step)]
    middle = sum(views[part].sum((0, 1), dtype=np.float64) for part in parts) / (m * v)  # (d)
    sigma_b, sigma_w = np.zeros((d, d)), max(delta, 1e-12) * np.eye(d)
    for part in parts:
        x = views[part].astype(np.float64)
        means = x.mean(1)  # (r, d)
        between, within = means - middle, (x - means[:, None]).reshape(-1, d)
        sigma_b += between.T @ between / (m - 1)
        sigma_w += within.T @ within / (m * (v - 1))
    return np.maximum(eigh(sigma_b, sigma_w, eigvals_only=True), 0.0)
