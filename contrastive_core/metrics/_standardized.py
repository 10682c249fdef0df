"""Features standardized to mean 0 and standard deviation 1 on the training rows, read in blocks."""

import numpy as np
import torch
from torch import Tensor

BLOCK = 1 << 21  # numbers that are read at a time


class Moments:
    """Mean and deviation (d) of the columns of (n, d) features, in float64 by blocks; `index`: the rows to use."""

    def __init__(self, features: np.ndarray, index: np.ndarray | None = None) -> None:
        count = len(features) if index is None else len(index)
        d = features.shape[1]
        step = max(1, BLOCK // d)
        parts = [slice(i, i + step) for i in range(0, count, step)]

        def total(center: np.ndarray | None) -> np.ndarray:
            sums = np.zeros(d)
            for part in parts:
                block = np.asarray(features[part if index is None else index[part]], np.float64)
                sums += block.sum(0) if center is None else np.square(block - center).sum(0)
            return sums / count

        self.mean = total(None)
        self.deviation = np.sqrt(total(self.mean))

    @property
    def scale(self) -> np.ndarray:
        """The factor (d) that scales each column to standard deviation 1; 0 for a constant column."""
        varies = self.deviation > 1e-12 * (1 + np.abs(self.mean))
        return np.divide(1, self.deviation, out=np.zeros_like(self.mean), where=varies)


class Standardized:
    """Features (n, d) that are read and standardized in float32 when indexed. In float32 the difference from a large
    mean is exact, and rounding the mean shifts all rows equally."""

    dtype = torch.float32

    def __init__(
        self, features: np.ndarray, moments: Moments, device: torch.device, index: np.ndarray | None = None
    ) -> None:
        self.features, self.device, self.index = features, device, index
        count = len(features) if index is None else len(index)
        self.shape = torch.Size((count, features.shape[1]))
        self._mean, self._scale = (torch.from_numpy(v).float().to(device) for v in (moments.mean, moments.scale))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        at = rows if isinstance(rows, slice) else rows.cpu().numpy()
        block = np.array(self.features[at if self.index is None else self.index[at]], np.float32)
        return torch.from_numpy(block).to(self.device).sub_(self._mean).mul_(self._scale)
