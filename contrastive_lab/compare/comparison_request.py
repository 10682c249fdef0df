"""What is asked of several spaces: the values of the analysis, its key. Imports no Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.run import Run
from contrastive_lab.digest import digest
from contrastive_lab.locale import N_

CLAIMED = N_(
    "A difference is claimed if its 95 % interval excludes zero and its p, corrected for "
    "the number of pairs and of accuracies, is below 0.05."
)


def comparison_of(spaces: Sequence[EmbeddingRef]) -> dict[str, Any]:
    """The values of the analysis "comparison"."""
    return {
        "names": [s.title for s in spaces],
        "spaces": [s.values for s in spaces],
        "groups": [[_method_of(s.run), _seed_of(s.run)] if s.run else [s.title, 0] for s in spaces],
    }


def _method_of(run: Run) -> str:
    """What runs that differ in their seed alone have in common."""
    config = {k: v for k, v in run.config.items() if k not in ("seed", "device", "threads")}
    return f"{config.get('method')} {digest(sorted(config.items(), key=str))[:4]}"


def _seed_of(run: Run) -> int:
    return int(run.config.get("seed") or 0)
