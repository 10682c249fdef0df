"""The store of answers: files on disk, each under the hash of what was asked. A question is a kind and plain values
that name its content, so an answer never grows stale. Maps and scores of a shipped run come along with it."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core.messages import decode, encode
from contrastive_core.paths import SHIPPED, data_home
from contrastive_core.records import runs
from contrastive_core.records.towers import DEFAULT_TEMPLATES
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject

VERSION = 4  # of the recipes: a change makes old results stale
NEWER = {
    "look": 5,
    "scores": 5,
    "comparison": 6,
    "towers": 7,
    "tower_pairs": 6,
    "checkpoints": 6,
}  # recipes that have changed alone
FOLDERS = {"map": "maps", "scores": "scores", "snapshots": "alike"}  # of a shipped run
FOLDERS |= dict.fromkeys(("towers", "zero_shot", "tower_pairs", "checkpoints"), "towers")
MAP_DEFAULTS = {"seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine"}  # of UMAP
SETTINGS = {"map": MAP_DEFAULTS, "zero_shot": {"templates": list(DEFAULT_TEMPLATES)}}  # of what came along


@dataclass(frozen=True, eq=False)
class Result:
    """Plain values, and arrays by name."""

    meta: JsonObject
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def key(kind: str, values: JsonObject) -> str:
    text = json.dumps([NEWER.get(kind, VERSION), kind, values], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def path(kind: str, values: JsonObject) -> Path:
    """Where a result is kept."""
    return _shipped(kind, values) or data_home() / "results" / f"{key(kind, values)}.npz"


def _shipped(kind: str, values: JsonObject) -> Path | None:
    """The result that came with a shipped run, if these values ask for it."""
    if (path := came_along(kind, values)) is None or not path.exists():
        return None
    about = values.get("space", {})
    run, content = runs.load(values.get("run") or about["name"]), values.get("weights") or about.get("content")
    return path if run.shipped and run.weights_hash() == content else None


def came_along(kind: str, values: JsonObject) -> Path | None:
    """Where the result of a question lies that came with a shipped run, if it did; None of any other question."""
    if kind not in FOLDERS:
        return None
    if "run" in values:  # of its snapshots
        parts = ["train", values["layer"]] if kind == "snapshots" else [kind, *map(str, values["epochs"])]
        return shipped_path(kind, values["run"], *parts)
    space = values["space"]
    settings = {k: v for k, v in values.items() if k not in ("space", "kind")}
    if settings not in ({}, SETTINGS.get(kind, {})) or space.get("epoch"):
        return None
    more = kind if FOLDERS[kind] == "towers" else values.get("kind", "")
    return shipped_path(kind, space["name"], space["split"], space["layer"], more)


def shipped_path(kind: str, name: str, *parts: str) -> Path:
    """Where a result lies that comes with a shipped run; parts: of its file's name."""
    return SHIPPED / name / FOLDERS[kind] / f"{'-'.join(filter(None, parts))}.npz"


def read(kind: str, values: JsonObject) -> Result | None:
    """A result, if it has been made and is whole."""
    try:
        arrays = json_files.read_npz(path(kind, values))
        return Result(json.loads(arrays.pop("meta").tobytes(), object_hook=decode), arrays)
    except (OSError, ValueError, KeyError):
        return None


def write(kind: str, values: JsonObject, result: Result) -> None:
    """Keep a result, whole or not at all."""
    out = path(kind, values)
    out.parent.mkdir(parents=True, exist_ok=True)
    json_files.write_npz(out, **arrays_of(result))


def arrays_of(result: Result) -> dict[str, np.ndarray]:
    """A result as arrays alone, its plain values among them."""
    meta = json.dumps(encode(result.meta), default=lambda value: value.tolist())
    return {"meta": np.frombuffer(meta.encode(), np.uint8), **result.arrays}
