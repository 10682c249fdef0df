"""What a run cost: time, speed, memory, parameters. Torch-free: read from its files."""

from __future__ import annotations

import json
import math

from contrastive_core.records.run import Run
from contrastive_core.storage.json_files import JsonObject

__all__ = ["cost_of", "parameters_of"]

LONGEST = 16 << 20  # bytes of a header, above which the file is not looked into


def cost_of(run: Run) -> JsonObject:
    """`seconds` of training, `images_per_s` (median of steps), `memory_mb` (peak), `parameters`;
    None for what was not recorded."""
    lines = run.metrics()
    seconds = [line["seconds"] for line in lines if line.get("seconds")]
    speeds = sorted(line["images_per_s"] for line in lines if line.get("images_per_s"))
    memory = [line["memory_mb"] for line in lines if line.get("memory_mb")]
    return {
        "seconds": max(seconds, default=None),
        "images_per_s": speeds[len(speeds) // 2] if speeds else None,
        "memory_mb": max(memory, default=None),
        "parameters": parameters_of(run),
    }


def parameters_of(run: Run) -> int | None:
    """Numbers in the encoder and its head, from the header of the weights' file."""
    try:
        with run.weights.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= LONGEST else {}
        shapes = {k: v["shape"] for k, v in header.items() if k.startswith(("encoder.", "head."))}
        return sum(math.prod(s) for s in shapes.values()) or None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
