"""An HTML report on runs, recordings or files of vectors: maps, scores, verdict, the live loss view. The command
`report` and buttons on pages create it. `texts.el` escapes text from files; only button.py imports Streamlit."""

from collections.abc import Sequence
from pathlib import Path

from contrastive_core.compare.adapter import adapter_request
from contrastive_core.compare.comparison import judgments_request
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space


def views_asked(spaces: Sequence[Space], qrels: str | Path = "") -> list[tuple[str, Values]]:
    """Return the kinds and requests of the analyses: "compression" of each space, then "adapter" for two or more.
    Args: qrels: a file of relevance judgments, "" for none."""
    asked = [("compression", {"space": space.values, **judgments_request(qrels)}) for space in spaces]
    return asked + ([("adapter", adapter_request(*spaces[:2]))] if len(spaces) > 1 else [])
