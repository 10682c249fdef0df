"""What a run brings to a comparison: its rows, the rows that teach, and its recorded scores."""

from __future__ import annotations

from contrastive_core.evaluation.compare import Entry
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.record import read_evaluation
from contrastive_core.evaluation.score import Scores
from contrastive_core.runs import Run

__all__ = ["entry_of_run", "recorded_scores"]


def entry_of_run(run: Run, split: str, layer: str, device: str = "auto") -> Entry:
    """A run's split as it is compared; training rows are not judged by themselves."""
    train = None if split == "train" else embed_run(run, "train", layer, device)
    test = embed_run(run, split, layer, device)
    return Entry(run.name, train, test, recorded=recorded_scores(run, split, layer))


def recorded_scores(run: Run, split: str, layer: str) -> Scores:
    """The scores that are kept of an embedding, so that it has one figure wherever it is shown."""
    evaluation = read_evaluation(run, split)
    return {} if evaluation is None else evaluation.scores.get(layer, {})
