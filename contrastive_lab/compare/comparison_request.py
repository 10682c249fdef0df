"""The request for a comparison: its values and key. Imports no Streamlit."""

from collections.abc import Sequence
from typing import Any

from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_lab.components.shared.transport import digest
from contrastive_lab.locale import N_

FORM = 2  # of the answer; a change makes kept ones stale
CLAIMED = N_(
    "A difference is shown if its 95 % interval excludes zero and its p, corrected for the number of pairs and "
    "accuracies, is below 0.05. Trained with another seed, a run may come out differently."
)


def comparison_of(spaces: Sequence[EmbeddingRef], every_score: bool = True) -> dict[str, Any]:
    """The values of the analysis "comparison"; a group is a method with all its settings, and a seed.

    Args: every_score: else the kNN accuracy alone, on which the first verdict rests; the rest takes much longer."""
    groups: list[list[Any]] = [[space.title, 0] for space in spaces]
    for group, run in zip(groups, (space.run for space in spaces), strict=True):
        if run:
            config = {k: v for k, v in run.config.items() if k not in ("seed", "device", "threads")}
            method = f"{config.get('method')} {digest(sorted(config.items(), key=str))[:4]}"
            group[:] = method, int(run.config.get("seed") or 0)
    return {
        "names": [s.title for s in spaces],
        "spaces": [s.values for s in spaces],
        "groups": groups,
        "form": FORM,
        "every_score": every_score,
    }
