"""The answers to questions, by their kind; `engine/results.py` keeps most of them.

A question has plain values: spaces (`embeddings.ref.EmbeddingRef.values`) and settings. The module
of an answer is imported when it is asked for: a look at a folder need not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import Any

from contrastive_core.engine.answers.inputs import Analysis, Values, cached_result
from contrastive_core.engine.answers.inputs import with_defaults as with_defaults
from contrastive_core.engine.results import Result
from contrastive_core.progress import OnProgress, ignore_progress

KINDS = {  # analyses: module and function
    "scores": "scores.scores",
    "loss": "scores.losses",
    "map": "scores.map_of_space",
    "agreement": "scores.agreement",
    "placed": "scores.placed",
    "comparison": "comparisons.comparison",
    "snapshots": "comparisons.snapshots",
    "views": "previews.views",
    "folder": "previews.folder",
    "look": "previews.look",
    "advice_plan": "previews.plan",
    "catalog": "previews.described",
}
FILES = {  # what keeps files of its own
    "evaluation": "scores.evaluation",
    "embedding": "scores.embedding",
    "samples": "scores.samples",
}


def answer(kind: str, values: Values, on_progress: OnProgress) -> None:
    """Compute the answer to a question and keep it. Raises ValueError with the reason."""
    if kind in FILES:
        _function(FILES[kind])(values, on_progress)
    else:
        make(kind, values, on_progress)


def make(kind: str, values: Values, on_progress: OnProgress = ignore_progress, device: str = "auto") -> Result:
    """The result of an analysis, computed unless it is kept. Raises ValueError with the reason."""
    if kind not in KINDS:
        raise ValueError(f"an analysis is one of {', '.join(KINDS)}; got {kind!r}")
    analysis: Analysis = _function(KINDS[kind])
    return cached_result(kind, analysis, values, on_progress, device)


def _function(name: str) -> Any:
    module, function = name.split(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)
