"""The Loss Lab's data: a loss on a batch, the rows that a page requests, and rows of two towers. Torch-free.

Shipped runs store the first view that the Loss Lab shows: losses on one batch, with thumbnails."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import N_, decode, encode, join, message
from contrastive_core.base.registry import Kernel, Knobs
from contrastive_core.base.storage import IMAGES
from contrastive_core.runs.changes import saved_epochs
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.spaces import recorded_rows

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

POSITIVE, NEGATIVE = 1, 2  # values of a view's mask
MOST_DIMENSIONS = 8192  # maximum dimensions that the browser compares

DERIVATIVES = {  # of losses on distances, which papers leave out
    "pair_contrastive": r"""\frac{\partial L}{\partial x_1} = \begin{cases}
        x_1-x_2 & \text{positive}\\
        -\frac{\varepsilon-D}{D}\,(x_1-x_2) & \text{negative, } 0<D<\varepsilon\\
        0 & \text{negative, } D\ge\varepsilon \text{ or } D=0
        \end{cases}\qquad D=\lVert x_1-x_2\rVert"""
}
IMAGE = (N_("image {number}"), N_("image {number}, view {letter}"))
ROW = (N_("row {number}"), N_("row {number}, view {letter}"))
FILE_PAIRINGS = PAIRINGS | {"views": N_("Rows that share an id"), "classes": N_("Rows of one class")}  # not of images
SNAPSHOT, EPOCH, STEP = "snapshot:", "epoch:", "step:"  # prefixes of sources; a step is one of a recording
MEMORIES = ("queue", "bank")
PAIRED_BY = {"moco_v1": "queue", "moco_v2": "queue", "inst_disc": "bank", "sup_con": "classes", "metric": "classes"}
ZERO = N_(
    "{zero} of these vectors are zero: they have no direction, so every cosine with them counts as 0 and no gradient "
    "reaches them."
)


@dataclass(frozen=True, eq=False)
class LabView:
    """A loss on a batch, as displayed in the browser."""

    scores: np.ndarray  # (n, w) float32
    mask: np.ndarray  # (n, w) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Kernel | None
    row_thumbs: list[int]
    column_thumbs: list[int]
    names: Sequence[str]
    column_names: Sequence[str]
    score_name: str
    value: float
    n_valid: int
    per_anchor: np.ndarray
    weight: np.ndarray  # (n, w) on pairs
    grad: np.ndarray  # (n, w)
    extras: JsonObject = field(default_factory=dict)
    reason: str = ""
    note: str = ""  # a note on the rows
    views: np.ndarray | None = None  # (b, 2, d) float32, if the browser shows a matrix of dimensions
    towers: Sequence[str] = ()  # titles of the anchors' and the candidates' tower, if any
    texts: Sequence[str] = ()  # texts of the anchors, "" for none; () if none has a text
    column_texts: Sequence[str] = ()
    given: Sequence[int] = ()  # places (row · w + column) of given negatives


@dataclass(frozen=True)
class Trade:
    """Statistics of the softmax at one temperature, averaged over anchors with negatives."""

    temperature: float
    spread: float  # effective negatives divided by all: 1 for an equal push
    own_class: float | None  # share of the push on rows of the anchor's class; None without labels
    hardest: float  # share of the push on the hardest negative


def confusable_anchor(view: LabView) -> int:
    """Return the anchor whose hardest negative exceeds its most similar positive most; 0 if no anchor has both."""
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
    """Rows (k, d) of a queue or bank with `size` rows in total, each with a picture (k, c, h, w) uint8 and
    a name; `query_slots` (b): index of each query's slot in a bank."""

    rows: np.ndarray
    thumbs: np.ndarray | None
    names: Sequence[str]
    size: int
    note: str  # a sentence on the owner of these rows
    query_slots: np.ndarray | None = None
    log_z: float | None = None


@dataclass(frozen=True, eq=False)
class LabBatch:
    """Rows (b, v, d) of the views of b images, with labels, pictures and names of the images."""

    rows: np.ndarray
    labels: np.ndarray  # (b)
    thumbs: np.ndarray | None  # (b · v, c, h, w) uint8, image-major, then the memory's
    classes: tuple[str, ...]
    ids: list[str]
    memory: Memory | None = None
    about: str = ""  # a note on the origin of the rows
    texts: Sequence[str] = ()  # (b) texts, for rows of a file with texts
    of_images: bool = True  # False for rows of other data

    def name(self, row: int) -> str:
        """Return the name of a row (image-major): its image, view and class."""
        b, v = divmod(row, self.rows.shape[1])
        letter = "abcdefgh"[v] if v < 8 else str(v + 1)
        words = IMAGE if self.of_images else ROW
        name = message(words[self.rows.shape[1] > 1], number=b + 1, letter=letter)
        return message("{name} ({label})", name=name, label=label_name(self, b)) if self.labels[b] >= 0 else name

    @property
    def note(self) -> str:
        """A note on these rows: their origin, the owner of the memory, and zero rows."""
        every = [self.rows] if self.memory is None else [self.rows, self.memory.rows]
        parts = [self.about] if self.about else []
        if self.memory is not None:
            parts.append(self.memory.note)
        if zero := sum(int((~rows.any(-1)).sum()) for rows in every):
            parts.append(message(ZERO, zero=zero))
        return join(" ", parts)


@dataclass(frozen=True)
class BatchRequest:
    """The request for a batch: augmented views of some images of a run's data set, by class, or existing rows.

    source: "z", "h", "random" or "pixels": the encoder; "epoch:EPOCH": z of a state saved after an epoch; or images ·
    views existing rows: "snapshot:EPOCH" of the run's fixed sample (or a recording's probe set), "step:STEP" of a
    recording's step, "file:KEY" of loaded vectors.
    memory: "queue" or "bank": the images are training images, with the rows of that memory."""

    source: str
    images: int
    views: int
    seed: int
    memory: str = ""
    split: str = "test"


def epochs_of(run: Run) -> dict[str, str]:
    """Return the sources from the states of a run that are kept, by epoch, with their titles: they encode any batch."""
    title = N_("After the head (z), epoch {epoch}")
    return {f"{EPOCH}{epoch}": message(title, epoch=f"{epoch:,}") for epoch in saved_epochs(run)}


def loss_knobs(run: Run, epoch: int | None = None) -> Knobs:
    """Return the knobs of the run's loss with the changes until an epoch; None: all changes."""
    changes = run.changes()
    if changes and epoch is not None:
        lines = MetricsReader(run.path / "metrics.jsonl").update().epochs
        last = next((line["step"] for line in lines if line["epoch"] == epoch), math.inf)
        changes = [change for change in changes if change["step"] <= last]
    new = {change["name"].removeprefix("loss."): change["to"] for change in changes if change["name"] != "lr"}
    return {**(run.config.get("loss_knobs") or {}), **new}


def snapshots_of(run: Run) -> dict[str, str]:
    """Return the sources from a run's snapshots, first to last, with their titles."""
    epochs = run.snapshots()
    template = N_("Snapshot: z after epoch {epoch}")
    first, last = N_("First snapshot: z after epoch {epoch}"), N_("Last snapshot: z after epoch {epoch}")
    if run.is_recording:
        template = N_("Snapshot: z of the probe set at step {epoch}")
        first = N_("First snapshot: z of the probe set at step {epoch}")
        last = N_("Last snapshot: z of the probe set at step {epoch}")
    templates = dict.fromkeys(epochs, template)
    templates |= {epochs[0]: first, epochs[-1]: last} if len(epochs) > 1 else {}
    return {f"{SNAPSHOT}{e}": message(templates[e], epoch=f"{e:,}") for e in epochs}


def label_name(dataset: Any, i: int) -> str:
    """Return the class name of a row, for any object with `labels` and `classes`."""
    label = int(dataset.labels[i])
    name = dataset.classes[label] if 0 <= label < len(dataset.classes) else N_("no label")
    return message("class {name}", name=name) if name.isdigit() else str(name)


def images_of_batch(labels: np.ndarray, images: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Choose the rows of a data set for a batch, sorted by class; also return all others."""
    order = rng.permutation(len(labels))
    chosen = order[:images]
    return chosen[np.argsort(labels[chosen], kind="stable")], order[images:]


def request_of(source: str, pairing: str, size: int, seed: int) -> BatchRequest:
    """Return a batch request whose images, views and memory give a matrix of `size` columns."""
    if source.startswith(STEP) and pairing == "queue":
        return BatchRequest(source, size // 4, 2, seed, pairing)
    if pairing not in MEMORIES or source.startswith((SNAPSHOT, STEP)):
        return BatchRequest(source, size // 2, 2, seed)
    if source.startswith("file:"):
        return BatchRequest(source, size, 2, seed)
    return BatchRequest(source, size // 4, 2, seed, pairing)


def default_pairing(run: Run) -> str:
    """Return the pairing of a run's own loss; for a recording, the pairing of its newest rows."""
    if not run.is_recording:
        return PAIRED_BY.get(str(run.config.get("method")), "views")
    with contextlib.suppress(ValueError, OSError):
        if steps := recorded_rows.steps(run):
            rows = recorded_rows.read(run, steps[-1])
            return "queue" if len(rows.queue) else "views" if rows.has_views else "classes"
    return "classes"


# --- files of a shipped run ------------------------------------------------------------------------


FOLDER = "loss_lab"
THUMBS = "thumbs"  # the file that names the thumbnails, which all runs share


def question(weights: str, batch: BatchRequest, pairing: str = "", loss: str = "", knobs: str = "") -> str:
    """Return the key of a stored file: a loss on a batch, or a batch alone. weights: their hash; knobs: as JSON."""
    return json.dumps([weights, asdict(batch), pairing, loss, knobs])


def path_of(run: Run, name: str) -> Path:
    """Return the path of the view of a loss, or of THUMBS."""
    return run.path / FOLDER / f"{name}.npz"


def file_arrays(asked: str, meta: Mapping[str, object], **arrays: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of a file: its key with plain values, and arrays."""
    text = json.dumps({"asked": asked, "meta": encode(meta)}, default=lambda array: array.tolist())
    return {"meta": np.frombuffer(text.encode(), np.uint8), **arrays}


def read_view(run: Run, loss: str, asked: str) -> LabView | None:
    """Read the shipped view of a loss on a batch; None if the run has none."""
    found = _read(run, loss, asked)
    return None if found is None else LabView(**found[1])


def read_thumbs(run: Run, asked: str) -> np.ndarray | None:
    """Read the shipped thumbnails (n, c, h, w) of a batch; None if the run has none."""
    if (found := _read(run, THUMBS, asked)) is None:
        return None
    try:
        return read_npz(IMAGES / FOLDER / Path(found[1]["file"]).name)[THUMBS]
    except (OSError, ValueError, KeyError):
        return None


def opening_view(run: Run) -> tuple[LabView, np.ndarray] | None:
    """Return the first view of a shipped run under NT-Xent, and its thumbnails; None if the run has none."""
    try:
        if (found := _read(run, "nt_xent")) is None:
            return None
        weights, batch = json.loads(found[0])[:2]
        view, thumbs = LabView(**found[1]), read_thumbs(run, question(weights, BatchRequest(**batch)))
    except (ValueError, TypeError):
        return None
    return None if thumbs is None else (view, thumbs)


def _read(run: Run, name: str, asked: str = "") -> tuple[str, dict[str, Any]] | None:
    """Read the key and the values of a file, if it has the key that is asked for; None if there is none."""
    if not run.shipped:
        return None
    try:
        arrays = read_npz(path_of(run, name))
        kept = json.loads(arrays.pop("meta").tobytes(), object_hook=decode)
        return (kept["asked"], {**kept["meta"], **arrays}) if asked in ("", kept["asked"]) else None
    except (OSError, ValueError, KeyError):
        return None


# --- two towers ------------------------------------------------------------------------------------


DIRECTIONS = ("a_to_b", "b_to_a")  # the first tower holds the anchors
RUN_TOWERS = ("image", "caption")  # of a run trained on captions
SOURCE = {"towers": N_("Images and captions (z)")}  # of such a run


@dataclass(frozen=True, eq=False)
class LabTower:
    """Rows (n, d) of one tower, each with a name and a text ("" for none). `groups` (n): equal for partners in the two
    towers; `thumbs`: index of each row's thumbnail in the batch, −1 for none."""

    title: str
    rows: np.ndarray
    groups: np.ndarray
    names: Sequence[str]
    texts: Sequence[str]
    thumbs: list[int]


@dataclass(frozen=True, eq=False)
class TowerBatch:
    """Rows of two towers with their partners. `thumbs`: (k, c, h, w) uint8 or None; `part`: a sentence on the
    selection, "" if all rows are included; `given`: row numbers of a and b of given negatives (k, 2)."""

    a: LabTower
    b: LabTower
    thumbs: np.ndarray | None = None
    part: str = ""
    given: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def sides(self, direction: str) -> tuple[LabTower, LabTower]:
        """Return the towers of the anchors and of the candidates. Raises ValueError for an unknown direction."""
        if direction not in DIRECTIONS:
            text = N_("direction must be one of {choices}; got {direction}")
            raise ValueError(message(text, choices=", ".join(DIRECTIONS), direction=repr(direction)))
        return (self.a, self.b) if direction == "a_to_b" else (self.b, self.a)

    @property
    def note(self) -> str:
        """A note on these rows: their selection, and zero rows."""
        zero = sum(int((~tower.rows.any(-1)).sum()) for tower in (self.a, self.b))
        return join(" ", filter(None, [self.part, message(ZERO, zero=zero) if zero else ""]))


def direction_names(names: tuple[str, str]) -> dict[str, str]:
    """Return the directions with their titles. Args: names: of tower a and of tower b."""
    a, b = names
    arrow = N_("{anchors} → {candidates}")
    return {"a_to_b": message(arrow, anchors=a, candidates=b), "b_to_a": message(arrow, anchors=b, candidates=a)}
