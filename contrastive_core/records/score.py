"""A score as pages, files and commands know it: one type, read from JSON at this one place.

What a file says is checked when it is read: what has another shape than a score is a score without
a value that gives the reason, so that no page breaks on it. Torch-free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_core.messages import N_, join, message
from contrastive_core.storage.json_files import JsonObject

__all__ = ["ClassShare", "Score", "Scores", "recall_text", "scores_from_json", "scores_to_json"]

LONGEST = 500  # characters of a text that are kept
MOST = 100  # scores, settings, extras and classes that are read
UNREADABLE = N_("its record cannot be read")


@dataclass(frozen=True)
class ClassShare:
    """How many rows of a class there are, the share that is right, and what they are taken for."""

    name: str
    n: int
    value: float | None
    interval: tuple[float, float] | None
    taken_for: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Score:
    """One figure of one embedding; without a value, `missing` says why.

    `interval` is at 95 %; `unit` is "share" (0 to 1), "nats", "dimensions" or what else the metric
    counts; `extras` are plain values beside the figure; `arrays` what each sample says of it,
    `per_sample` (n) among them, NaN where a sample has none. Arrays do not go into JSON.
    """

    title: str
    reading: str = ""
    value: float | None = None
    interval: tuple[float, float] | None = None
    unit: str = ""
    higher_is_better: bool | None = None
    settings: JsonObject = field(default_factory=dict)
    extras: JsonObject = field(default_factory=dict)
    missing: str = ""
    arrays: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def per_sample(self) -> np.ndarray | None:
        """The value of each sample (n), of which the score is the mean or the like."""
        return self.arrays.get("per_sample")

    def number(self, name: str) -> float | None:
        """A number among the extras; None where there is none."""
        return _number(self.extras.get(name))

    @property
    def sample(self) -> str:
        """Of how many rows it is, in words, where not of all; "" else."""
        return _text(self.extras.get("sample"))

    @property
    def approximation(self) -> str:
        """What it is made of, where not of all rows and their exact neighbors, as it stands beside
        the figure; "" else."""
        return join(", ", filter(None, [self.sample, recall_text(self.number("recall"))]))

    @property
    def curve(self) -> dict[int, float]:
        """The score over k, where it was taken."""
        pairs = ((_count(k), _number(v)) for k, v in _mapping(self.extras.get("curve")).items())
        return {k: v for k, v in pairs if k is not None and v is not None}

    @property
    def spectrum(self) -> list[float]:
        """Singular values, the largest being 1, where they were taken."""
        values = [_number(v) for v in _items(self.extras.get("spectrum"))]
        return [v for v in values if v is not None]

    @property
    def per_class(self) -> list[ClassShare]:
        """The classes, where the record has them all."""
        items = _items(self.extras.get("per_class"))
        classes = [c for item in items if (c := _class_share(item, len(items))) is not None]
        return classes if len(classes) == len(items) else []

    def to_json(self) -> JsonObject:
        """Plain values; `from_json` is the inverse, but for the arrays."""
        about = {"title": self.title, "reading": self.reading}
        if self.value is None:
            return {**about, "missing": self.missing}
        return {
            **about,
            "value": self.value,
            "unit": self.unit,
            "interval": None if self.interval is None else list(self.interval),
            "higher_is_better": self.higher_is_better,
            "settings": self.settings,
            "extras": self.extras,
        }

    @classmethod
    def from_json(cls, record: object, name: str = "") -> Score:
        """The score that a file tells of. Never raises: what is no score has no value."""
        fields = _mapping(record)
        title = _text(fields.get("title")) or name[:LONGEST]
        value = _number(fields.get("value"))
        if value is None:
            return cls(title, _text(fields.get("reading")), missing=_text(fields.get("missing")) or UNREADABLE)
        better = fields.get("higher_is_better")
        return cls(
            title,
            _text(fields.get("reading")),
            value,
            _interval(fields.get("interval")),
            _text(fields.get("unit")),
            better if isinstance(better, bool) else None,
            _mapping(fields.get("settings")),
            _mapping(fields.get("extras")),
        )


Scores = dict[str, Score]


def recall_text(recall: float | None) -> str:
    """How good approximate neighbors are, as it stands beside every figure made of them; "" for
    exact ones. Rounded down: only what misses nothing is 100 %."""
    if recall is None or not 0 <= recall <= 1:
        return ""
    return message("approximate neighbors, recall {recall} %", recall=f"{math.floor(1000 * recall) / 10:.1f}")


def scores_to_json(scores: Mapping[str, Score]) -> JsonObject:
    """Scores of one embedding as plain values, by the names of their metrics."""
    return {name: score.to_json() for name, score in scores.items()}


def scores_from_json(record: object) -> Scores:
    """Scores of one embedding, by the names of their metrics; none where it is no object."""
    return {name: Score.from_json(value, name) for name, value in _mapping(record).items()}


def _class_share(record: object, classes: int) -> ClassShare | None:
    fields = _mapping(record)
    n, counts = _count(fields.get("n")), [_count(v) for v in _items(fields.get("taken_for"))]
    whole = tuple(v for v in counts if v is not None)
    if n is None or len(whole) != classes:
        return None
    value, interval = _number(fields.get("value")), _interval(fields.get("interval"))
    return ClassShare(_text(fields.get("class")), n, value, interval, whole)


def _mapping(value: object) -> JsonObject:
    if not isinstance(value, dict):
        return {}
    return {str(k)[:LONGEST]: v for k, v in list(value.items())[:MOST]}


def _items(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: object) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _count(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 2**53 else None


def _interval(value: object) -> tuple[float, float] | None:
    ends = [_number(v) for v in _items(value)]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]
