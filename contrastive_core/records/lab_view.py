"""A loss on a batch of the Loss Lab, as the browser draws it, and the rows that a page requests for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from contrastive_core.messages import N_, join, message
from contrastive_core.records import recorded_rows
from contrastive_core.records.cards import Kernel
from contrastive_core.records.run import Run
from contrastive_core.storage.json_files import JsonObject

SOURCES = {
    "z": N_("After the head (z)"),
    "h": N_("Encoder output (h)"),
    "random": N_("Untrained encoder"),
    "pixels": N_("Raw pixels"),
    "file": N_("A file of vectors"),
}
PAIRINGS = {
    "views": N_("Views of one image"),
    "classes": N_("Images of one class"),
    "queue": N_("Key and queue (MoCo)"),
    "bank": N_("Memory bank (Inst Disc)"),
}

POSITIVE, NEGATIVE = 1, 2  # of a view's mask
MOST_DIMENSIONS = 8192  # of rows whose dimensions the browser compares

DERIVATIVES = {  # of losses on distances, which papers and notes leave to the reader
    "pair_contrastive": r"""\frac{\partial L}{\partial x_1} = \begin{cases}
        x_1-x_2 & \text{positive}\\
        -\frac{\varepsilon-D}{D}\,(x_1-x_2) & \text{negative, } 0<D<\varepsilon\\
        0 & \text{negative, } D\ge\varepsilon \text{ or } D=0
        \end{cases}\qquad D=\lVert x_1-x_2\rVert"""
}
IMAGE = (N_("image {number}"), N_("image {number}, view {letter}"))
ROW = (N_("row {number}"), N_("row {number}, view {letter}"))
FILE_PAIRINGS = {  # of rows that need not be images
    "views": N_("Rows that share an id"),
    "classes": N_("Rows of one class"),
    "queue": N_("Key and queue (MoCo)"),
    "bank": N_("Memory bank (Inst Disc)"),
}
SNAPSHOT = "snapshot:"
STEP = "step:"  # of a recording
SHOWN = 6  # snapshots that are offered at most, the first and the last among them
MEMORIES = ("queue", "bank")
ZERO = N_(
    "{zero} of these vectors are zero: they have no direction, so every cosine with them counts as 0 and no gradient "
    "reaches them."
)


@dataclass(frozen=True, eq=False)
class LabView:
    """A loss on a batch, as the browser draws it."""

    scores: np.ndarray  # (n, w) float32
    mask: np.ndarray  # (n, w) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Kernel | None
    row_thumbs: list[int]
    column_thumbs: list[int]
    names: list[str]
    column_names: list[str]
    score_name: str
    value: float
    n_valid: int
    per_anchor: np.ndarray
    weight: np.ndarray  # (n, w) on pairs
    grad: np.ndarray  # (n, w)
    extras: JsonObject = field(default_factory=dict)
    reason: str = ""
    note: str = ""  # what is to be known of the rows
    views: np.ndarray | None = None  # (b, 2, d) float32, where the browser shows a matrix of dimensions
    towers: Sequence[str] = ()  # names of the anchors' tower and of the candidates', where rows are of two
    texts: Sequence[str] = ()  # what the anchors say, "" for nothing; () where none says anything
    column_texts: Sequence[str] = ()

    def with_knobs(self, **values: float | None) -> LabView:
        """The view with other values of knobs that its kernel computes with."""
        kernel = Kernel(**{**(self.kernel or {}), **values})  # type: ignore[typeddict-item]
        return replace(self, kernel=kernel)


@dataclass(frozen=True)
class Trade:
    """At one τ, the means over anchors that have negatives."""

    temperature: float
    spread: float  # effective negatives over their number: 1 pushes all alike
    own_class: float | None  # share of the push on rows of the anchor's class; None without labels
    hardest: float  # share of the push on the hardest negative


def confusable_anchor(view: LabView) -> int:
    """The anchor whose nearest negative is nearest, compared with its nearest positive; 0 where no anchor has both."""
    near = -view.scores if "distance" in view.score_name else view.scores
    positive = np.where(view.mask == POSITIVE, near, -np.inf).max(1, initial=-np.inf)  # (n)
    negative = np.where(view.mask == NEGATIVE, near, -np.inf).max(1, initial=-np.inf)
    both = np.isfinite(positive) & np.isfinite(negative)
    if not both.any():
        return 0
    gap = np.full(len(near), -np.inf)
    gap[both] = (negative - positive)[both]
    return int(gap.argmax())


# --- rows of the Loss Lab ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Memory:
    """Rows (k, d) of a queue or bank that has `size` in all, with a picture (k, c, h, w) uint8 and
    a name of each; `query_slots` (b): where each query's slot stands in a bank."""

    rows: np.ndarray
    thumbs: np.ndarray | None
    names: list[str]
    size: int
    note: str  # whose rows these are, in a sentence
    query_slots: np.ndarray | None = None
    log_z: float | None = None


@dataclass(frozen=True, eq=False)
class LabBatch:
    """Rows (b, v, d) of the views of b images, with what is known of the images."""

    rows: np.ndarray
    labels: np.ndarray  # (b)
    thumbs: np.ndarray | None  # (b · v, c, h, w) uint8, image-major, then the memory's
    classes: tuple[str, ...]
    ids: list[str]
    memory: Memory | None = None
    about: str = ""  # what is to be known of where they come from
    texts: Sequence[str] = ()  # (b) what each says, where they are rows of a file with texts
    of_images: bool = True  # or rows of something else

    def name(self, row: int) -> str:
        """A row, image-major, in words: its image, view and class."""
        b, v = divmod(row, self.rows.shape[1])
        letter = "abcdefgh"[v] if v < 8 else str(v + 1)
        words = IMAGE if self.of_images else ROW
        name = message(words[self.rows.shape[1] > 1], number=b + 1, letter=letter)
        return message("{name} ({label})", name=name, label=label_name(self, b)) if self.labels[b] >= 0 else name

    @property
    def note(self) -> str:
        """A note on these rows: where they come from, the owner of the memory, and zero rows."""
        every = [self.rows] if self.memory is None else [self.rows, self.memory.rows]
        parts = [self.about] if self.about else []
        if self.memory is not None:
            parts.append(self.memory.note)
        if zero := sum(int((~rows.any(-1)).sum()) for rows in every):
            parts.append(message(ZERO, zero=zero))
        return join(" ", parts)


@dataclass(frozen=True)
class BatchRequest:
    """Which rows: augmented views of some images of a run's data set, by class, or rows that exist.

    source: "z", "h", "random" or "pixels": the encoder; "snapshot:EPOCH" for rows of the run's fixed sample (or a
    recording's probe set), "step:STEP" for those of a recording's step and "file:KEY" for loaded vectors, of all three
    images · views rows. memory: "queue" or "bank": the images are training images, and rows stand beside them.
    """

    source: str
    images: int
    views: int
    seed: int
    memory: str = ""
    split: str = "test"


def snapshots_of(run: Run) -> dict[str, str]:
    """Sources that a run's snapshots give, first to last, with their names."""
    epochs = _some(run.snapshots())
    place = {epochs[0]: message(", the first"), epochs[-1]: message(", the last")} if len(epochs) > 1 else {}
    template = N_("Snapshot: z after epoch {epoch}{place}")
    if run.is_recording:
        template = N_("Snapshot: z of the probe set at step {epoch}{place}")
    return {f"{SNAPSHOT}{e}": message(template, epoch=f"{e:,}", place=place.get(e, "")) for e in epochs}


def steps_of(run: Run) -> dict[str, str]:
    """Sources that some steps of a recording give, first to last, with their names."""
    steps = _some(recorded_rows.steps(run))
    return {f"{STEP}{step}": message("Vectors of step {step}", step=f"{step:,}") for step in steps}


def _some(numbers: list[int]) -> list[int]:
    """At most SHOWN of them, evenly, with the first and the last."""
    if len(numbers) <= SHOWN:
        return numbers
    return [numbers[round(q)] for q in np.linspace(0, len(numbers) - 1, SHOWN)]


def label_name(dataset: Any, i: int) -> str:
    """The class of a row, in words; of anything with `labels` and `classes`."""
    label = int(dataset.labels[i])
    name = dataset.classes[label] if 0 <= label < len(dataset.classes) else N_("no label")
    return message("class {name}", name=name) if name.isdigit() else str(name)
