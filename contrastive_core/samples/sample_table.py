"""Table with one row per sample: its loss, its issues and their explanation; and the request for a table. This module
stores and reads tables; issues.py creates them. Torch-free."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Knobs
from contrastive_core.base.storage import data_home
from contrastive_core.runs.run import Run
from contrastive_core.spaces.space import TOWERS, Space

COLUMNS = tuple(
    "id label loss weight rank mislabeled false_negative duplicate outlier nearest_positive nearest_negative".split()
)
VERSION = 11
MAPPED = 1 << 20  # bytes of a column
NEAR = 0.9  # a duplicate's 1 − d₁/d_k: a tenth of the distance that is usual here
TWO_LABELS = "two_labels"  # score of samples with a near-duplicate of another label
FEWEST = 10  # labeled samples of which suspects are listed
K = 20  # neighbors behind every list


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One row per sample, as columns (see COLUMNS).

    `extra` holds columns that explain them: nearest_duplicate (id of the nearest row), leaked (it is in the other
    split), nearness (1 − d₁/d₂₀ to it), lookalike (id of the most similar row that is pushed away), probe_prediction,
    knn_prediction, discriminant_prediction and min_loss_class (classes by each voter), suggested and
    suggested_probability, likely (n, 4: the likeliest classes). `facts` holds figures of the whole set, among them
    loss_candidates, the number of random samples in the loss of each if it is not all, and neighbors_recall, the recall
    of the neighbor search if it was approximate."""

    columns: dict[str, np.ndarray]
    classes: tuple[str, ...]
    loss: str
    extra: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    towers: tuple[str, str] = ("", "")  # of pairs: the tower of the rows that name them, and the other
    texts: Mapping[str, str] = field(default_factory=dict)  # of the rows of pairs, by id

    def __len__(self) -> int:
        return len(self.columns["id"])

    def score(self, name: str) -> np.ndarray:
        """Return the scores (n) float64 of a list; NaN where undefined."""
        column = self._two_labels if name == TWO_LABELS else self.columns.get(name, self.extra.get(name))
        return np.full(len(self), np.nan) if column is None else np.asarray(column, np.float64)

    def ranked(self, name: str) -> np.ndarray:
        """Return the rows (int32) sorted by a score, highest first. Sorted once."""
        if name not in self._orders:
            score = self.score(name)
            order = np.argsort(-np.where(np.isfinite(score), score, -np.inf), kind="stable")
            self._orders[name] = order[np.isfinite(score[order])].astype(np.int32)
        return self._orders[name]

    def rescored(self, name: str, score: np.ndarray) -> "SampleTable":
        """Return the table with new scores of a list but the old order."""
        self.ranked(name)
        other = replace(self, columns={**self.columns, name: score})
        other.__dict__.update({kept: getattr(self, kept) for kept in ("_orders", "_by_id", "labels", "twin")})
        return other

    def row(self, sample: str) -> int | None:
        """Return the row of a sample; None for an unknown id."""
        names = self.columns["id"]
        if names.dtype.kind == "U" and len(sample) > names.dtype.itemsize // 4:
            return None  # NumPy would make all of them as long
        place = int(np.searchsorted(names, sample, sorter=self._by_id))
        row = int(self._by_id[place]) if place < len(names) else -1
        return row if row >= 0 and str(names[row]) == sample else None

    def label_of(self, sample: str) -> str | None:
        """Return the label of a sample by its id; None for an unknown id."""
        row = self.row(sample)
        return None if row is None else str(self.columns["label"][row])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels that occur, sorted."""
        return tuple(label for label in np.unique(self.columns["label"]).tolist() if label)

    @cached_property
    def twin(self) -> np.ndarray:
        """The row number (n) of each row's near-duplicate; −1: none, or not in this table."""
        twin, nearness, split = np.full(len(self), -1, np.int32), self.extra.get("nearness"), self.extra.get("split")
        for row in np.flatnonzero(nearness > NEAR).tolist() if nearness is not None else ():
            side = "" if split is None else str(split[row])
            if self.extra["leaked"][row]:
                side = {"train": "test", "test": "train"}.get(side, "none")
            name = str(self.extra["nearest_duplicate"][row])
            places = [at for one in (f"{side}/{name}", name) if (at := self.row(one)) is not None]
            twin[row] = next((at for at in places if str(side if split is None else split[at]) == side != "none"), -1)
        return twin

    def paired(self, rows: np.ndarray) -> np.ndarray:
        """Reorder rows (m) so that near-duplicates are adjacent, at the place of the first one."""
        place = np.full(len(self) + 1, len(self))  # the last: of no twin
        place[rows] = np.arange(len(rows))
        return rows[np.argsort(np.minimum(place[rows], place[self.twin[rows]]), kind="stable")]

    @cached_property
    def _two_labels(self) -> np.ndarray:
        """For each row (n) with a near-duplicate of another label, the larger probability of a wrong label of the two;
        the more likely one is slightly higher. NaN for other rows."""
        label, p, twin = self.columns["label"], np.nan_to_num(self.score("mislabeled")), self.twin
        row = np.flatnonzero(twin >= 0)
        row = row[(label[row] != label[twin[row]]) & (label[row] != "") & (label[twin[row]] != "")]
        score = np.full(len(self), np.nan)
        score[row] = np.maximum(p[row], p[twin[row]]) - 1e-6 * (p[row] < p[twin[row]])
        return score

    @cached_property
    def _orders(self) -> dict[str, np.ndarray]:
        return {}

    @cached_property
    def _by_id(self) -> np.ndarray:
        """The rows (int32) sorted by id; needs less memory than a dictionary of a million."""
        return np.argsort(self.columns["id"], kind="stable").astype(np.int32)


def percent(p: float | np.floating[Any]) -> str:
    """Format a probability as text. Only exactly 1 is shown as 100 %: values that would round up to it are not."""
    if 0.99 < p < 1:
        return N_("over 99 %")
    return N_("under 1 %") if 0 < p < 0.01 else f"{100 * p:.0f} %"


def suspicion(p: float | np.floating[Any]) -> str:
    """Format the score of a probably wrong label: not as a percentage, because only random checks make it a
    probability."""
    return N_("over 0.99") if 0.99 < p < 1 else f"{p:.2f}"


def decimals(p: float) -> float:
    """Round a probability to five decimals, for files; 1 only for exactly 1."""
    return min(round(p, 5), 0.99999) if p < 1 else p


def standardized(x: np.ndarray) -> np.ndarray:
    """Subtract the median of numbers (n) and divide by their interquartile range."""
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    return np.asarray((x - middle) / max(high - low, 1e-12))


def merged_table(tables: Mapping[str, SampleTable]) -> SampleTable:
    """Concatenate the tables of all splits, at least one, with two more columns in `extra`: `split`, and `own_id`, the
    id within it. If splits share an id, `id` is prefixed by the split."""
    first, *others = parts = list(tables.values())
    if not others:  # as it lies in its file: a million rows are not copied
        split = np.broadcast_to(np.array(next(iter(tables))), len(first))
        return replace(first, extra={**first.extra, "split": split, "own_id": first.columns["id"]})
    split = np.concatenate([np.full(len(t), s) for s, t in tables.items()])
    own = np.concatenate([t.columns["id"] for t in parts]).astype(str)
    _, where, times = np.unique(own, return_inverse=True, return_counts=True)
    ids = np.array([f"{s}/{i}" if n > 1 else str(i) for s, i, n in zip(split, own, times[where], strict=True)])
    columns = {k: np.concatenate([t.columns[k] for t in parts]) for k in first.columns}
    extra = {
        k: np.concatenate([t.extra[k] for t in parts])
        for k, v in first.extra.items()
        if all(k in t.extra and t.extra[k].shape[1:] == v.shape[1:] for t in parts)
    }
    extra |= {"split": split, "own_id": own}
    return replace(first, columns={**columns, "id": ids}, extra=extra, facts={})


def path_of(run: Run, what: str, loss: str, split: str) -> Path:
    """Return the path of the table `what` (samples, views) for a run's current weights. Tables of shipped runs are
    stored beside the run and are read-only."""
    name = f"{what}-{split}-{loss}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    if not run.shipped:
        return run.path / "embeddings" / name
    shipped = run.path / "samples" / name
    return shipped if shipped.exists() else data_home() / "embeddings" / run.name / name


def knobs_of(run: Run, loss: str) -> Knobs | None:
    """Return the run's settings of a loss; None if the run was trained with another loss."""
    return run.config.get("loss_knobs") if loss == run.config.get("loss") else None


def read_table(path: Path, loss: str) -> SampleTable | None:
    """Return the table; None if it does not exist. Of a large table, pages load only the columns of a list and the
    shown rows of the others: these are memory-mapped."""
    arrays = read_arrays(path, MAPPED)
    if arrays is None or not {"classes", *COLUMNS} <= set(arrays):
        return None
    return SampleTable(
        columns={name: arrays[name] for name in COLUMNS},
        classes=tuple(arrays["classes"].tolist()),
        loss=loss,
        extra={k[6:]: v for k, v in arrays.items() if k.startswith("extra:")},
        facts={k[5:]: float(v) for k, v in arrays.items() if k.startswith("fact:")},
    )


def keep_table(table: SampleTable, path: Path) -> None:
    extra = {f"extra:{k}": v for k, v in table.extra.items()}
    facts = {f"fact:{k}": np.array(v) for k, v in table.facts.items()}
    write_npz(path, classes=np.array(table.classes, np.str_), **table.columns, **extra, **facts)


def read_arrays(path: Path, mapped: int | None = None) -> dict[str, np.ndarray] | None:
    """Return a file's arrays, memory-mapped from `mapped` bytes on; None if it is missing or damaged."""
    try:
        return read_npz(path, mapped=mapped)
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class SampleRequest:
    """A request for the samples of an embedding, listed by one loss. `pairs`: list pairs of two towers instead of rows;
    the loss does not affect them."""

    space: Space
    loss: str
    pairs: bool = False

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def split(self) -> str:
        return self.space.split

    @property
    def run(self) -> Run | None:
        """The run; None for loaded vectors. Raises ValueError if it does not exist."""
        return self.space.run

    def path(self) -> Path:
        """Return the path of the table. Raises ValueError if the run or vectors no longer exist."""
        what = "pairs" if self.pairs else "samples"
        if run := self.run:
            return path_of(run, what, self.loss, self.split)
        place = self.space.recorded
        folder = f"recording-{place.content}" if place else f"vectors-{self.space.key}"
        return data_home() / "embeddings" / folder / f"{what}-{self.split}-{self.loss}-v{VERSION}.npz"

    def table(self) -> SampleTable | None:
        """Return the table; None if it does not exist."""
        return read_table(self.path(), self.loss)

    @property
    def embedding(self) -> Space:
        """The space in which neighbors are searched; for pairs, both towers. Raises ValueError as `of_name` does."""
        if self.pairs:
            return Space.of_name(self.name, self.split, TOWERS if self.run else "z")
        return Space.of_name(self.name, self.split)

    def decisions(self, name: str = "") -> Path:
        """Return the file of the decisions: that of the data set, or a separate one for loaded vectors and recordings.
        `name`: a list with its own file; "": the one of all lists about labels."""
        if run := self.run:
            return decisions_path(run.config, "-".join(filter(None, (name, self.split))))
        place = self.space.recorded
        folder = f"recording-{place.run.manifest.get('id')}" if place else f"vectors-{self.space.key}"
        return data_home() / "marks" / folder / f"{name or 'marks'}.jsonl"


def request_of(name: str, split: str, loss: str = "", pairs: bool = False) -> SampleRequest:
    """Return the request for a run, a recording, which has no split, or loaded vectors. Args: loss: default the one of
    the training, or else `sup_con`; none of pairs."""
    space = Space(name, "" if Space(name).is_recording else split)
    return SampleRequest(space, "" if pairs else loss or space.loss or "sup_con", pairs)


def decisions_path(config: Mapping[str, object], split: str) -> Path:
    """Return the file of a split's decisions, for the data set in a run's settings. A folder is identified by its path,
    whatever size its images are scaled to."""
    name = str(config.get("dataset"))
    kind, colon, path = name.partition(":")
    if colon:
        name = f"{kind}:{Path(path).expanduser().resolve()}"
    plain = "".join(c if c.isalnum() else "-" for c in name)[-40:].strip("-")
    key = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:12]}" if colon else plain
    return data_home() / "decisions" / key / f"{split}.jsonl"
