"""Two towers in the Loss Lab: some rows of both, and which of them belong together. Torch-free."""

from dataclasses import dataclass

import numpy as np

from contrastive_core.messages import N_, join, message
from contrastive_core.records.lab_view import ZERO

DIRECTIONS = ("a_to_b", "b_to_a")  # whose rows are the anchors
RUN_TOWERS = ("image", "caption")  # of a run that was trained on captions
SOURCE = {"towers": N_("Images and captions (z)")}  # of such a run
ARROW = N_("{anchors} → {candidates}")


@dataclass(frozen=True, eq=False)
class LabTower:
    """Rows (n, d) of one tower, with a name and what it says ("" for nothing) of each. `groups` (n): equal where rows
    of the two towers belong together; `thumbs`: which thumbnail of the batch each row has, -1 for none."""

    title: str
    rows: np.ndarray
    groups: np.ndarray
    names: list[str]
    texts: list[str]
    thumbs: list[int]


@dataclass(frozen=True, eq=False)
class TowerBatch:
    """Rows of two towers, each with a partner in the other. `thumbs`: (k, c, h, w) uint8 or None; `part`: which rows
    these are of all, in a sentence, or ""."""

    a: LabTower
    b: LabTower
    thumbs: np.ndarray | None = None
    part: str = ""

    def sides(self, direction: str) -> tuple[LabTower, LabTower]:
        """Return the tower of the anchors and that of the candidates. Raises ValueError for no direction."""
        if direction not in DIRECTIONS:
            values = {"choices": ", ".join(DIRECTIONS), "direction": repr(direction)}
            raise ValueError(message("direction must be one of {choices}; got {direction}", **values))
        return (self.a, self.b) if direction == "a_to_b" else (self.b, self.a)

    @property
    def note(self) -> str:
        """A note on these rows: which part of all they are, and zero rows."""
        zero = sum(int((~tower.rows.any(-1)).sum()) for tower in (self.a, self.b))
        return join(" ", filter(None, [self.part, message(ZERO, zero=zero) if zero else ""]))


def direction_names(names: tuple[str, str]) -> dict[str, str]:
    """Directions with their names. Args: names: of tower a and of tower b."""
    return {
        direction: message(ARROW, anchors=first, candidates=second)
        for direction, (first, second) in zip(DIRECTIONS, (names, names[::-1]), strict=True)
    }
