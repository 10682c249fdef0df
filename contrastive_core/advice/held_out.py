"""Scores on the training images that the adviser holds out: kNN on h, with the other training images as voters.
It scores runs and references that need no training: raw pixels, the largest class, untrained and frozen encoders."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core import metrics, runs
from contrastive_core.advice.plan import Candidate
from contrastive_core.base import json_files, safe_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.progress import OnProgress
from contrastive_core.compare.embed import embed_run, raw_pixels, untrained_rows
from contrastive_core.compare.verdicts import SettingScores
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.overrides import take
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.graphs import Graphs

SHARE, MOST, FEWEST = (0.2, 2000, 40)  # of the training images; images at most; images in all at least
SEED = 11
VOTERS = 50_000  # maximum number of voters for pixels and untrained encoders
PIXELS, UNTRAINED, CHANCE = N_("raw pixels"), N_("an untrained encoder"), N_("the largest class")


def held_out_rows(dataset: Dataset) -> np.ndarray:
    """Return the sorted training rows to hold out, a fifth of each class. Raises BadSetting for too few images."""
    n = len(dataset)
    if n < FEWEST:
        values = {"name": dataset.name, "n": n, "fewest": FEWEST}
        raise BadSetting(
            "{name} has {n} training images; at least {fewest} are needed, because one fifth is held out", **values
        )
    rng, count, labels = np.random.default_rng(SEED), min(MOST, round(SHARE * n)), dataset.labels
    order, chosen = rng.permutation(n), []
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        chosen.append(rows[: max(1, round(count * len(rows) / n)) if len(rows) > 1 else 0])
    return np.sort(np.concatenate(chosen))


def write_ids(path: Path, dataset: Dataset, rows: np.ndarray) -> None:
    """Write the ids of rows, one per line, in the format of `train --exclude`."""
    text = "".join(f"{dataset.ids[i]}\n" for i in rows)
    safe_files.write_bytes(path, text.encode("utf-8", "surrogateescape"))


def right_rows(every: EmbeddingSet, rows: np.ndarray, device: str = "auto") -> np.ndarray:
    """Return 1 where kNN on the other rows predicts a held-out row's class, else 0 (n); NaN without a label."""
    rest = every.take(np.setdiff1d(np.arange(len(every)), rows))
    right = metrics.create("knn")(rest, every.take(rows), Graphs(device)).per_sample
    assert right is not None
    return np.asarray(right, np.float64)


def score_run(run: Run, rows: np.ndarray, device: str = "auto") -> np.ndarray:
    """Return 1 where kNN on a finished run's h predicts a held-out image's class, else 0 (n); NaN without a label."""
    return right_rows(embed_run(run, "train", "h", device), rows, device)


# --- candidates that are tried -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """The correctness (n) of a run on the held-out images, or the reason why its training failed."""

    run: str
    right: np.ndarray | None = None
    seconds: float = 0.0  # of its training and scoring
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate and its scores by seed."""

    candidate: Candidate
    by_seed: dict[int, HeldOutScores] = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """The reason why a training failed; "" if none failed."""
        return next((s.failure for s in self.by_seed.values() if s.failure), "")

    @property
    def scores(self) -> SettingScores:
        """The scores in the form that `verdicts` compares."""
        right = {seed: s.right for seed, s in sorted(self.by_seed.items()) if s.right is not None}
        return SettingScores(self.candidate.label, {seed: float(np.nanmean(r)) for seed, r in right.items()}, right)


def write_scores(folder: Path, scores: HeldOutScores) -> None:
    """Write the scores of a run for `read_scores`. An image without a label has the value null."""
    record: JsonObject = {"seconds": scores.seconds, "failure": scores.failure}
    if scores.right is not None:
        record |= {"knn": float(np.nanmean(scores.right)), "right": scores.right.tolist()}
    json_files.write_json(folder / f"{scores.run}.json", record)


def read_scores(folder: Path, run: str) -> HeldOutScores | None:
    """Read the scores of a run; None if they are missing or damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        raw = json_files.read_object(folder / f"{run}.json")
        right = None if raw["failure"] else np.array(raw["right"], np.float64)
        return HeldOutScores(run=run, right=right, seconds=float(raw["seconds"]), failure=raw["failure"])
    return None


# --- what needs no training --------------------------------------------------------------------------


class References:
    """Scores that need no training, computed on demand and cached in the adviser's folder."""

    def __init__(self, dataset: Dataset, rows: np.ndarray, folder: Path, device: str = "auto") -> None:
        self.dataset, self.rows, self.folder, self.device = dataset, rows, folder, device
        self.failed: dict[str, str] = {}  # why a frozen encoder could not be scored, by run
        rest = np.setdiff1d(np.arange(len(dataset)), rows)
        if len(rest) > VOTERS:
            rest = np.random.default_rng(SEED).permutation(rest)[:VOTERS]
        self._chosen = np.sort(np.concatenate([rows, rest]))

    def pixels(self) -> SettingScores:
        return self._kept("pixels", PIXELS, raw_pixels)

    def chance(self) -> SettingScores:
        """Score the prediction of the most frequent class among the images that are not held out."""
        labels = self.dataset.labels
        rest = np.delete(labels, self.rows)
        largest = np.bincount(rest[rest >= 0]).argmax()
        return _fixed(CHANCE, np.where(labels[self.rows] >= 0, labels[self.rows] == largest, np.nan))

    def untrained(self, config: TrainConfig, seeds: Sequence[int]) -> SettingScores:
        """Score the untrained encoder with these settings, once per seed."""
        found = SettingScores(UNTRAINED)
        for seed in seeds:

            def embed(part: Dataset, seed: int = seed) -> EmbeddingSet:
                features = untrained_rows(dataclasses.replace(config, seed=seed), part, self.device)
                return EmbeddingSet(features, np.asarray(part.labels, np.int64), classes=part.classes)

            made = self._kept(f"untrained-{config.method}-{seed}", UNTRAINED, embed)
            found.scores[seed], found.right[seed] = made.mean, made.right[0]
        return found

    def frozen(self, names: Sequence[str], on_progress: OnProgress) -> dict[str, SettingScores]:
        """Score the frozen encoders of runs by name. Runs that fail are left out; `failed` holds the reasons."""
        found = {}
        for name in names:
            try:
                on_progress(message("embedding {name}", name=name), None)
                found[name] = _fixed(name, score_run(runs.load(name), self.rows, self.device))
            except (ValueError, OSError, RuntimeError) as error:
                self.failed[name] = sentence(error)
        return found

    def _kept(self, name: str, label: str, embed: Callable[[Dataset], EmbeddingSet]) -> SettingScores:
        path = self.folder / "references" / f"{name}-{self.dataset.fingerprint[:16]}.npz"
        with contextlib.suppress(OSError, ValueError, KeyError):
            right = json_files.read_npz(path)["right"].astype(np.float64)
            if len(right) == len(self.rows):
                return _fixed(label, right)
        part = self.dataset if len(self._chosen) == len(self.dataset) else take(self.dataset, self._chosen)
        right = right_rows(embed(part), np.searchsorted(self._chosen, self.rows), self.device)
        json_files.write_npz(path, right=right.astype(np.float32))
        return _fixed(label, right)


def _fixed(label: str, right: np.ndarray) -> SettingScores:
    return SettingScores(label, {0: float(np.nanmean(right))}, {0: right}, is_fixed=True)
