"""Alignment: how close positive pairs are. https://arxiv.org/abs/2005.10242. The mean of ‖x−y‖² over positive pairs on
the unit sphere. The positive pairs are augmented views of one image if the embedding has views, partners if it has two
towers, and otherwise rows of one class (by class sums, O(n·d), block by block)."""

from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import N_
from contrastive_core.base.score import INFLUENCE
from contrastive_core.metrics._base import Metric, MetricResult, mean_interval, pairs_influence
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs, unit_rows
from contrastive_core.spaces.towers import Towers, towers_of

BLOCK = 8192  # rows in float64 at a time


@dataclass(frozen=True)
class Alignment(Metric):
    title = N_("Alignment")
    reading = N_(
        "Mean squared distance of positive pairs on the unit sphere, from 0 to 4. A low value is good only with a "
        "low uniformity: a collapsed embedding has 0."
    )
    paper = "https://arxiv.org/abs/2005.10242"
    higher_is_better = False

    def score(self, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> MetricResult:
        if test.views is not None:
            m, v, d = test.views.shape
            if v < 2:
                raise CannotScore(N_("Alignment needs two views of an image; got one"))
            means, (i, j), step = [], np.triu_indices(v, 1), max(1, BLOCK // v)
            for start in range(0, m, step):
                some = test.views[start : start + step].reshape(-1, d)
                x = unit_rows(some, pick_device(graphs.device)).double().reshape(-1, v, d)
                means.append((x[:, i] - x[:, j]).square().sum(2).mean(1).cpu().numpy())
            per_image = np.concatenate(means)  # (m)
            about = {"pairs": N_("augmented views"), "images": m}
            interval = mean_interval(per_image)
            return MetricResult(float(per_image.mean()), None, interval, N_("squared distance"), about)
        if (towers := towers_of(test)) is not None:
            return _of_towers(towers)
        if test.labels is None:
            raise CannotScore(N_("Alignment needs augmented views or labels"))
        per_sample, partners = same_class(test, pick_device(graphs.device))
        total = partners.sum()
        if not total:
            raise CannotScore(N_("Alignment needs a class with two rows"))
        value = float((np.nan_to_num(per_sample) * partners).sum() / total)
        about = {"pairs": N_("same class"), "n": len(partners)}
        influence = pairs_influence(value, per_sample, partners)
        interval, unit = mean_interval(influence, value), N_("squared distance")
        return MetricResult(value, per_sample, interval, unit, about, {INFLUENCE: influence})


def _of_towers(towers: Towers) -> MetricResult:
    """Return the mean ‖x−y‖² over partners. The rows of the tower with more paired rows count as independent."""
    rows = unit_rows(towers.rows.features, torch.device("cpu")).double().numpy()
    sides = ((towers.a, towers.group_a), (towers.b, towers.group_b))
    number = 1 + max(group.max(initial=-1) for _, group in sides)
    sums, counts = np.zeros((2, number, rows.shape[1])), np.zeros((2, number))
    for side, (at, group) in enumerate(sides):
        np.add.at(sums[side], group[group >= 0], rows[at[group >= 0]])
        counts[side] = np.bincount(group[group >= 0], minlength=number)
    if not number:
        raise CannotScore(N_("Alignment needs rows with a partner in the other tower"))
    per_sample, partners = np.full(len(rows), np.nan), np.zeros(len(rows))
    for side, (at, group) in enumerate(sides):
        paired, of = at[group >= 0], group[group >= 0]
        partners[paired] = counts[1 - side][of]
        dots = (rows[paired] * sums[1 - side][of]).sum(1)
        per_sample[paired] = np.maximum(2 - 2 * dots / partners[paired], 0)
    queries = max(sides, key=lambda each: (each[1] >= 0).sum())[0]
    queries = queries[partners[queries] > 0]
    value = float(np.average(per_sample[queries], weights=partners[queries]))
    influence = np.full(len(rows), np.nan)
    share = partners[queries] / partners[queries].mean()
    influence[queries] = value + share * (per_sample[queries] - value)
    about = {"pairs": N_("partners"), "n": len(queries)}
    interval, unit = mean_interval(influence, value), N_("squared distance")
    return MetricResult(value, per_sample, interval, unit, about, {INFLUENCE: influence})


def same_class(rows: EmbeddingSet, device: torch.device | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's mean ‖x−y‖² to the other rows of its class (NaN without any) and their number; (n) each."""
    n, where = len(rows), device or torch.device("cpu")
    labels = np.full(n, -1) if rows.labels is None else rows.labels
    classes, count = np.unique(labels, return_counts=True)
    class_index = torch.from_numpy(np.searchsorted(classes, labels)).to(where)  # (n)
    parts = [slice(i, i + BLOCK) for i in range(0, n, BLOCK)]
    sums = torch.zeros(len(classes), rows.width, dtype=torch.float64, device=where)
    for part in parts:
        sums.index_add_(0, class_index[part], unit_rows(rows.features[part], where).double())
    dots = np.empty(n)  # Σ over the others
    for part in parts:
        x = unit_rows(rows.features[part], where).double()
        dots[part] = ((sums[class_index[part]] - x) * x).sum(1).cpu().numpy()
    others = np.where(labels >= 0, count[class_index.cpu().numpy()] - 1, 0)
    mean = np.where(others > 0, np.maximum(2 - 2 * dots / np.maximum(others, 1), 0), np.nan)
    return mean, others
