"""Smooth lifted structure, forward and backward, beside pytorch-metric-learning.

    python -m benchmarks.lifted [--rows 64 128 256] [--threads CORES]

Ours adds two row sums per positive pair; the peer builds a row of negatives for every pair.
"""

from __future__ import annotations

from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import LiftedStructureLoss

from benchmarks._metric_learning import beside
from contrastive_core import losses


def main() -> None:
    beside(
        "lifted",
        "lifted structure",
        losses.create("lifted_structure"),
        LiftedStructureLoss(1.0, 0.0, distance=LpDistance(normalize_embeddings=False)),
        classes=lambda n: n // 4,
        rows=(64, 128, 256),
        goals={64: 30.0},
        about=str(__doc__),
    )


if __name__ == "__main__":
    main()
