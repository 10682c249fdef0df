"""Scores of a frozen encoder on a data set: of the test images, by the training images."""

import numpy as np

from contrastive_core import metrics
from contrastive_core.data import datasets
from contrastive_core.engine.answers import Values, cached_graphs
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.importers.frozen_encoders import embed_frozen
from contrastive_core.messages import message
from contrastive_core.progress import OnProgress, fraction_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.frozen import parse
from contrastive_core.records.score import scores_to_json


def scores(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Every score of a frozen encoder with what it says of each sample. Raises ValueError with one sentence."""
    encoder = parse(values["encoder"])
    sets: dict[str, EmbeddingSet] = {}
    for split in ("train", "test"):
        dataset = datasets.of_config(values["data"], split, on_progress=on_progress)
        stage = message("{title}, {split} images", title=encoder.title, split=split)
        sets[split] = embed_frozen(encoder, dataset, device, fraction_of(on_progress, stage))
    taken = evaluate_sets(
        metrics.names(),
        sets["train"],
        sets["test"],
        cached_graphs(on_progress, device),
        on_metric=lambda title, share: on_progress(
            message("scoring {source}: {title}", source=encoder.title, title=title), share
        ),
    )
    arrays: dict[str, np.ndarray] = {
        f"{name}:{part}": array for name, score in taken.items() for part, array in score.arrays.items()
    }
    about = {"title": encoder.title, "notes": sets["test"].provenance["notes"], "width": sets["test"].width}
    counts = {"n_train": len(sets["train"]), "n_test": len(sets["test"])}
    return Result({"scores": scores_to_json(taken), **about, **counts}, arrays)
