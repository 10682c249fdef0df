"""Scores of a run on the training images that the adviser set aside. The test set is not read.

With labels: whether the rest's neighbors name each held-out image's class (kNN on h). Without:
LiDAR, RankMe, α-ReQ, alignment and uniformity of the held-out images.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from contrastive_core import metrics
from contrastive_core.data.augmentations import make_views
from contrastive_core.data.datasets import Dataset
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import BadSetting, CannotScore
from contrastive_core.evaluation.embed import data_of, embed_run, load_model
from contrastive_core.records.run import Run
from contrastive_core.storage import atomic

SHARE, MOST, FEWEST = (0.2, 2000, 40)  # of the training images; images at most; images in all at least
METRICS = {"h": ("knn", "rankme", "alpha_req", "lidar"), "z": ("uniformity", "tolerance", "alignment")}  # by layer
SEED = 11
VIEWED, VIEWS = 200, 8  # images and views of each that LiDAR and alignment are taken of


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """A run's scores on the held-out images, with `right` (n) where they have labels; or why it failed."""

    run: str
    scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # of its training and scoring
    right: np.ndarray | None = None
    failure: str = ""

    def value(self, criterion: str) -> float:
        return self.scores.get(criterion, float("nan"))


def held_out_rows(dataset: Dataset) -> np.ndarray:
    """Rows of train to set aside, rising: a fifth of each class, by a seed of its own.
    Raises BadSetting where too few images would be left."""
    n = len(dataset)
    if n < FEWEST:
        raise BadSetting(
            "{name} has {n} training images; at least {fewest} are needed, so that a fifth can "
            "be set aside to judge by",
            name=dataset.name,
            n=n,
            fewest=FEWEST,
        )
    rng, count = np.random.default_rng(SEED), min(MOST, round(SHARE * n))
    labels = dataset.labels
    known = np.unique(labels[labels >= 0])
    if len(known) == 1 and (labels >= 0).all():
        labels = np.full(n, -1)  # one class is as good as none
    order = rng.permutation(n)
    if not (labels >= 0).any():
        return np.sort(order[:count])
    chosen = []
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        chosen.append(rows[: max(1, round(count * len(rows) / n)) if len(rows) > 1 else 0])
    return np.sort(np.concatenate(chosen))


def write_ids(path: Path, dataset: Dataset, rows: np.ndarray) -> None:
    """The ids as `train --exclude` reads them."""
    text = "".join(f"{dataset.ids[i]}\n" for i in rows)
    atomic.write_bytes(path, text.encode("utf-8", "surrogateescape"))


def score_run(run: Run, rows: np.ndarray, device: str = "auto") -> HeldOutScores:
    """Scores of a run that is done; rows: those that were set aside."""
    results = {}
    graphs, views = Graphs(device), _views_of(run, rows, device)
    for layer, names in METRICS.items():
        train = embed_run(run, "train", layer, device)
        rest = train.take(np.setdiff1d(np.arange(len(train)), rows))
        test = replace(train.take(rows), views=views[layer])
        for name in names:
            with contextlib.suppress(CannotScore):
                results[name] = metrics.create(name)(rest, test, graphs)
    right = results["knn"].per_sample if "knn" in results else None
    return HeldOutScores(run.name, {name: result.value for name, result in results.items()}, right=right)


def _views_of(run: Run, rows: np.ndarray, device: str) -> dict[str, np.ndarray]:
    """h and z (m, v, d) of augmented views of the first of the rows."""
    dataset = data_of(run, "train")
    method = load_model(run, dataset, device)
    images = torch.from_numpy(np.asarray(dataset.images[rows[:VIEWED]]))
    views = make_views(images, method.recipe, VIEWS, torch.Generator().manual_seed(SEED))
    where = next(method.parameters()).device
    parts: dict[str, list[torch.Tensor]] = {"h": [], "z": []}
    with torch.no_grad():
        for part in views.flatten(0, 1).split(500):
            features = method.features(part.to(where))
            parts["h"].append(features.float().cpu())
            parts["z"].append(method.project(features).float().cpu())
    return {layer: torch.cat(x).reshape(len(images), VIEWS, -1).numpy() for layer, x in parts.items()}
