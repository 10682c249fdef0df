"""Answers that a page waits for, kept under the hash of what was asked. Torch-free.

A question is a kind and plain values that name its content, so an answer never grows stale; a
process of its own makes it (`python -m contrastive_core answer KIND VALUES`, cli/analyses.py).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.paths import data_home
from contrastive_core.storage import records

__all__ = ["Result", "path", "read", "task", "write"]

VERSION = 3  # of the recipes: a change makes old answers stale


@dataclass(frozen=True, eq=False)
class Result:
    """Plain values, and arrays by name."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def task(kind: str, values: dict[str, Any]) -> str:
    """The name of a question, as its file and the process that answers it carry it."""
    text = json.dumps([VERSION, kind, values], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def path(kind: str, values: dict[str, Any]) -> Path:
    """Where the answer is kept."""
    return data_home() / "answers" / f"{task(kind, values)}.npz"


def read(kind: str, values: dict[str, Any]) -> Result | None:
    """The answer, if it has been made and is whole."""
    try:
        found = records.read_npz(path(kind, values))
        meta = json.loads(found.pop("meta").tobytes())
    except (OSError, ValueError, KeyError):
        return None
    return Result(meta, found)


def write(kind: str, values: dict[str, Any], answer: Result) -> None:
    """Keep an answer, whole or not at all."""
    meta = json.dumps(answer.meta, default=lambda value: value.tolist())
    where = path(kind, values)
    where.parent.mkdir(parents=True, exist_ok=True)
    records.write_npz(where, meta=np.frombuffer(meta.encode(), np.uint8), **answer.arrays)
