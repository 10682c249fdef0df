"""What others find of planted errors: scores (n), higher where the suspicion is stronger."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cleanlab.internal.neighbor.knn_graph import create_knn_graph_and_index
from cleanlab.outlier import OutOfDistribution
from cleanlab.rank import get_label_quality_scores
from PIL import Image
from scipy.fft import dctn
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

__all__ = ["duplicate_peers", "label_peers", "outlier_peers"]

LABEL_SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
K = 20  # neighbors, as in our lists
Scores = dict[str, np.ndarray]


def label_peers(labels: np.ndarray, p: np.ndarray) -> Scores:
    """cleanlab's label scores, of class probabilities (n, classes)."""
    return {m: -get_label_quality_scores(labels, p, method=m) for m in LABEL_SCORES}


def outlier_peers(features: np.ndarray, pixels: np.ndarray) -> Scores:
    """cleanlab's, the local outlier factor and the distance to K rows, on features and pixels."""
    scores = {}
    for name, x in (("features", features), ("pixels", pixels)):
        scores[f"cleanlab, {name}"] = -OutOfDistribution().fit_score(features=x, verbose=False)
        lof = LocalOutlierFactor(n_neighbors=K).fit(x)
        scores[f"LocalOutlierFactor, {name}"] = -lof.negative_outlier_factor_
        distance, _ = NearestNeighbors(n_neighbors=K).fit(x).kneighbors()
        scores[f"kNN distance, {name}"] = distance.mean(1)
    return scores


def duplicate_peers(
    features: Sequence[np.ndarray],
    untrained: Sequence[np.ndarray],
    pixels: Sequence[np.ndarray],
    images: Sequence[np.ndarray],
) -> Scores:
    """cleanlab's, cosine on other features, and a perceptual hash; each (train, test).

    Of the training rows, by the nearest row of either split.
    """
    n = len(features[0])
    graph, _ = create_knn_graph_and_index(np.concatenate(features))
    near = np.asarray(graph.min(1, explicit=True).todense()).ravel()[:n]
    bits = np.stack([_hash(image) for split in images for image in split])
    scores = {"cleanlab": -near}
    for name, x, metric in (
        ("cosine", np.concatenate(features), "cosine"),
        ("cosine, random encoder", np.concatenate(untrained), "cosine"),
        ("cosine, pixels", np.concatenate(pixels), "cosine"),
        ("perceptual hash", bits, "hamming"),
    ):
        distance, _ = NearestNeighbors(n_neighbors=1, metric=metric).fit(x).kneighbors()
        scores[name] = -distance[:n, 0]
    return scores


def _hash(image: np.ndarray) -> np.ndarray:
    """64 bits of an image (c, h, w): which of its lowest frequencies are above their median, on 32
    by 32 gray pixels (pHash, Zauner 2010)."""
    gray = Image.fromarray(np.moveaxis(image, 0, 2).squeeze()).convert("L").resize((32, 32))
    low = dctn(np.asarray(gray, np.float64))[:8, :8]
    return np.asarray(low > np.median(low)).ravel()
