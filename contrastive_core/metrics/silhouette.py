"""Silhouette: whether a row is nearer to its own class than to the next one. Rousseeuw 1987.

s = (b − a) / max(a, b), with a the mean distance to the other rows of its class and b the smallest mean distance to
another class; 0 for the only row of a class. Distances are Euclidean between unit rows. Computed block by block:
neither n×n distances nor n×c sums are kept. Above PAIRS pairs the mean is over a fixed random sample of rows, each
compared with all rows; the record says so.

A row affects its own s and those of rows that measure their distance to its class. Its influence is the derivative of
the mean by the row's weight (an infinitesimal jackknife): Σ over the other rows i of ∂s_i/∂a_i or ∂s_i/∂b_i times the
deviation of its distance from that mean distance, divided by the size of its class. It needs a second pass over the
pairs."""

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.base.device import pick_device
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.base.messages import N_
from contrastive_core.base.score import INFLUENCE
from contrastive_core.metrics._base import Metric, MetricResult, labels_of, mean_interval, placed, sampled
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs, unit_rows

BLOCK, BASE = 1024, 8192  # rows that meet at a time
PAIRS = 1_024_000_000  # of 32,000 rows all, of a million 1,024 meet all
TINY = 1e-12  # the least distance that is divided by
HELD = 1 << 23  # sums of distances by class that are held at a time, 64 MB


@dataclass(frozen=True)
class Silhouette(Metric):
    title = N_("Silhouette")
    reading = N_(
        "How much nearer a sample is to its own class than to the next, from −1 to 1. At 1 classes are tight and "
        "well separated, at 0 they overlap. Below 0 the sample is nearer to another class."
    )
    paper = "https://doi.org/10.1016/0377-0427(87)90125-7"
    needs_labels = True

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        labels = labels_of(test, self.title)
        rows = np.flatnonzero(labels >= 0)
        _, class_index = np.unique(labels[rows], return_inverse=True)
        device = pick_device(graphs.device)
        x = torch.empty(len(rows), test.features.shape[1], device=device)  # (m, d), without a second copy of all rows
        for i in range(0, len(rows), BASE):
            x[i : i + BASE] = unit_rows(test.features[rows[i : i + BASE]], device)
        asked = rows_of_sample(len(rows), PAIRS // len(rows))
        class_of = torch.from_numpy(class_index).to(x.device)
        size = class_of.bincount().double()  # (c)
        on_others = size.new_zeros(len(rows))  # each row's influence on the silhouettes of others
        group = max(1, HELD // len(size))
        groups = (torch.from_numpy(asked[i : i + group]).to(x.device) for i in range(0, len(asked), group))
        values = [size.new_empty(0), *(_of_group(x, class_of, at, size, on_others) for at in groups)]
        s, moved = torch.cat(values).cpu().numpy(), on_others.cpu().numpy()
        value, each = float(s.mean()), len(rows) / len(asked)
        influence = value + each * (moved + placed(s - value, asked, len(rows), 0.0))
        extras = {"n": len(rows), "below_0": float((s < 0).mean())} | sampled(asked, len(rows))
        per_sample = placed(s, rows[asked], len(labels))
        arrays = {INFLUENCE: placed(influence, rows, len(labels))}
        return MetricResult(value, per_sample, mean_interval(influence, value), "", extras, arrays)


def _of_group(
    x: torch.Tensor, class_index: torch.Tensor, at: torch.Tensor, size: torch.Tensor, moved: torch.Tensor
) -> torch.Tensor:
    """Return the silhouettes (g) of the rows `at`, and add each row's (m) influence on them to `moved`."""
    total = size.new_zeros(len(at), len(size))  # (g, c)
    for start in range(0, len(x), BASE):
        others = x[start : start + BASE].double()
        here = class_index[start : start + len(others)]
        member = torch.nn.functional.one_hot(here, len(size)).double()  # (b, c)
        for i in range(0, len(at), BLOCK):
            rows = at[i : i + BLOCK]
            away = (2 - 2 * (x[rows].double() @ others.mT)).clamp_min_(0).sqrt_()  # (r, b)
            self_column = rows - start
            inside = (self_column >= 0) & (self_column < len(others))
            away[inside.nonzero()[:, 0], self_column[inside]] = 0
            total[i : i + BLOCK] += away @ member
    own = class_index[at, None]  # (g, 1)
    rest = (size[own] - 1).clamp_min(1)
    a = total.gather(1, own) / rest  # (g, 1)
    b, next_class = total.div_(size).scatter_(1, own, torch.inf).min(1, keepdim=True)
    larger = torch.maximum(a, b).clamp_min(TINY)
    flat, alone = torch.minimum(a, b) / larger.square(), size[own] == 1
    by_a = torch.where(alone, 0.0, -torch.where(a < b, 1 / larger, flat) / rest)  # ∂s of one row's distance
    by_b = torch.where(alone, 0.0, torch.where(a < b, flat, 1 / larger) / size[next_class])
    weight = total.zero_().scatter_(1, own, by_a).scatter_(1, next_class, by_b)  # (g, c)
    middle = torch.zeros_like(size).index_add_(0, own[:, 0], (by_a * a)[:, 0])
    for start in range(0, len(x), BASE):  # each row's distances from `at`; float32 suffices for an interval
        others = x[start : start + BASE]
        here = class_index[start : start + len(others)]
        for i in range(0, len(at), BLOCK):
            away = (2 - 2 * (x[at[i : i + BLOCK]] @ others.mT)).clamp_min_(0).sqrt_()  # (r, b)
            away *= weight[i : i + BLOCK].float()[:, here]
            moved[start : start + len(others)] += away.sum(0, dtype=torch.float64)
    moved -= middle.index_add_(0, next_class[:, 0], (by_b * b)[:, 0])[class_index]
    moved[at] += (by_a * a)[:, 0]  # a row is no distance of its own
    return torch.where(alone, 0.0, (b - a) / larger)[:, 0]
