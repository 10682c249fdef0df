"""All triplets of a batch, forward and backward, beside pytorch-metric-learning.

    python -m benchmarks.triplet [--rows 128 256 512] [--threads CORES]

Ours sorts each anchor's distances (n² log n); the peer lists every triplet (n³).
"""

from __future__ import annotations

from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import MeanReducer

from benchmarks._metric_learning import beside
from contrastive_core import losses


def main() -> None:
    beside(
        "triplet",
        "all triplets",
        losses.create("triplet"),
        TripletMarginLoss(0.2, distance=LpDistance(power=2), reducer=MeanReducer()),
        classes=lambda n: n // 8,
        rows=(128, 256, 512),
        goals={256: 7.0},
        about=str(__doc__),
    )


if __name__ == "__main__":
    main()
