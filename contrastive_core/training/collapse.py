"""Whether an embedding collapses while it is trained, and the likely reason.

Deviations are those of unit rows times √d, as SimSiam (arXiv 2011.10566, fig. 2) plots them: 1 for rows that are spread
evenly, 0 for one point. A random encoder starts near 0 and a healthy run rises within a few epochs, so a low value
alone says nothing: it has to have fallen, or to stay low for long. Measured on digits and shapes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from contrastive_core.distributed import collectives
from contrastive_core.losses import Loss
from contrastive_core.messages import message
from contrastive_core.methods import Method
from contrastive_core.metrics.rankme import effective_rank, spectrum
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.train_config import TrainConfig

LOW, FALL = 0.2, 0.4  # an embedding has fallen that is below LOW, and below this share of its highest deviation
FALLEN = 10  # lines in a row
ONE_POINT = 0.1  # deviation below which rows are nearly one point; a random encoder may start there
NEVER_RISEN = 200  # lines in a row
ONE_DIMENSION = 1.2  # effective rank of z below which there is only one; a healthy run with two measured 1.6
LOW_RANKS = 2  # epochs in a row
SMALL_BATCH = 8
ANTI_COLLAPSE = {"variance": 25, "trade_off": 0.05, "off_diagonal": 0.005}  # knobs of losses, with their defaults


@torch.no_grad()
def spread_of(pairs: Pairs) -> dict[str, float]:
    """Mean and least deviation of the dimensions of a global batch: of z, not of what a predictor makes of it. All
    processes call it together."""
    rows = pairs.candidates if pairs.across else pairs.anchors  # anchors are those of this process
    mean, least = deviations(rows, collectives.all_reduce_sum)
    return {"z_std": mean, "z_std_least": least}


def deviations(rows: Tensor, total: Callable[[Tensor], Tensor] = lambda x: x) -> tuple[float, float]:
    """Mean and least deviation, times √d, of the dimensions of rows (n, d) scaled to length 1. `total` adds up what
    every process has."""
    unit = torch.nn.functional.normalize(rows.float(), dim=1)
    n = total(unit.new_full((), len(unit)))
    centered = unit - total(unit.sum(0)) / n
    std = (total(centered.square().sum(0)) / n).sqrt() * unit.shape[1] ** 0.5  # (d)
    mean, least = torch.stack([std.mean(), std.min()]).tolist()  # one wait for the device
    return mean, least


def dimension_scores(z: np.ndarray) -> dict[str, float]:
    """Of a sample's rows z (n, d): mean and least deviation, effective rank, and mean |correlation| of dimensions."""
    mean, least = deviations(torch.from_numpy(z))
    scores = {"z_std": mean, "z_std_least": least}
    centered = z - z.mean(0)
    varies = centered.std(0) > 1e-6 * max(1e-6, float(np.abs(z).max()))
    if len(z) < 2 or varies.sum() < 2:
        return scores
    scores["z_rank"] = effective_rank(spectrum(centered, "cpu"))
    columns = centered[:, varies] / centered[:, varies].std(0)  # (n, v)
    correlation, v = np.abs(columns.T @ columns) / len(z), int(varies.sum())
    return scores | {"z_correlation": float((correlation.sum() - np.trace(correlation)) / (v * (v - 1)))}


@dataclass
class CollapseWatch:
    """Follows the deviations of a run; `is_collapsed` once they have fallen, or have never risen."""

    highest: float = 0.0
    fallen_lines: int = 0  # in a row
    low_lines: int = 0
    low_ranks: int = 0  # epochs
    is_collapsed: bool = False

    def see(self, line: dict[str, float]) -> None:
        """Take in a line of the metrics, of a step or of an epoch."""
        if "z_rank" in line:
            self.low_ranks = self.low_ranks + 1 if line["z_rank"] < ONE_DIMENSION else 0
        elif "z_std" in line:
            z_std = line["z_std"]
            self.highest = max(self.highest, z_std)
            self.fallen_lines = self.fallen_lines + 1 if z_std < min(LOW, FALL * self.highest) else 0
            self.low_lines = self.low_lines + 1 if z_std < ONE_POINT else 0
        self.is_collapsed = self.is_one_point or self.low_ranks >= LOW_RANKS

    @property
    def is_one_point(self) -> bool:
        return self.fallen_lines >= FALLEN or self.low_lines >= NEVER_RISEN


def warning(watch: CollapseWatch, config: TrainConfig, method: Method, loss: Loss) -> str:
    """What is said of a collapsed run, with the likely reason and the remedy."""
    reason = likely_reason(config, method, loss)
    if not watch.is_one_point:
        return message("the embedding is collapsing to one dimension. Likely reason: {reason}", reason=reason)
    return message("the embedding is collapsing to one point. Likely reason: {reason}", reason=reason)


def likely_reason(config: TrainConfig, method: Method, loss: Loss) -> str:
    """Why an embedding collapses, from the settings, and what to change."""
    if not getattr(method.settings, "stop_gradient", True):
        return message("the stop-gradient is off; use --set method.stop_gradient=on")
    if not getattr(method.settings, "predictor", True):
        return message("there is no predictor; use --set method.predictor=on")
    for name, default in ANTI_COLLAPSE.items():
        if getattr(loss, name, None) == 0:
            return message("{name} is 0; use --set loss.{name}={default}", name=name, default=default)
    if config.loss == "negative_cosine" and "predictor" not in method.card.uses:
        return message(
            "negative_cosine has no negatives and {method} has no predictor; choose byol or simsiam, or another loss",
            method=config.method,
        )
    if (config.batch_size or 0) < SMALL_BATCH:
        return message("a batch of {size} images is small; use --set batch_size=64 or more", size=config.batch_size)
    return message("the learning rate may be too high; use --set lr={lr}", lr=f"{(config.lr or 0) / 10:.1g}")
