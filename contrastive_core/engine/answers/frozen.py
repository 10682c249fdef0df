"""Scores of a frozen encoder on a data set: of the test images, by the training images; and what runs gain on it."""

from dataclasses import asdict

import numpy as np

from contrastive_core import metrics
from contrastive_core.data import datasets
from contrastive_core.engine.answers import Values, cached_graphs, make, rows_of
from contrastive_core.engine.answers.comparisons import judged, kept_scores, with_arrays
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.compare import common
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.evaluation.verdicts import compare_runs
from contrastive_core.importers.frozen_encoders import embed_frozen
from contrastive_core.messages import message
from contrastive_core.progress import OnProgress, fraction_of
from contrastive_core.records.comparison import ACCURACIES
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.frozen import KIND, parse
from contrastive_core.records.score import Scores, scores_from_json, scores_to_json
from contrastive_core.storage.json_files import JsonObject


def scores(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Every score of a frozen encoder with what it says of each sample. Raises ValueError with one sentence."""
    encoder = parse(values["encoder"])
    sets = {split: _rows(values, split, on_progress, device) for split in ("train", "test")}
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


def differences(values: Values, on_progress: OnProgress, device: str) -> Result:
    """How the accuracies of runs differ from those of a frozen encoder on the same test images: pairs as `Difference`,
    p corrected for the accuracies of one run. Raises ValueError with one sentence.

    Args: values: `spaces` and their `names`; `frozen`, the request for the encoder's scores."""
    title, asked = parse(values["frozen"]["encoder"]).title, values["frozen"]
    made = make(KIND, asked, on_progress, device)
    known = with_arrays(scores_from_json(made.meta["scores"]), made)
    theirs, names = _rows(asked, "test", on_progress, device), tuple(ACCURACIES)
    found: list[JsonObject] = []
    for plain, name in zip(values["spaces"], values["names"], strict=True):
        space = EmbeddingRef(**plain)
        kept = kept_scores(space)
        train, test = (None, rows_of(space, on_progress, device)) if kept else judged(space, on_progress, device)
        rows, others = common([test, theirs])
        own = evaluate_sets(names, train, rows, cached_graphs(on_progress, device), kept)
        encoder = known
        if others is not theirs:  # in another order, or some of them
            encoder = evaluate_sets(names, _rows(asked, "train", on_progress, device), others)
        found += [asdict(d) for d in compare_runs([name, title], _right(own, encoder))]
    return Result({"differences": found})


def _right(own: Scores, encoder: Scores) -> dict[str, np.ndarray]:
    """By accuracy, whether each image that both judge is right (2, n): by a run and by the encoder."""
    both_have = set(own) & set(encoder)
    taken = [m for m in ACCURACIES if m in both_have and own[m].value is not None and encoder[m].value is not None]
    both = {m: np.stack([one[m].arrays["per_sample"] for one in (own, encoder)]) for m in taken}
    return {m: values[:, ~np.isnan(values).any(0)] == 1 for m, values in both.items()}


def _rows(asked: Values, split: str, on_progress: OnProgress, device: str) -> EmbeddingSet:
    """What the encoder of a request gives each image of a split."""
    encoder, dataset = parse(asked["encoder"]), datasets.of_config(asked["data"], split, on_progress=on_progress)
    stage = message("{title}, {split} images", title=encoder.title, split=split)
    return embed_frozen(encoder, dataset, device, fraction_of(on_progress, stage))
