"""What the Loss Lab opens on, as it comes with a shipped run: losses on one batch, and its thumbnails. Torch-free."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.messages import decode, encode
from contrastive_core.paths import IMAGES
from contrastive_core.records.lab_view import BatchRequest, LabView
from contrastive_core.records.run import Run
from contrastive_core.storage import json_files

FOLDER = "loss_lab"  # of a shipped run
THUMBS = "thumbs"


def question(weights: str, batch: BatchRequest, pairing: str = "", loss: str = "", knobs: str = "") -> str:
    """What a file answers: a loss on a batch, with the knobs as JSON, or a batch alone. weights: their hash."""
    return json.dumps([weights, asdict(batch), pairing, loss, knobs])


def path_of(run: Run, loss: str) -> Path:
    return run.path / FOLDER / f"{loss}.npz"


def read_view(run: Run, loss: str, asked: str) -> LabView | None:
    """The loss on the batch; None where it did not come with the run."""
    if (found := _read(run, loss, asked)) is None:
        return None
    meta, arrays = found
    return LabView(**{**meta, **arrays})


def read_thumbs(run: Run, asked: str) -> np.ndarray | None:
    """Thumbnails (n, c, h, w) of the batch; None where they did not come with the run."""
    if (found := _read(run, THUMBS, asked)) is None:
        return None
    try:
        return json_files.read_npz(IMAGES / FOLDER / Path(found[0]["file"]).name)[THUMBS]
    except (OSError, ValueError, KeyError):
        return None


def thumbs_path(thumbs: np.ndarray) -> Path:
    """Where thumbnails lie: the same ones once for all runs."""
    return IMAGES / FOLDER / f"{hashlib.sha256(thumbs.tobytes()).hexdigest()[:16]}.npz"


def view_arrays(asked: str, view: LabView) -> dict[str, np.ndarray]:
    """A view as the arrays of its file."""
    values = {f.name: getattr(view, f.name) for f in fields(view)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return with_meta(asked, {name: value for name, value in values.items() if name not in arrays}, **arrays)


def with_meta(asked: str, meta: Mapping[str, Any], **arrays: np.ndarray) -> dict[str, np.ndarray]:
    text = json.dumps({"asked": asked, "meta": encode(meta)}, default=lambda array: array.tolist())
    return {"meta": np.frombuffer(text.encode(), np.uint8), **arrays}


def _read(run: Run, name: str, asked: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Plain values and arrays of a file that answers this question."""
    if not run.shipped:
        return None
    try:
        arrays = json_files.read_npz(path_of(run, name))
        kept = json.loads(arrays.pop("meta").tobytes(), object_hook=decode)
    except (OSError, ValueError, KeyError):
        return None
    return (kept["meta"], arrays) if kept["asked"] == asked else None
