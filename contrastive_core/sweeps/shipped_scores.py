"""Scores of sweeps shipped with the app, without their runs. Torch-free."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contrastive_core.base import json_files
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.paths import BUNDLE
from contrastive_core.base.score import Score
from contrastive_core.compare.evaluation import Evaluation
from contrastive_core.sweeps.sweep_file import Row, Sweep

FOLDER = BUNDLE / "sweeps"


def path_of(sweep: Sweep) -> Path:
    """Return the path of a shipped sweep's scores."""
    return FOLDER / f"{Path(sweep.name).name}.json"


def with_shipped(sweep: Sweep, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of `sweep_file.status`, with the shipped scores for cells that are not finished here; these are
    marked `shipped`."""
    try:
        kept = json_files.read_object(path_of(sweep))
        cells = {" ".join(cell["arguments"]): _row(cell, kept["images"]) for cell in kept["cells"]}
    except (OSError, ValueError, KeyError, TypeError):  # most have none
        return [*rows]
    both = zip(sweep.cells(), rows, strict=True)
    return [row if row["status"] == "done" else row | cells.get(" ".join(cell.arguments()), {}) for cell, row in both]


def _row(cell: JsonObject, images: int) -> Row:
    score = Score("kNN", value=cell["scores"]["knn test"])
    if "right" in cell:
        right = np.unpackbits(np.frombuffer(bytes.fromhex(cell["right"]), np.uint8), count=images)
        score.arrays["per_sample"] = right.astype(float)
    evaluation = Evaluation("", "test", {"h": {"knn": score}})
    return {**cell["scores"], "status": "done", "shipped": True, "evaluation": evaluation}
