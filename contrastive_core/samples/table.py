"""One row per sample: its loss, what is odd about it, and why it is on a list. Torch-free.

`build.py` makes tables, in a process of its own where a page asks; here they are kept and read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.paths import data_home
from contrastive_core.runs import Run
from contrastive_core.storage import records, tables

__all__ = [
    "COLUMNS", "LISTS", "K", "SampleTable", "decimals", "difficulty", "keep_arrays", "keep_table",
    "knobs_of", "path_of", "percent", "read_arrays", "read_table", "reason", "write_table",
]  # fmt: skip

COLUMNS = (
    "id", "label", "loss", "weight", "rank", "mislabeled", "false_negative", "duplicate",
    "outlier", "ambiguous", "nearest_positive", "nearest_negative",
)  # fmt: skip
VERSION = 11
MAPPED = 1 << 20  # bytes of a column
K = 20  # neighbors behind every list

LISTS = {
    "mislabeled": (
        "Likely mislabeled",
        "Five voters that have not seen a sample's label give each class a probability: the "
        "supervised contrastive loss it would have under that class, its 20 nearest neighbors, "
        "linear probes on unit rows and on scaled columns, and Gaussian classes (linear "
        "discriminant), all trained without it. The score is the probability that its label is "
        "wrong.",
    ),
    "loss": (
        "Highest loss",
        "What the loss finds hardest, against every other sample of the split.",
    ),
    "false_negative": (
        "Likely false negatives",
        "The loss pushes them away from a sample that looks the same: cosine similarity to the "
        "nearest negative.",
    ),
    "duplicate": (
        "Near-duplicates and leaks",
        "Much nearer to one sample, of this or of the other split, than to its 20th neighbor, in "
        "the embedding or in pixels: 1 − d₁/d₂₀, in interquartile ranges above the median.",
    ),
    "outlier": (
        "Outliers",
        "Far from everything, in the embedding or in pixels: the logarithm of the mean distance to "
        "the 20 nearest, in interquartile ranges above the median.",
    ),
    "ambiguous": (
        "Ambiguous between classes",
        "The voters that have not seen their labels cannot decide: normalized entropy of their "
        "probabilities.",
    ),
    "hub": (
        "Hubs",
        "Among the 20 nearest neighbors of very many others: how often, over what is usual.",
    ),
}


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One row per sample, as columns (see COLUMNS).

    `extra` holds columns that explain them: hub, nearest_duplicate (id of the nearest row), leaked
    (it is of the other split), nearness (1 − d₁/d₂₀ to it), lookalike (id of what is pushed away),
    probe_prediction, knn_prediction, discriminant_prediction and min_loss_class (classes by each
    voter), correct, wrong_by_loss, _neighbors, _probe, _scaled_probe and _discriminant (1 − that
    voter's probability of the label), suggested and suggested_probability, between, loss_in_batches
    and its spread, loss_by_draw (n, draws), loss_over_knob (n, g). `facts` holds figures of the
    whole set, among them, where losses were estimated, estimate_candidates, _recall, _checked,
    _bias, _off and _correlation (samples/estimate.py), and exact_up_to, the number of samples up to
    which a loss is taken that was left out here, and neighbors_recall, the share of the nearest
    that was found where not all rows were looked at; `grid` (g) the values of `knob` that
    loss_over_knob is of.
    """

    columns: dict[str, np.ndarray]
    classes: tuple[str, ...]
    loss: str
    extra: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    knob: str = ""
    grid: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.columns["id"])

    def score(self, name: str) -> np.ndarray:
        """Scores (n) float64 of a list, NaN where there is none."""
        return np.asarray({**self.extra, **self.columns}[name], np.float64)

    def ranked(self, name: str) -> np.ndarray:
        """Rows of a list (int32), the strongest suspicion first; sorted once."""
        if name not in self._orders:
            score = self.score(name)
            order = np.argsort(-np.where(np.isfinite(score), score, -np.inf), kind="stable")
            self._orders[name] = order[np.isfinite(score[order])].astype(np.int32)
        return self._orders[name]

    def row(self, sample: str) -> int | None:
        """Where a sample stands, or None."""
        names = self.columns["id"]
        if names.dtype.kind == "U" and len(sample) > names.dtype.itemsize // 4:
            return None  # NumPy would make all of them as long
        place = int(np.searchsorted(names, sample, sorter=self._by_id))
        row = int(self._by_id[place]) if place < len(names) else -1
        return row if row >= 0 and str(names[row]) == sample else None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels that samples have, in order."""
        return tuple(label for label in np.unique(self.columns["label"]).tolist() if label)

    @cached_property
    def _orders(self) -> dict[str, np.ndarray]:
        return {}

    @cached_property
    def _by_id(self) -> np.ndarray:
        """Rows (int32) in the order of their ids: less in memory than a dictionary of a million."""
        return np.argsort(self.columns["id"], kind="stable").astype(np.int32)


def percent(p: float | np.floating[Any]) -> str:
    """A probability in words. Certainty is said only of 1: what is rounded up to it is not."""
    if 0.99 < p < 1:
        return "over 99%"
    return "under 1%" if 0 < p < 0.01 else f"{p:.0%}"


def decimals(p: float) -> float:
    """A probability to five decimals, for files; 1 only for 1."""
    return min(round(p, 5), 0.99999) if p < 1 else p


def reason(table: SampleTable, name: str, row: int) -> str:
    """Why a sample is on a list, in a few words."""
    extra, columns = table.extra, table.columns
    label = str(columns["label"][row])
    if name == "mislabeled" and "probe_prediction" in extra:
        wrong, likely = columns["mislabeled"][row], extra["suggested_probability"][row]
        return (
            f"labeled {label}, wrong with {percent(wrong)}; likely {extra['suggested'][row]} "
            f"({percent(likely)}): the loss says {extra['min_loss_class'][row]}, neighbors "
            f"{extra['knn_prediction'][row]}, the probe {extra['probe_prediction'][row]}, the "
            f"discriminant {extra['discriminant_prediction'][row]}"
        )
    if name == "false_negative" and (other := str(extra["lookalike"][row])):
        at = table.row(other)
        theirs = "" if at is None else str(columns["label"][at])
        if not label:
            return f"pushed away from {other}"
        if theirs == label:
            return f"pushed away from {other}, {theirs} too"
        return f"pushed away from {other}, {theirs}"
    if name == "duplicate":
        where = " in the other split" if extra["leaked"][row] else ""
        share = max(0.0, 1 - float(extra["nearness"][row]))
        return f"nearest: {extra['nearest_duplicate'][row]}{where}, {share:.0%} as far as its {K}th"
    if name == "ambiguous" and "between" in extra:
        return f"between {extra['between'][row]}"
    if name == "hub":
        return f"among the {K} nearest of {round(K * float(extra['hub'][row]))} others"
    if name == "outlier":
        return f"{float(columns['outlier'][row]):.1f} interquartile ranges above the median"
    return f"rank {int(columns['rank'][row])} of {len(table)} by {table.loss}"


def difficulty(losses: np.ndarray, share: float = 0.1) -> np.ndarray:
    """How hard n samples are for several runs, from losses (runs, n): codes (n).

    1: easy for all (in the lower half of every run); 2: hard for all (in the highest `share` of
    every run); 3 + r: hard for run r alone (in its highest `share`, in the lower half of all
    others); 0: neither. Ranks are compared, since losses have no common scale.
    """
    high = np.stack([_percentile(row) for row in losses])  # (runs, n)
    hard, easy = high > 1 - share, high <= 0.5
    code = np.where(easy.all(0), 1, np.where(hard.all(0), 2, 0))
    for r in range(len(losses)):
        others = np.delete(easy, r, 0).all(0)
        code = np.where(hard[r] & others & (len(losses) > 1), 3 + r, code)
    return np.where(np.isfinite(losses).all(0), code, 0)


def _percentile(values: np.ndarray) -> np.ndarray:
    """Share (n) of values that are not above each."""
    order = np.sort(np.where(np.isfinite(values), values, np.inf))
    return np.searchsorted(order, values, side="right") / len(values)


# --- kept and read -----------------------------------------------------------------------------


def path_of(run: Run, what: str, loss: str, split: str) -> Path:
    """Where `what` (samples, views, snapshots) of a run's present weights is kept."""
    name = f"{what}-{split}-{loss}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    home = data_home() / "embeddings" / run.name if run.shipped else run.path / "embeddings"
    return home / name


def knobs_of(run: Run, loss: str) -> dict[str, Any] | None:
    """The run's settings of a loss, if it was trained with it."""
    return run.config.get("loss_knobs") if loss == run.config.get("loss") else None


def read_table(path: Path, loss: str) -> SampleTable | None:
    """The table if it has been made. Of a large one a page reads the columns of a list, and of the
    others only the rows that it shows: they are mapped."""
    arrays = read_arrays(path, MAPPED)
    if arrays is None or not {"classes", "knob", "grid", *COLUMNS} <= set(arrays):
        return None
    return SampleTable(
        {k: arrays[k] for k in COLUMNS},
        tuple(arrays["classes"].tolist()),
        loss,
        {k[6:]: v for k, v in arrays.items() if k.startswith("extra:")},
        {k[5:]: float(v) for k, v in arrays.items() if k.startswith("fact:")},
        str(arrays["knob"]),
        arrays["grid"],
    )


def keep_table(table: SampleTable, path: Path) -> None:
    extra = {f"extra:{k}": v for k, v in table.extra.items()}
    facts = {f"fact:{k}": np.array(v) for k, v in table.facts.items()}
    more = {"classes": np.array(table.classes, np.str_), "knob": np.array(table.knob)}
    keep_arrays(path, **more, grid=table.grid, **table.columns, **extra, **facts)


def keep_arrays(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    records.write_npz(path, **arrays)


def read_arrays(path: Path, mapped: int | None = None) -> dict[str, np.ndarray] | None:
    """Arrays that `keep_arrays` wrote, those of `mapped` bytes not in memory; None when there are
    none, or they are damaged."""
    try:
        return records.read_npz(path, mapped=mapped)
    except (OSError, ValueError):
        return None


def write_table(table: SampleTable, out: Path) -> None:
    """Write `.parquet` or `.csv`, one row per sample."""
    tables.write_table(out, table.columns)
