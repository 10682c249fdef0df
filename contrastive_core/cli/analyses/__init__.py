"""The analyses that pages wait for, by their kind; jobs/results.py keeps what comes out.

An analysis is given plain values: spaces (`embeddings.ref.EmbeddingRef.values`) and settings. Its
module is imported when it is made, so that a look at a folder need not wait for torch.
"""

from __future__ import annotations

import importlib

from contrastive_core.cli.analyses._base import Analysis, Values, cached_result, with_defaults
from contrastive_core.jobs.results import Result
from contrastive_core.progress import OnProgress, ignore_progress

__all__ = ["KINDS", "make", "with_defaults"]

KINDS = {  # module and function
    "scores": "scores.scores",
    "loss": "scores.losses",
    "map": "maps.map_of_space",
    "agreement": "maps.agreement",
    "placed": "maps.placed",
    "comparison": "comparisons.comparison",
    "snapshots": "comparisons.snapshots",
    "views": "previews.views",
    "folder": "previews.folder",
    "look": "advice.look",
    "advice_plan": "advice.plan",
    "catalog": "previews.described",
}


def make(
    kind: str, values: Values, on_progress: OnProgress = ignore_progress, device: str = "auto"
) -> Result:
    """The result, made on the device if it is not there yet. Raises ValueError with the reason."""
    if kind not in KINDS:
        raise ValueError(f"an analysis is one of {', '.join(KINDS)}; got {kind!r}")
    module, function = KINDS[kind].split(".")
    analysis: Analysis = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return cached_result(kind, analysis, values, on_progress, device)
