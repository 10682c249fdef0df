"""Silhouette: is a row nearer to its own class than to the next one? Rousseeuw 1987.

s = (b − a) / max(a, b), with a the mean distance to the other rows of its class and b the smallest mean distance to
another class; 0 for the only row of a class. Distances are Euclidean between unit rows. Block by block: neither n×n
distances nor n×c sums are kept. Above PAIRS pairs the mean is that of some rows, drawn once and said, each of which
meets all rows.
"""

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.device import pick_device
from contrastive_core.distributed.sharded_rows import Rows
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.messages import N_
from contrastive_core.metrics._base import Metric, MetricResult, labels_of, mean_interval, placed, sampled
from contrastive_core.ops.sampling import rows_of_sample
from contrastive_core.ops.similarity import unit_rows
from contrastive_core.records.embedding_set import EmbeddingSet

BLOCK, BASE = 1024, 8192  # rows that meet at a time
PAIRS = 1_024_000_000  # of 32,000 rows all, of a million 1,024 meet all
HELD = 1 << 23  # sums of distances by class that are held at a time, 64 MB


@dataclass(frozen=True)
class Silhouette(Metric):
    title = "Silhouette"
    reading = N_(
        "How much nearer a sample is to its own class than to the next (−1 to 1): 1 is tight, well-parted classes, 0 "
        "overlapping ones, below 0 a sample nearer to another class."
    )
    paper = "https://doi.org/10.1016/0377-0427(87)90125-7"
    needs_labels = True

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        assert test.labels is not None
        labels = labels_of(test, self.title, graphs.rows)
        rows = np.flatnonzero(labels >= 0)
        _, class_index = np.unique(labels[rows], return_inverse=True)
        x = _unit(test, pick_device(graphs.device))  # (m, d) of this part
        asked = rows_of_sample(len(rows), PAIRS // len(rows))
        s = _silhouettes(x, torch.from_numpy(class_index).to(x.device), asked, graphs.rows)
        extras = {"n": len(rows), "below_0": float((s < 0).mean())} | sampled(asked, len(rows))
        per_sample = placed(s, rows[asked], len(labels))
        return MetricResult(float(s.mean()), per_sample, mean_interval(s), "", extras)


def _unit(rows: EmbeddingSet, device: torch.device) -> torch.Tensor:
    """The labeled rows at length 1, (m, d) float32, with no second copy on the way."""
    assert rows.labels is not None
    at = np.flatnonzero(rows.labels >= 0)
    x = torch.empty(len(at), rows.width, device=device)
    for i in range(0, len(at), BASE):
        x[i : i + BASE] = unit_rows(rows.features[at[i : i + BASE]], device)
    return x


def _silhouettes(x: torch.Tensor, class_index: torch.Tensor, asked: np.ndarray, lie: Rows) -> np.ndarray:
    """Silhouettes of the rows `asked` (rising), float64, on every process. `x`: (m, d) of this part; others of all."""
    size = class_index.bincount().double()  # (c)
    first = lie.start(len(x))
    mine = asked[(asked >= first) & (asked < first + len(x))]
    group = max(1, HELD // len(size))
    values = [torch.empty(0, dtype=torch.float64, device=x.device)]
    for i in range(0, max(lie.each(len(mine))), group):  # all processes go round as often
        at = torch.from_numpy(mine[i : i + group]).to(x.device)
        values.append(_of_group(x, class_index, at, size, lie))
    return lie.whole(torch.cat(values).cpu().numpy())


def _of_group(
    x: torch.Tensor, class_index: torch.Tensor, at: torch.Tensor, size: torch.Tensor, lie: Rows
) -> torch.Tensor:
    """Silhouettes (g) of the rows `at`, numbers among all parts' rows that are of this part."""
    total, first = size.new_zeros(len(at), len(size)), lie.start(len(x))  # (g, c)
    for start, others in lie.blocks(x, BASE):
        others = others.double()
        here = class_index[start : start + len(others)]
        member = torch.nn.functional.one_hot(here, len(size)).double()  # (b, c)
        for i in range(0, len(at), BLOCK):
            rows = at[i : i + BLOCK]
            away = (2 - 2 * (x[rows - first].double() @ others.mT)).clamp_min_(0).sqrt_()  # (r, b)
            self_column = rows - start
            inside = (self_column >= 0) & (self_column < len(others))
            away[inside.nonzero()[:, 0], self_column[inside]] = 0
            total[i : i + BLOCK] += away @ member
    own = class_index[at, None]  # (g, 1)
    a = total.gather(1, own)[:, 0] / (size[own[:, 0]] - 1).clamp_min(1)
    b = total.div_(size).scatter_(1, own, torch.inf).amin(1)
    s = (b - a) / torch.maximum(a, b).clamp_min(torch.finfo(torch.float64).tiny)
    return torch.where(size[own[:, 0]] == 1, 0.0, s)
