"""What a run brings to a comparison: its rows, the rows that teach, and its recorded scores."""

from __future__ import annotations

from contrastive_core.data import datasets
from contrastive_core.embeddings.cache import cached
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation.compare import Entry
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.record import read_evaluation
from contrastive_core.evaluation.score import Scores
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress, prefixed
from contrastive_core.runs import Run

__all__ = ["entry_of_run", "recorded_scores"]


def entry_of_run(
    run: Run, split: str, layer: str, device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Entry:  # fmt: skip
    """A run's split as it is compared; training rows are not judged by themselves."""
    train = None if split == "train" else _embedded(run, "train", layer, device, on_progress)
    test = _embedded(run, split, layer, device, on_progress)
    return Entry(run.name, train, test, recorded=recorded_scores(run, split, layer))


def _embedded(
    run: Run, split: str, layer: str, device: str, on_progress: OnProgress
) -> EmbeddingSet:
    if cached(run, split, layer) is None:  # else it decodes without a word
        run.weights_hash()  # without weights it is refused before anything is decoded
        datasets.of_config(run.config, split, on_progress=prefixed(on_progress, run.name))
    stage = f"{run.name}: embedding {split}"
    return embed_run(run, split, layer, device, fraction_of(on_progress, stage))


def recorded_scores(run: Run, split: str, layer: str) -> Scores:
    """The scores that are kept of an embedding, so that it has one figure wherever it is shown."""
    evaluation = read_evaluation(run, split)
    return {} if evaluation is None else evaluation.scores.get(layer, {})
