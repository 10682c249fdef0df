"""The analyses that pages wait for, by their kind; jobs/results.py keeps what comes out.

An analysis is given plain values: spaces (`embeddings.ref.EmbeddingRef.values`) and settings.
"""

from __future__ import annotations

from contrastive_core.cli.analyses import comparisons, maps, previews, scores
from contrastive_core.cli.analyses._base import Analysis, Values, cached_result
from contrastive_core.cli.analyses.maps import with_defaults
from contrastive_core.jobs.results import Result
from contrastive_core.progress import OnProgress, ignore_progress

__all__ = ["KINDS", "make", "with_defaults"]

KINDS: dict[str, Analysis] = {
    "scores": scores.scores,
    "loss": scores.losses,
    "map": maps.map_of_space,
    "agreement": maps.agreement,
    "placed": maps.placed,
    "comparison": comparisons.comparison,
    "snapshots": comparisons.snapshots,
    "views": previews.views,
    "folder": previews.folder,
    "catalog": previews.described,
}


def make(
    kind: str, values: Values, on_progress: OnProgress = ignore_progress, device: str = "auto"
) -> Result:
    """The result, made on the device if it is not there yet. Raises ValueError with the reason."""
    if kind not in KINDS:
        raise ValueError(f"an analysis is one of {', '.join(KINDS)}; got {kind!r}")
    return cached_result(kind, KINDS[kind], values, on_progress, device)
