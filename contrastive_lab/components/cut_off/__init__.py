"""A small histogram of a score from 0 to 1, with a cut-off to drag or click."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contrastive_lab.components.shared.mount import mount, pack


@dataclass(frozen=True)
class CutOff:
    """The counts of equal bins from 0 to 1, and a text for each possible cut (one more than bins)."""

    counts: Sequence[int]
    heads: Sequence[str]
    cut: float
    title: str  # what is counted


def draw_cut_off(shown: CutOff, key: str, on_change: Callable[[], None]) -> None:
    """Draw the cut-off; `on_change` is called on release, with the new value in the component's state `cut`."""
    mount("cut_off", pack(shown), "cut", key, on_change=on_change)
