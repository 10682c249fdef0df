"""The store of results: files on disk, each named by the hash of its job. A job is a kind and plain values that include
its content's hash, so a result never becomes stale. Maps and scores of a shipped run are shipped with it."""

import contextlib
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core import runs
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import decode, encode
from contrastive_core.base.storage import SHIPPED, data_home
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES

VERSION = 4  # of the recipes: a change makes old results stale
NEWER = {"look": 7, "scores": 6, "comparison": 8, "towers": 7, "tower_pairs": 6}  # recipes that have changed alone
NEWER |= {"adapter": 5, "centered": 5}
FOLDERS = {"map": "maps", "scores": "scores"}  # of a shipped run
FOLDERS |= dict.fromkeys(("towers", "zero_shot", "tower_pairs"), "towers")
MAP_DEFAULTS: dict[str, float | str] = {"seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine"}  # of UMAP
Values = JsonObject  # of a job: the names of its space and its settings
SETTINGS = {"map": MAP_DEFAULTS, "zero_shot": {"templates": list(DEFAULT_TEMPLATES)}}  # of what came along


@dataclass(frozen=True, eq=False)
class Result:
    """Result of an analysis: plain values, and arrays by name."""

    meta: JsonObject
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def key(kind: str, values: Values) -> str:
    """Return the name of a result. For rows of a run it contains the run's id, so renaming the run keeps the result."""
    if (space := values.get("space")) and not Space(**space).is_loaded:
        with contextlib.suppress(ValueError):  # the run is gone
            values = {**values, "space": {**space, "name": runs.load(space["name"]).manifest.get("id", "")}}
    text = json.dumps([NEWER.get(kind, VERSION), kind, values], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def path(kind: str, values: Values) -> Path:
    """Return the path of a result; for a shipped run, that of the shipped result if the values match."""
    if (along := came_along(kind, values)) is not None and along.exists():
        run = runs.load(values["space"]["name"])
        if run.shipped and run.weights_hash() == values["space"]["content"]:
            return along
    return data_home() / "results" / f"{key(kind, values)}.npz"


def came_along(kind: str, values: Values) -> Path | None:
    """Return the path of a result that came with a shipped run; None for any other."""
    if kind not in FOLDERS:
        return None
    space = values["space"]
    settings = {k: v for k, v in values.items() if k not in ("space", "kind")}
    if settings not in ({}, SETTINGS.get(kind, {})):
        return None
    more = kind if FOLDERS[kind] == "towers" else values.get("kind", "")
    return shipped_path(kind, space["name"], space["split"], space["layer"], more)


def shipped_path(kind: str, name: str, *parts: str) -> Path:
    return SHIPPED / name / FOLDERS[kind] / f"{'-'.join(filter(None, parts))}.npz"


def read(kind: str, values: Values) -> Result | None:
    """Return a stored result; None if it is missing or damaged."""
    try:
        arrays = read_npz(path(kind, values))
        return Result(json.loads(arrays.pop("meta").tobytes(), object_hook=decode), arrays)
    except (OSError, ValueError, KeyError):
        return None


def read_meta(path: Path) -> JsonObject:
    """Return only the plain values of a result, without reading its arrays. Raises Damaged; OSError; KeyError."""
    return dict(json.loads(read_npz(path, mapped=1)["meta"].tobytes(), object_hook=decode))


def write(kind: str, values: Values, result: Result) -> None:
    """Store a result atomically."""
    write_npz(path(kind, values), **arrays_of(result))


def arrays_of(result: Result) -> dict[str, np.ndarray]:
    """Return a result as arrays alone, including its plain values."""
    meta = json.dumps(encode(result.meta), default=lambda value: value.tolist())
    return {"meta": np.frombuffer(meta.encode(), np.uint8), **result.arrays}
