"""What a run is worth on the part of train that the adviser set aside. The test set is not read.

With labels: whether the rest's neighbors name each held-out image's class (kNN on h). Without:
LiDAR, RankMe, α-ReQ, alignment and uniformity of the held-out images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.runs import Run
from contrastive_core.storage import atomic, records

__all__ = ["AGREEMENT", "CRITERIA", "Judged", "held_out", "judge", "keep", "kept", "write_ids"]

SHARE, MOST, FEWEST = (
    0.2,
    2000,
    40,
)  # of the training images; images at most; images in all at least
SEED = 11
VIEWED, VIEWS = 200, 8  # images and views of each that LiDAR and alignment are taken of
CRITERIA = {"knn": "kNN on held-out images", "lidar": "LiDAR of held-out images"}
AGREEMENT = (  # benchmarks/adviser.py: seven temperatures, three seeds each
    "LiDAR stands in for labels: over temperatures its rank correlation with kNN was +0.74 on "
    "digits, +0.76 on six animals and +0.57 on ten classes of CIFAR-10 (RankMe's +0.62, +0.77 and "
    "+0.88), so that it is a hint, not a proof."
)


@dataclass(frozen=True, eq=False)
class Judged:
    """A run's figures on the held-out images; `right` (n) where they have labels."""

    run: str
    scores: dict[str, float]
    seconds: float  # of its training and judging
    right: np.ndarray | None = None

    def value(self, criterion: str) -> float:
        return self.scores.get(criterion, float("nan"))


def held_out(dataset: Dataset) -> np.ndarray:
    """Rows of train to set aside, rising: a fifth of each class, by a seed of its own.

    Raises BadSetting where too few images would be left.
    """
    n = len(dataset)
    if n < FEWEST:
        raise BadSetting(
            f"{dataset.name} has {n} training images; at least {FEWEST} are needed, so that a "
            "fifth can be set aside to judge by"
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


def judge(run: Run, rows: np.ndarray, device: str = "auto") -> Judged:
    """Figures of a run that is done; rows: those that were set aside."""
    from contrastive_core import metrics
    from contrastive_core.embeddings.graphs import Graphs
    from contrastive_core.errors import CannotScore
    from contrastive_core.evaluation.embed import embed_run

    scores: dict[str, float] = {}
    right = None
    graphs = Graphs(device)
    views = _views_of(run, rows, device)
    for layer in "hz":
        train = embed_run(run, "train", layer, device)
        rest = np.setdiff1d(np.arange(len(train)), rows)
        test = replace(train.take(rows), views=views[layer])
        names = ["uniformity", "tolerance", "alignment"] if layer == "z" else []
        names += ["knn", "rankme", "alpha_req", "lidar"] if layer == "h" else []
        for name in names:
            try:
                result = metrics.create(name)(train.take(rest), test, graphs)
            except CannotScore:
                continue
            scores[name] = result.value
            if name == "knn":
                right = result.per_sample
    return Judged(run.name, scores, 0.0, right)


def _views_of(run: Run, rows: np.ndarray, device: str) -> dict[str, np.ndarray]:
    """h and z (m, v, d) of augmented views of the first of the rows."""
    import torch

    from contrastive_core.data.augmentations import make_views
    from contrastive_core.evaluation.embed import data_of, load_model

    dataset = data_of(run, "train")
    method = load_model(run, dataset, device)
    images = torch.from_numpy(np.asarray(dataset.images[rows[:VIEWED]]))
    views = make_views(images, method.recipe, VIEWS, torch.Generator().manual_seed(SEED))
    where = next(method.parameters()).device
    h, z = [], []
    with torch.no_grad():
        for part in views.flatten(0, 1).split(500):
            features = method.features(part.to(where))
            h.append(features.float().cpu())
            z.append(method.project(features).float().cpu())
    both = {"h": torch.cat(h), "z": torch.cat(z)}
    return {k: v.reshape(len(images), VIEWS, -1).numpy() for k, v in both.items()}


def keep(folder: Path, judged: Judged) -> None:
    """Write the figures where `kept` finds them."""
    arrays = {} if judged.right is None else {"right": judged.right.astype(np.float32)}
    records.write_npz(folder / f"{judged.run}.npz", **arrays)
    about = {"run": judged.run, "scores": judged.scores, "seconds": judged.seconds}
    records.write_json(folder / f"{judged.run}.json", about)  # last


def kept(folder: Path, run: str) -> Judged | None:
    """Figures of a run as they were written; None where there are none, or they are damaged."""
    try:
        about = records.read_json(folder / f"{run}.json")
        arrays = records.read_npz(folder / f"{run}.npz")
        scores = {str(k): float(v) for k, v in about["scores"].items()}
        return Judged(run, scores, float(about["seconds"]), arrays.get("right"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
