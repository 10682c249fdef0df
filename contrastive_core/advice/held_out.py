"""Scores on the training images that the adviser set aside, of a run and of settings. The test set is not read. With
labels: whether the rest's neighbors name each held-out image's class (kNN on h). Without: LiDAR, RankMe, α-ReQ,
alignment and uniformity of the held-out images."""

import contextlib
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from contrastive_core import metrics
from contrastive_core.advice.candidates import Candidate
from contrastive_core.data.augmentations import make_views
from contrastive_core.data.datasets import Dataset
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.errors import BadSetting, CannotScore
from contrastive_core.evaluation.embed import data_of, embed_run, load_model
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.records.run import Run
from contrastive_core.storage import atomic, json_files

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
    """Rows of train to set aside, rising: a fifth of each class. Raises BadSetting where too few would be left."""
    n = len(dataset)
    if n < FEWEST:
        values = {"name": dataset.name, "n": n, "fewest": FEWEST}
        raise BadSetting(
            "{name} has {n} training images; at least {fewest} are needed, because one fifth is held out", **values
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


# --- settings that are tried -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trial:
    """Some settings, and their scores by epochs and seed."""

    label: str
    settings: dict[str, object]
    value: float | None  # its place on the curve of the question, if there is one
    scores: dict[tuple[int, int], HeldOutScores] = field(default_factory=dict)  # by epochs, seed

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:6]

    @property
    def is_default(self) -> bool:
        return not self.settings

    @property
    def failure(self) -> str:
        """Why a training of these settings failed; "" where none did."""
        return next((s.failure for s in self.scores.values() if s.failure), "")

    @property
    def epochs(self) -> int:
        """The most epochs that it was scored after; 0: none."""
        return max((e for (e, _), s in self.scores.items() if not s.failure), default=0)

    def by_seed(self, epochs: int) -> dict[int, HeldOutScores]:
        """Scores after so many epochs, by seed, rising."""
        return {seed: s for (e, seed), s in sorted(self.scores.items()) if e == epochs and not s.failure}

    def of_criterion(self, epochs: int, criterion: str) -> SettingScores:
        """The same as `verdicts` compares them."""
        by_seed = self.by_seed(epochs)
        right = {seed: s.right for seed, s in by_seed.items() if s.right is not None}
        return SettingScores(self.label, {seed: s.value(criterion) for seed, s in by_seed.items()}, right)


def trial_of(choice: Mapping[str, Candidate]) -> Trial:
    """The trial of one candidate for each question."""
    settings = {k: v for candidate in choice.values() for k, v in candidate.settings.items()}
    curve = choice.get("temperature") or (next(iter(choice.values())) if len(choice) == 1 else None)
    return Trial(", ".join(c.label for c in choice.values()), settings, curve.value if curve else None)


def write_scores(folder: Path, trial: Trial, epochs: int, seed: int) -> None:
    """Write the scores of a trial where `read_trials` finds them."""
    scores = trial.scores[epochs, seed]
    arrays = {} if scores.right is None else {"right": scores.right.astype(np.float32)}
    json_files.write_npz(folder / f"{scores.run}.npz", **arrays)
    record = {name: getattr(trial, name) for name in ("label", "settings", "value")}
    record |= {name: getattr(scores, name) for name in ("run", "scores", "seconds", "failure")}
    json_files.write_json(folder / f"{scores.run}.json", {**record, "epochs": epochs, "seed": seed})  # last


def read_trials(folder: Path) -> dict[str, Trial]:
    """Trials by key, in the order in which they were first scored; damaged scores are left out."""
    trials: dict[str, Trial] = {}
    for path in sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime_ns):
        try:
            raw = json_files.read_object(path)
            trial = Trial(raw["label"], raw["settings"], raw["value"])
            scores = {name: math.nan if value is None else float(value) for name, value in raw["scores"].items()}
            right = json_files.read_npz(path.with_suffix(".npz")).get("right")
            found = HeldOutScores(raw["run"], scores, float(raw["seconds"]), right, raw["failure"])
            trials.setdefault(trial.key, trial).scores[int(raw["epochs"]), int(raw["seed"])] = found
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return trials
