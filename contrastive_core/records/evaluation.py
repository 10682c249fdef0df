"""The scores of a run's embeddings, as they are kept beside it, evaluation.json and .npz.

This is the one place a figure of a run comes from: pages, tables and commands read the record, and
whatever is computed anew goes through it. The `.npz` keeps which class the accuracies give each
sample, so that differences between runs are those of the very figures that are shown. Torch-free.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from contrastive_core.messages import N_
from contrastive_core.paths import data_home
from contrastive_core.records.frozen import PREFIX, source_title
from contrastive_core.records.run import Run
from contrastive_core.records.score import SCORE, Score, Scores, scores_from_json, scores_to_json
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.json_schema import mapping_of, plain, schema_of, whole
from contrastive_core.storage.regular_files import FileCache

SOURCES = {
    "h": N_("encoder output (h)"),
    "z": N_("after the head (z)"),
    "raw": N_("raw pixels"),
    "random": N_("untrained encoder"),
}
BESIDE = ("raw", "random")  # references of every run
TOWERS = "towers"  # of a run with a text tower: recall, gap, zero-shot accuracy
OF_TOWERS = N_("image and text z")
KEPT = ("knn", "linear_probe")  # whose arrays are kept
OF_SAMPLES = ("per_sample", "predicted", "influence")
PARTS = (*OF_SAMPLES, "confusion_labels")
LAYERS = ("h", "z")
VERSION = 2  # of the recipe: figures of another are not shown


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by source ("h", "z", "raw", "random") of one split with the weights `weights`."""

    run: str
    split: str
    weights: str
    scores: Annotated[dict[str, Scores], mapping_of(mapping_of(SCORE))] = field(default_factory=dict)
    n_train: int = 0
    n_test: int = 0
    made: float = 0.0

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
        return {"version": VERSION, **vars(self), "scores": {k: scores_to_json(s) for k, s in self.scores.items()}}


_SCHEMA = schema_of(Evaluation)
_KEYS = {**_SCHEMA.keys, "version": whole(VERSION, VERSION)}
EVALUATION = dataclasses.replace(_SCHEMA, keys=_KEYS, required=(*_SCHEMA.required, "scores", "version"))
# Readers take it score by score: one that is damaged costs no other.
RECORD = dataclasses.replace(EVALUATION, keys={**_KEYS, "scores": mapping_of(plain)})


def name_of(source: str) -> str:
    """The name of a source of scores, a frozen encoder among them; "" for others."""
    return source_title(source) if source.startswith(PREFIX) else {**SOURCES, TOWERS: OF_TOWERS}.get(source, "")


def read_evaluation(run: Run, split: str = "test") -> Evaluation | None:
    """Return the scores of a split with the run's current weights, or None."""
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
    """The accuracies (KEPT) and scores of towers alone, without what they give each sample. They stay in memory: of
    thousands of runs only those are read that have changed."""
    paths = (evaluation_path(run, split), run.path / _name(split))
    return next(filter(None, (_present(_accuracies, path, run, split) for path in paths)), None)


def _evaluation(path: Path, names: Collection[str] | None = None) -> Evaluation:
    """The evaluation in a file, or its scores `names`. Raises Damaged; OSError."""
    record = json_files.read_object(path, RECORD)
    scores = {
        source: {
            name: score
            for name, score in record["scores"][source].items()
            if names is None or name in names or source == TOWERS
        }
        for source in (*SOURCES, TOWERS)
        if isinstance(record["scores"].get(source), dict)
    }
    known = {k: v for k, v in record.items() if k in Evaluation.__dataclass_fields__}
    return Evaluation(**{**known, "scores": {source: scores_from_json(s) for source, s in scores.items()}})


_accuracies = FileCache(lambda path: _evaluation(path, KEPT), 20_000)  # some kilobytes each


def _present(read: Callable[[Path], Evaluation], path: Path, run: Run, split: str) -> Evaluation | None:
    """Return the stored scores of a split with the run's current weights; None if missing or damaged."""
    try:
        evaluation = read(path)
        return evaluation if (evaluation.split, evaluation.weights) == (split, run.weights_hash()) else None
    except (OSError, ValueError):
        return None


def _read(path: Path, run: Run, split: str) -> Evaluation | None:
    evaluation = _present(_evaluation, path, run, split)
    if evaluation is not None:
        with contextlib.suppress(OSError, ValueError):  # else without what the accuracies give each sample
            _put_arrays(evaluation, json_files.read_npz(path.with_suffix(".npz")))
    return evaluation


def _arrays(scores: Mapping[str, Scores]) -> dict[str, np.ndarray]:
    """Right or wrong as int8 (−1: no label) and classes as whole numbers, small ones in a byte."""
    kept = {(s, n): score for s in LAYERS for n in KEPT if (score := scores.get(s, {}).get(n)) is not None}
    arrays = {}
    for (source, name), score in kept.items():
        for part in PARTS:
            if (array := score.arrays.get(part)) is not None:
                whole = np.nan_to_num(array, nan=-1).astype(np.int64)
                least = np.min_scalar_type(int(whole.max(initial=0)) * -1 - 1)
                arrays[f"{source}.{name}.{part}"] = whole.astype(least)
    return arrays


def _put_arrays(evaluation: Evaluation, arrays: Mapping[str, np.ndarray]) -> None:
    for key, array in arrays.items():
        source, name, part = ([*key.split("."), "", ""])[:3]
        score = evaluation.scores.get(source, {}).get(name)
        if score is None or part not in PARTS or array.ndim != 1 or array.dtype.kind not in "iu":
            continue
        if part in OF_SAMPLES and len(array) != evaluation.n_test:
            continue
        is_share = part == "per_sample"
        whole = array.astype(np.int64)
        score.arrays[part] = np.where(whole < 0, np.nan, whole.astype(np.float64)) if is_share else whole


def _name(split: str) -> str:
    return "evaluation.json" if split == "test" else f"evaluation-{split}.json"


def evaluation_path(run: Run, split: str = "test") -> Path:
    """Where scores are written: beside the run, those of a shipped run in `data_home()`."""
    folder = data_home() / "embeddings" / run.name if run.shipped else run.path
    return folder / _name(split)
