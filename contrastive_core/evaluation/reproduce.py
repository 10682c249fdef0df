"""Do the published figures of a run follow from its weights? They are computed anew, compared."""

from __future__ import annotations

from typing import Any

from contrastive_core.evaluation import embed
from contrastive_core.evaluation.evaluate import SOURCES, evaluate_sets, read_evaluation
from contrastive_core.runs import Run

__all__ = ["Known", "deviations"]

Known = dict[tuple[str, ...], dict[str, Any]]
SHARE = 0.005  # of the samples that may fall otherwise where another processor rounds otherwise
RELATIVE = 0.01  # for figures that are no shares


def deviations(run: Run, device: str = "auto", known: Known | None = None) -> list[str]:
    """A sentence for each published figure that the weights do not give.

    Args: known: scores of rows that were met before, pixels say; filled for the next run.
    Raises: ValueError where data or weights cannot be read.
    """
    known = {} if known is None else known
    record = read_evaluation(run)
    if record is None:
        return ["evaluation.json is missing, or of other weights"]
    splits = {s: embed.data_of(run, s) for s in ("train", record["split"])}
    sets: dict[str, list[Any]] = {source: [] for source in SOURCES}
    for dataset in splits.values():
        own = embed.from_weights(run, dataset, device)
        untrained, _ = embed.random_encoder(run, dataset, device)
        found = {**own, "raw": embed.raw_pixels(dataset), "random": untrained}
        for source, rows in found.items():
            sets[source].append(rows)
    wrong = []
    for source, scores in record["scores"].items():
        train, test = sets[source]
        key = (*scores, train.content_hash, test.content_hash)
        if key not in known:
            known[key] = evaluate_sets(list(scores), train, test)
        now = known[key]
        wrong += [
            f"{name} of {SOURCES[source]} is {now[name].get('value')}, not {old['value']}"
            for name, old in scores.items()
            if old.get("value") is not None and _differ(old, now[name].get("value"))
        ]
    return wrong


def _differ(old: dict[str, Any], new: float | None) -> bool:
    if new is None:
        return True
    allowed = SHARE if old["unit"] == "share" else RELATIVE * abs(old["value"])
    return bool(abs(new - old["value"]) > allowed)
