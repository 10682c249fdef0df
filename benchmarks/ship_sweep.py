"""Keep what a sweep gave beside its file, for pages to show: scores of its cells, without their runs.

    CONTRASTIVE_LAB_RUNS=FOLDER contrastive-lab sweep sweeps/temperature.toml
    CONTRASTIVE_LAB_RUNS=FOLDER python -m benchmarks.ship_sweep sweeps/temperature.toml

Of each cell that is done: its settings, kNN accuracy of h on the test images and which of them are right, and the
figures of its last epoch.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from contrastive_core import runs
from contrastive_core.base import storage
from contrastive_core.base.json_files import JsonObject
from contrastive_core.data import datasets
from contrastive_core.engine.answers.scores import evaluate
from contrastive_core.sweeps import sweep_file, sweep_results
from contrastive_core.sweeps.sweep_file import Cell

KEPT = ("uniformity", "alignment", "rankme", "loss", "seconds", "knn_train_sample")  # of the last epoch


def scored(cell: Cell, row: JsonObject) -> JsonObject:
    """One cell as it is kept; `right`: a bit for each test image, as hexadecimal digits."""
    knn = evaluate(runs.load(cell.run), metrics=["knn"]).score("h", "knn")
    assert knn is not None
    assert knn.per_sample is not None
    print(f"{cell.run}: kNN {100 * (knn.value or 0):.1f} %", flush=True)
    scores = {"knn test": knn.value, **{name: float(f"{row[name]:.6g}") for name in KEPT}}
    return {"arguments": cell.arguments(), "scores": scores, "right": np.packbits(knn.per_sample > 0).tobytes().hex()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a sweep file")
    sweep = sweep_file.load(parser.parse_args().file)
    rows = zip(sweep.cells(), sweep_file.status(sweep), strict=True)
    cells = [scored(cell, row) for cell, row in rows if row["status"] == "done"]
    lines, images = ",\n".join(map(json.dumps, cells)), len(datasets.load(sweep.base["dataset"], "test"))
    storage.write_bytes(sweep_results.path_of(sweep), f'{{"images": {images}, "cells": [\n{lines}\n]}}\n'.encode())


if __name__ == "__main__":
    main()
