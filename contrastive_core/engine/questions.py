"""The questions and tasks that pages wait for, by what they are about."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from contrastive_core.data import datasets
from contrastive_core.engine import results
from contrastive_core.engine.client import Question
from contrastive_core.engine.training import Task
from contrastive_core.records.embedding_ref import TOWERS, content_of
from contrastive_core.records.embedding_ref import path_of as embedding_path
from contrastive_core.records.evaluation import evaluation_path
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.train_config import form_of

LARGE = 50_000  # rows; what takes minutes is a process of its own, which outlives the app


def analysis(kind: str, values: Mapping[str, Any]) -> Question:
    """An analysis that is kept under the hash of its values."""
    return Question(results.key(kind, dict(values)), kind, values, results.path(kind, dict(values)))


def evaluation(run: Run) -> Question | Task:
    """The embeddings and scores of a run. Raises ValueError where it has no weights."""
    key, path = f"evaluate.{run.name}.{run.weights_hash()[:12]}", evaluation_path(run)
    if _is_large(run):
        return Task(key, ("evaluate", run.name), path)
    return Question(key, "evaluation", {"run": run.name}, path)


def embedding(run: Run, split: str, layer: str = "z") -> Question | Task:
    """The embedding of a split of a run: h and z, with the layer "towers" both towers too. Raises ValueError where it
    has no weights."""
    parts = ["embed", run.name, split, content_of(run, layer)[:12], *([TOWERS] if layer == TOWERS else [])]
    key, path = ".".join(parts), embedding_path(run, split, TOWERS if layer == TOWERS else "z")
    if _is_large(run):
        return Task(key, ("embed", run.name, "--split", split), path)
    return Question(key, "embedding", {"run": run.name, "split": split, "layer": layer}, path)


def samples(request: SampleRequest, rows: int = 0) -> Question | Task:
    """The table of every sample. `rows`: how many, as far as is known."""
    key = f"{request.name.replace(':', '-').replace('@', '-')}.{request.path().stem}"
    split, by = ("--split", request.split) if request.split else (), request.frozen.text if request.frozen else ""
    arguments = ("samples", request.name, "--loss", request.loss, *split, *(("--frozen", by) if by else ()))
    task = Task(key, arguments, request.path())
    values = {"name": request.name, "split": request.split, "loss": request.loss, "frozen": by}
    question = Question(key, "samples", values, request.path())
    run = request.run
    is_large = rows > LARGE or (run is not None and _is_large(run))
    return task if task.is_running() or (is_large and not question.is_running()) else question


def decoding(config: Mapping[str, Any], split: str) -> Task:
    """The task that decodes the images that a run's settings name. Raises ValueError for what cannot be read."""
    dataset, root, form = str(config.get("dataset")), config.get("root"), form_of(config)
    more = ["--root", root] if root else []
    if datasets.is_files(dataset) and form.size is not None:
        more += ["--image-size", str(form.size), "--resize", form.resize]
    key = hashlib.sha256(json.dumps([dataset, split, *more]).encode()).hexdigest()[:24]
    arguments = ("decode", dataset, "--split", split, *more)
    return Task(f"decode-{key}", arguments, datasets.made_path(dataset, split, form))


def _is_large(run: Run) -> bool:
    return int(run.manifest.get("n_train") or 0) > LARGE
