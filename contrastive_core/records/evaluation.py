"""The scores of a run's embeddings, as they are kept beside it, evaluation.json and .npz.

This is the one place a figure of a run comes from: pages, tables and commands read the record, and
whatever is computed anew goes through it. The `.npz` keeps which class the accuracies give each
sample, so that differences between runs are those of the very figures that are shown. Torch-free.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core.messages import N_
from contrastive_core.paths import data_home
from contrastive_core.records.run import Run
from contrastive_core.records.score import Score, Scores, scores_from_json, scores_to_json
from contrastive_core.storage import json_files
from contrastive_core.storage.file_cache import FileCache
from contrastive_core.storage.json_files import JsonObject

__all__ = [
    "SOURCES",
    "Evaluation",
    "evaluation_path",
    "read_accuracies",
    "read_evaluation",
    "read_published",
    "write_evaluation",
]

SOURCES = {
    "h": N_("encoder output (h)"),
    "z": N_("after the head (z)"),
    "raw": N_("raw pixels"),
    "random": N_("untrained encoder"),
}
KEPT = ("knn", "linear_probe")  # whose arrays are kept
OF_SAMPLES = ("per_sample", "predicted")
OF_CLASSES = ("confusion_labels",)
LAYERS = ("h", "z")
REMEMBERED = 20_000  # files whose accuracies stay in memory, some kilobytes each
VERSION = 2  # of the recipe: figures of another are not shown


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by source ("h", "z", "raw", "random") of one split with the weights `weights`."""

    run: str
    split: str
    weights: str
    scores: dict[str, Scores] = field(default_factory=dict)
    n_train: int = 0
    n_test: int = 0
    made_at: float = 0.0

    def score(self, source: str, name: str) -> Score | None:
        """One score, if it was taken and has a value."""
        score = self.scores.get(source, {}).get(name)
        return None if score is None or score.value is None else score

    def value(self, source: str, name: str) -> float | None:
        """Its value."""
        score = self.score(source, name)
        return None if score is None else score.value

    def only(self, names: Collection[str]) -> Evaluation:
        """The scores of these metrics alone."""
        scores = {k: {n: v for n, v in s.items() if n in names} for k, s in self.scores.items()}
        return dataclasses.replace(self, scores=scores)

    def to_json(self) -> JsonObject:
        """Plain values, arrays left out."""
        return {
            "version": VERSION,
            "run": self.run,
            "split": self.split,
            "weights": self.weights,
            "made": self.made_at,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "scores": {source: scores_to_json(s) for source, s in self.scores.items()},
        }

    @classmethod
    def from_json(cls, record: object) -> Evaluation | None:
        """The evaluation that a file tells of; None where it is none."""
        if not isinstance(record, dict) or record.get("version") != VERSION:
            return None
        run, split, weights = (record.get(k) for k in ("run", "split", "weights"))
        scores = record.get("scores")
        if not isinstance(run, str) or not isinstance(split, str) or not isinstance(weights, str):
            return None
        if not isinstance(scores, dict):
            return None
        n_train, n_test = (v if type(v) is int else 0 for v in (record.get("n_train"), record.get("n_test")))
        made_at = record.get("made")
        scores_by_source = {source: scores_from_json(scores[source]) for source in SOURCES if source in scores}
        made_at = made_at if isinstance(made_at, float) else 0.0
        return cls(run, split, weights, scores_by_source, n_train, n_test, made_at)


def read_evaluation(run: Run, split: str = "test") -> Evaluation | None:
    """What is known of a split with the run's present weights; None where nothing is."""
    return _read(evaluation_path(run, split), run, split) or read_published(run, split)


def read_published(run: Run, split: str = "test") -> Evaluation | None:
    """The record in the run's own folder: for a shipped run, the one that came with it."""
    return _read(run.path / _name(split), run, split)


def write_evaluation(run: Run, evaluation: Evaluation, path: Path | None = None) -> None:
    """Keep it, beside the run or, for a shipped run, in `data_home()`; path: a folder instead."""
    if not run.shipped and path is None:
        run.check_present()
    target = path / _name(evaluation.split) if path else evaluation_path(run, evaluation.split)
    target.parent.mkdir(parents=True, exist_ok=True)
    json_files.write_npz(target.with_suffix(".npz"), **_arrays(evaluation.scores))
    json_files.write_json(target, evaluation.to_json())


def read_accuracies(run: Run, split: str = "test") -> Evaluation | None:
    """The accuracies (KEPT) alone, without what they give each sample; they stay in memory, so that
    of thousands of runs only those are read that have changed."""
    for path in (evaluation_path(run, split), run.path / _name(split)):
        if (found := _present(_accuracies, path, run, split)) is not None:
            return found
    return None


def _record_of(path: Path) -> Evaluation | None:
    return Evaluation.from_json(json_files.read_json(path))


def _accuracies_of(path: Path) -> Evaluation | None:
    evaluation = _record_of(path)
    return None if evaluation is None else evaluation.only(KEPT)


_accuracies = FileCache(_accuracies_of, REMEMBERED)


def _present(read: Callable[[Path], Evaluation | None], path: Path, run: Run, split: str) -> Evaluation | None:
    """What a file tells of a split with the run's present weights; None where it is damaged too."""
    try:
        found = read(path)
        is_present = found is not None and found.split == split
        return found if is_present and found.weights == run.weights_hash() else None  # type: ignore[union-attr]
    except (OSError, ValueError, TypeError):
        return None


def _read(path: Path, run: Run, split: str) -> Evaluation | None:
    evaluation = _present(_record_of, path, run, split)
    if evaluation is None:
        return None
    try:
        arrays = json_files.read_npz(path.with_suffix(".npz"))
    except (OSError, ValueError, KeyError):
        return evaluation
    _put_arrays(evaluation.scores, arrays, evaluation.n_test)
    return evaluation


def _arrays(scores: Mapping[str, Scores]) -> dict[str, np.ndarray]:
    """Right or wrong as int8 (−1: no label) and classes as whole numbers, small ones in a byte."""
    out = {}
    for source in LAYERS:
        for name in KEPT:
            score = scores.get(source, {}).get(name)
            for part in (*OF_SAMPLES, *OF_CLASSES) if score is not None else ():
                if (array := score.arrays.get(part)) is not None:  # type: ignore[union-attr]
                    whole = np.nan_to_num(array, nan=-1).astype(np.int64)
                    least = np.min_scalar_type(int(whole.max(initial=0)) * -1 - 1)
                    out[f"{source}.{name}.{part}"] = whole.astype(least)
    return out


def _put_arrays(scores: dict[str, Scores], arrays: Mapping[str, np.ndarray], n: int) -> None:
    for key, array in arrays.items():
        source, name, part = ([*key.split("."), "", ""])[:3]
        score = scores.get(source, {}).get(name)
        if score is None or array.ndim != 1 or array.dtype.kind not in "iu":
            continue
        if part in OF_SAMPLES and len(array) != n:
            continue
        if part == "per_sample":
            score.arrays[part] = np.where(array < 0, np.nan, array.astype(np.float64))
        elif part in ("predicted", *OF_CLASSES):
            score.arrays[part] = array.astype(np.int64)


def _name(split: str) -> str:
    return "evaluation.json" if split == "test" else f"evaluation-{split}.json"


def evaluation_path(run: Run, split: str = "test") -> Path:
    """Where scores are written: beside the run, those of a shipped run in `data_home()`."""
    folder = data_home() / "embeddings" / run.name if run.shipped else run.path
    return folder / _name(split)
