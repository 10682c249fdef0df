"""RankMe: the effective number of dimensions. https://arxiv.org/abs/2210.02885. exp of the entropy of the singular
values of the features, scaled to sum 1. Deviation: the squared singular values come from the d×d Gram matrix in
float64, and those below its rounding error count as zero instead of adding the paper's 1e-7 to each."""

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

BLOCK = 8192
SHOWN = 128  # singular values kept in the record, the largest being 1


@dataclass(frozen=True)
class RankMe(Metric):
    title = "RankMe"
    reading = N_(
        "The effective rank: how many dimensions the embedding uses, from 1 (collapsed to a line) to its width. A "
        "fall alone does not mean collapse. In 10 of the 12 shipped runs on shapes it fell while kNN accuracy rose. "
        "With dense tasks such as segmentation it correlates negatively (arXiv 2510.17299)."
    )
    paper = "https://arxiv.org/abs/2210.02885"
    unit_rows = False

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        values = spectrum(test.features, graphs.device)
        if not values[0] > 0:
            raise CannotScore(N_("RankMe needs a row that is not zero"))
        n, rank = len(test), int((values > 0).sum())
        shown = (values / values[0])[:SHOWN].tolist()
        extras = {"width": test.width, "n": n, "rank": rank, "spectrum": shown}
        return MetricResult(effective_rank(values), unit="dimensions", extras=extras, arrays={"spectrum": values})


def effective_rank(values: np.ndarray) -> float:
    """Return exp of the entropy of values ≥ 0 (d), scaled to sum 1."""
    share = values[values > 0] / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def spectrum(features: np.ndarray, device: str = "auto", center: np.ndarray | None = None) -> np.ndarray:
    """Return the singular values of (n, d) features, descending, in float64; those below the rounding error are 0.
    `center` (d) is subtracted from each row first."""
    n, d = features.shape
    if center is not None and d > n:
        features, center = (features - center).astype(np.float32), None
    rows = features if d <= n else features.T  # the smaller Gram matrix has the same values
    gram = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64, device=pick_device(device))
    for start in range(0, len(rows), BLOCK):
        block = np.array(rows[start : start + BLOCK])  # a copy: a map of a file cannot be written
        if center is not None:
            block = (block - center).astype(np.float32)
        part = torch.from_numpy(block).to(gram.device).double()
        gram += part.mT @ part
    squares = torch.linalg.eigvalsh(gram).flip(0).cpu().numpy()
    floor = squares[0] * len(squares) * np.finfo(np.float64).eps
    return np.sqrt(np.where(squares > floor, squares, 0))
