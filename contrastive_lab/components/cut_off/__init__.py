"""A histogram of a score up to 1, and a cut-off on it that is dragged or clicked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import pack


@dataclass(frozen=True)
class CutOff:
    """The counts of equal bins from `low` to 1, and texts for each cut: one cut more than bins."""

    counts: Sequence[int]
    heads: Sequence[str]  # short, by cut
    texts: Sequence[str]  # in a sentence, by cut
    cut: float
    score: str  # what is counted
    low: float = 0.0  # the first cut; the last is 1


def draw_cut_off(shown: CutOff, key: str, on_change: Callable[[], None]) -> None:
    """Draw it; `on_change` is called when a cut is let go, which is the part's state `cut`."""
    mount("cut_off", pack(shown), "cut", key, on_change=on_change)
