"""One row per sample: its loss, what is odd about it, and why it is on a list. Torch-free.
`samples/table_builder.py` makes tables, in a process of its own where a page asks; here they are kept and read."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.messages import N_, message
from contrastive_core.paths import data_home
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.run import Run
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject

COLUMNS = tuple(
    "id label loss weight rank mislabeled false_negative duplicate outlier ambiguous nearest_positive "
    "nearest_negative".split()
)
VERSION = 11
MAPPED = 1 << 20  # bytes of a column
K = 20  # neighbors behind every list
WRONG = ("wrong", "wrong_low", "wrong_high")  # facts: the number of wrong labels, and its interval

LISTS = {
    "mislabeled": (
        N_("Likely mislabeled"),
        N_(
            "Five voters give each class a probability without seeing the sample's label. They are its supervised "
            "contrastive loss under that class, its 20 nearest neighbors, linear probes on unit rows and on scaled "
            "columns, and a linear discriminant. All are trained without the sample. The score is the probability "
            "that its label is wrong."
        ),
    ),
    "loss": (N_("Highest loss"), N_("Samples with the highest loss against every other sample of the split.")),
    "false_negative": (
        N_("Likely false negatives"),
        N_("The loss pushes them away from a sample that looks the same: cosine similarity to the nearest negative."),
    ),
    "duplicate": (
        N_("Near-duplicates and leaks"),
        N_(
            "Much nearer to one sample of either split than to its 20th neighbor, in the embedding or in pixels. "
            "Score: 1 − d₁/d₂₀, in interquartile ranges above the median."
        ),
    ),
    "outlier": (
        N_("Outliers"),
        N_(
            "Far from everything, in the embedding or in pixels: the logarithm of the mean distance to the 20 nearest, "
            "in interquartile ranges above the median."
        ),
    ),
    "ambiguous": (
        N_("Ambiguous between classes"),
        N_("The voters that have not seen their labels cannot decide: normalized entropy of their probabilities."),
    ),
    "hub": (N_("Hubs"), N_("Among the 20 nearest neighbors of very many others: how often, over what is usual.")),
}


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One row per sample, as columns (see COLUMNS).

    `extra` holds columns that explain them: hub, nearest_duplicate (id of the nearest row), leaked (it is of the
    other split), nearness (1 − d₁/d₂₀ to it), lookalike (id of what is pushed away), probe_prediction,
    knn_prediction, discriminant_prediction and min_loss_class (classes by each voter), correct, wrong_by_loss,
    _neighbors, _probe, _scaled_probe and _discriminant (1 − that voter's probability of the label), suggested and
    suggested_probability, likely (n, 4: the likeliest classes), between, loss_in_batches and its spread, loss_by_draw
    (n, draws), loss_over_knob (n, g).
    `facts` holds figures of the whole set, among them, where losses were estimated, estimate_candidates, _recall,
    _checked, _bias, _off and _correlation (samples/estimate.py), exact_up_to, the number of samples up to which a
    loss is taken that was left out here, and neighbors_recall, the share of the nearest that was found where not all
    rows were looked at; `grid` (g) the values of `knob` that loss_over_knob is of.
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

    def rescored(self, name: str, score: np.ndarray) -> "SampleTable":
        """The same table with other scores of a list, whose order stays."""
        self.ranked(name)
        other = replace(self, columns={**self.columns, name: score})
        other.__dict__.update({kept: getattr(self, kept) for kept in ("_orders", "_by_id", "labels")})
        return other

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
        return N_("over 99%")
    return N_("under 1%") if 0 < p < 0.01 else f"{p:.0%}"


def decimals(p: float) -> float:
    """A probability to five decimals, for files; 1 only for 1."""
    return min(round(p, 5), 0.99999) if p < 1 else p


def reason(table: SampleTable, name: str, row: int) -> str:
    """Why a sample is on a list, in a few words."""
    extra, columns = table.extra, table.columns
    if name == "mislabeled" and "probe_prediction" in extra:
        return _reason_of_label(table, row)
    if name == "false_negative" and (other := str(extra["lookalike"][row])):
        return _reason_of_negative(table, row, other)
    if name == "duplicate":
        return message(
            "nearest: {nearest_duplicate}{where}, {share} as far as its {k}th",
            nearest_duplicate=extra["nearest_duplicate"][row],
            where=message(" in the other split") if extra["leaked"][row] else "",
            share=f"{max(0.0, 1 - float(extra['nearness'][row])):.0%}",
            k=K,
        )
    if name == "ambiguous" and "between" in extra:
        return message("between {between}", between=extra["between"][row])
    if name == "hub":
        return message("among the {k} nearest of {float} others", k=K, float=round(K * float(extra["hub"][row])))
    if name == "outlier":
        return message("{float} interquartile ranges above the median", float=f"{float(columns['outlier'][row]):.1f}")
    rank = int(columns["rank"][row])
    return message("rank {rank} of {table} by {loss}", rank=rank, table=len(table), loss=table.loss)


def _reason_of_label(table: SampleTable, row: int) -> str:
    """Describe the vote of each voter on a suspect."""
    wrong, likely = table.columns["mislabeled"][row], table.extra["suggested_probability"][row]
    voted = ("suggested", "min_loss_class", "knn_prediction", "probe_prediction", "discriminant_prediction")
    template = N_(
        "labeled {label}, wrong with {wrong}; likely {suggested} ({likely}): the loss says {min_loss_class}, neighbors "
        "{knn_prediction}, the probe {probe_prediction}, the discriminant {discriminant_prediction}"
    )
    if wrong <= 0.5:  # another class would contradict the label that is probably right
        template = N_(
            "labeled {label}, wrong with {wrong}: the loss says {min_loss_class}, neighbors {knn_prediction}, the "
            "probe {probe_prediction}, the discriminant {discriminant_prediction}"
        )
    values = {name: table.extra[name][row] for name in voted}
    label = str(table.columns["label"][row])
    return message(template, label=label, wrong=percent(wrong), likely=percent(likely), **values)


def _reason_of_negative(table: SampleTable, row: int, other: str) -> str:
    """Which other sample it is pushed away from, and the class of either."""
    columns, label = table.columns, str(table.columns["label"][row])
    at = table.row(other)
    theirs = "" if at is None else str(columns["label"][at])
    if not label:
        return message("pushed away from {other}", other=other)
    if theirs == label:
        return message("pushed away from {other}, {theirs} too", other=other, theirs=theirs)
    return message("pushed away from {other}, {theirs}", other=other, theirs=theirs)


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


def merged_table(tables: Mapping[str, SampleTable]) -> SampleTable:
    """The rows of all splits, one split after the other, with two more columns in `extra`: `split`,
    and `own_id`, the id in it. Where splits share an id, `id` names the split before it.

    The number of wrong labels is the sum; its interval is by the method of variance estimates
    recovery (Zou & Donner 2008, Stat. Med. 27), for independent splits. Raises ValueError for none.
    """
    if not tables:
        raise ValueError(N_("no table to join"))
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
    return replace(first, columns={**columns, "id": ids}, extra=extra, facts=_sum(parts), knob="", grid=np.zeros(0))


def _sum(parts: list[SampleTable]) -> dict[str, float]:
    if not all(name in t.facts for t in parts for name in WRONG):
        return {}
    number, low, high = np.array([[t.facts[name] for name in WRONG] for t in parts]).T
    total = float(number.sum())
    below, above = hypot(*(number - low)), hypot(*(high - number))
    return {"wrong": total, "wrong_low": max(0.0, total - below), "wrong_high": total + above}


def path_of(run: Run, what: str, loss: str, split: str, frozen: FrozenEncoder | None = None) -> Path:
    """Where `what` (samples, views, snapshots) of a run's present weights is kept. Tables that come
    with a shipped run lie beside it; nobody writes there.

    Args: frozen: the encoder that the lists rest on instead. Raises ValueError where its weights are gone."""
    by = f"-by-{hashlib.sha256(f'{frozen.text} {frozen.stamp()}'.encode()).hexdigest()[:12]}" if frozen else ""
    name = f"{what}-{split}-{loss}{by}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    if not run.shipped:
        return run.path / "embeddings" / name
    shipped = run.path / "samples" / name
    return shipped if shipped.exists() else data_home() / "embeddings" / run.name / name


def knobs_of(run: Run, loss: str) -> JsonObject | None:
    """The run's settings of a loss, if it was trained with it."""
    return run.config.get("loss_knobs") if loss == run.config.get("loss") else None


def read_table(path: Path, loss: str) -> SampleTable | None:
    """The table if it has been made. Of a large one a page reads the columns of a list, and of the
    others only the rows that it shows: they are mapped."""
    arrays = read_arrays(path, MAPPED)
    if arrays is None or not {"classes", "knob", "grid", *COLUMNS} <= set(arrays):
        return None
    columns = {name: arrays[name] for name in COLUMNS}
    extra = {k[6:]: v for k, v in arrays.items() if k.startswith("extra:")}
    facts = {k[5:]: float(v) for k, v in arrays.items() if k.startswith("fact:")}
    classes = tuple(arrays["classes"].tolist())
    return SampleTable(columns, classes, loss, extra, facts, str(arrays["knob"]), arrays["grid"])


def keep_table(table: SampleTable, path: Path) -> None:
    extra = {f"extra:{k}": v for k, v in table.extra.items()}
    facts = {f"fact:{k}": np.array(v) for k, v in table.facts.items()}
    more = {"classes": np.array(table.classes, np.str_), "knob": np.array(table.knob)}
    keep_arrays(path, **more, grid=table.grid, **table.columns, **extra, **facts)


def keep_arrays(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    json_files.write_npz(path, **arrays)


def read_arrays(path: Path, mapped: int | None = None) -> dict[str, np.ndarray] | None:
    """Arrays that `keep_arrays` wrote, those of `mapped` bytes not in memory; None for none or damaged ones."""
    try:
        return json_files.read_npz(path, mapped=mapped)
    except (OSError, ValueError):
        return None
