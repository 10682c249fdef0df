"""Principal components of an embedding, by numpy, fast enough for pages."""

import numpy as np

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_

BLOCK = 1 << 24  # numbers that are centered at a time
LEAST = 1e-6  # of the first axis's variance; in float32 a sampled axis of less is noise


def pca(features: np.ndarray, components: int = 2, at_most: int | None = None) -> np.ndarray:
    """Return scores (n, components) on the leading principal axes, float32; signs are fixed. Missing components (fewer
    columns or rows) are zero. `features`: (n, d); `at_most`: if both n and d are larger, the axes are computed from
    that many rows, chosen by a fixed seed. Raises UnusableEmbedding for values that are not finite."""
    n, d = features.shape
    step = max(1, BLOCK // d)
    parts = [slice(i, i + step) for i in range(0, n, step)]
    total = np.zeros(d)
    for part in parts:
        total += np.asarray(features[part], np.float32).sum(0, dtype=np.float64)
    if not np.isfinite(total).all():
        raise UnusableEmbedding(N_("some rows hold values that are not finite"))
    mean = (total / n).astype(np.float32)

    def centered(at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(features[at], np.float32) - mean

    if at_most is not None and at_most < min(n, d):
        some = centered(np.random.default_rng(0).permutation(n)[:at_most])
        values, left_vectors = _leading(some @ some.T, components)
        lengths = np.where(values > LEAST * values[0], np.sqrt(values), np.inf)
        axes = ((some.T @ left_vectors) / lengths).astype(np.float32)  # of length 1
        scores = np.concatenate([centered(part) @ axes for part in parts])
    elif d <= n:
        gram = np.zeros((d, d), np.float32)
        for x in map(centered, parts):
            gram += x.T @ x
        axes = _leading(gram, components)[1].astype(np.float32)
        scores = np.concatenate([centered(part) @ axes for part in parts])
    else:
        x = centered(slice(None))
        values, left_vectors = _leading(x @ x.T, components)
        scores = (left_vectors * np.sqrt(values)).astype(np.float32)
    out = np.zeros((n, components), np.float32)
    out[:, : scores.shape[1]] = scores
    columns = np.arange(components)
    return np.where(out[np.abs(out).argmax(0), columns] < 0, -out, out)


def _leading(symmetric: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues (c), at least 0, and their vectors (m, c), in float64."""
    values, vectors = np.linalg.eigh(symmetric.astype(np.float64))
    return values[::-1][:count].clip(0), vectors[:, ::-1][:, :count]
