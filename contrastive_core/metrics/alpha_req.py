"""α-ReQ: how fast the eigenvalues of the features' covariance decay. Agrawal et al., NeurIPS 2022,
https://arxiv.org/abs/2202.05808.

In many trained embeddings the j-th largest eigenvalue is about j^−α. α is the slope of a weighted line through (log j,
log λⱼ), with weights 1/j, as the authors fit it. Deviation: the line begins at the third eigenvalue and ends at the
hundredth, or earlier where float32 rounding exceeds the eigenvalues."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.metrics._base import Metric, MetricResult
from contrastive_core.metrics.rankme import spectrum
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

FIRST, LAST = 3, 100  # eigenvalues that the line goes through, counted from 1
FEWEST = 5  # of them
ROUNDING = 1e-10  # of the largest eigenvalue: the square of float32's


@dataclass(frozen=True)
class AlphaReQ(Metric):
    title = "α-ReQ"
    reading = N_(
        "How fast the spectrum falls. Embeddings that transfer well have an exponent near 1. Well above 1, few "
        "dimensions are used; well below 1, the rows are close to noise. With dense tasks such as segmentation it "
        "correlates negatively (arXiv 2510.17299)."
    )
    paper = "https://arxiv.org/abs/2202.05808"
    unit_rows = False
    higher_is_better = None

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        n = len(test)
        center = test.features.sum(0, dtype=np.float64) / n
        values = spectrum(test.features, graphs.device, center) ** 2 / n
        exponent, used = slope(values)
        return MetricResult(exponent, extras={"n": n, "eigenvalues": used})


def slope(values: np.ndarray) -> tuple[float, int]:
    """Return α of eigenvalues in descending order, and the number of fitted eigenvalues. Raises CannotScore."""
    kept = values[FIRST - 1 : LAST]
    kept = kept[kept > ROUNDING * values[0]] if values[0] > 0 else kept[:0]
    if len(kept) < FEWEST:
        facts = {"fewest": FEWEST, "first": FIRST - 1, "kept": len(kept)}
        raise CannotScore("α-ReQ needs {fewest} dimensions that vary after the first {first}; got {kept}", **facts)
    j = np.arange(FIRST, FIRST + len(kept))
    line = np.polyfit(np.log(j), np.log(kept), 1, w=np.sqrt(1 / j))
    return float(-line[0]), len(kept)
