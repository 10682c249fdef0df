"""A run for TensorBoard: its metrics as scalars, its settings, its embedding for the projector. `tensorboard` alone
writes them; TensorFlow is not needed."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrastive_core.evaluation.embed import data_of, embed_run
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import visible

MOST = 10_000  # rows that the projector takes
PICTURE = 8192  # pixels along the side of its one picture, at most
OF_A_STEP = "images_per_s"  # only a step's line has it


def export_tensorboard(
    run: Run,
    out: Path,
    split: str = "test",
    layer: str = "h",
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Any]:
    """Write the log folder `out`; returns how many `scalars` and `rows` it holds. Raises: ValueError where the extra is
    missing, the folder holds something, or the run has no weights or data."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        text = "this needs tensorboard, which is missing: pip install 'contrastive-lab[tensorboard]'"
        raise ValueError(text) from None
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there and holds something: give a new folder")
    rows = embed_run(run, split, layer, device, fraction_of(on_progress, "embedding"))
    dataset = data_of(run, split)
    on_progress("the log", None)
    writer = SummaryWriter(log_dir=str(out))
    try:
        count = _scalars(writer, run)
        config = json.dumps(run.config, indent=1, default=str)
        writer.add_text("settings", "\n".join(f"    {line}" for line in config.split("\n")))
        shown = _embedding(writer, rows, dataset.images, f"{layer}-{split}")
    finally:
        writer.close()
    return {"out": str(out), "scalars": count, "rows": shown}


def _scalars(writer: Any, run: Run) -> int:
    """Every number of the metrics, by step: of steps and of epochs apart."""
    count = 0
    for line in run.metrics():
        kind = "step" if OF_A_STEP in line else "epoch"
        for name, value in line.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if is_number and name not in ("step", "epoch"):
                writer.add_scalar(f"{kind}/{name}", value, int(line.get("step") or 0))
                count += 1
    return count


def _embedding(writer: Any, rows: EmbeddingSet, images: Any, tag: str) -> int:
    """The projector's files: vectors, ids and classes, and one picture of all images."""
    shown = np.arange(len(rows))
    if len(rows) > MOST:
        shown = np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST])
    labels = ["" if rows.labels is None else rows.class_name(int(rows.labels[i])) for i in shown.tolist()]
    table = [[_cell(rows.ids[i]), _cell(c)] for i, c in zip(shown.tolist(), labels, strict=True)]
    side = math.ceil(math.sqrt(len(shown))) * max(images.shape[-2:])
    pictures = None
    if side <= PICTURE and images.shape[-1] == images.shape[-2]:
        pictures = torch.from_numpy(np.array(images[shown])).float() / 255
        pictures = pictures[:, visible(pictures.shape[1])].expand(-1, 3, -1, -1)
    writer.add_embedding(
        torch.from_numpy(rows.features[shown]), table, pictures, 0, tag, metadata_header=["id", "class"]
    )
    return len(shown)


def _cell(text: object) -> str:
    """A cell of a table that is parted by tabs and lines."""
    return "".join(c if c.isprintable() else " " for c in str(text)) or "–"
