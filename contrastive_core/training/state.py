"""Everything that a training run needs to go on exactly: tensors and plain values.

The order of batches is a pure function of seed and epoch, and the learning rate one of the step,
so the place in the run is three numbers. Everything else that changes is collected here: weights,
buffers (queue, bank, key encoder), optimizer, and every random state.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.training.epoch_totals import EpochTotals
from contrastive_core.training.setup import TrainSetup

__all__ = ["OF_EACH_PROCESS", "TrainPosition", "capture", "restore"]

OF_EACH_PROCESS = ("random.torch", "random.cuda")  # saved once for every process


@dataclass(frozen=True)
class TrainPosition:
    """How far a run is: finished epochs, batches done in this epoch, steps done in all."""

    epoch: int = 0
    batch: int = 0
    step: int = 0

    def after_batch(self) -> TrainPosition:
        return TrainPosition(self.epoch, self.batch + 1, self.step + 1)

    def after_epoch(self) -> TrainPosition:
        return TrainPosition(self.epoch + 1, 0, self.step)


def capture(
    position: TrainPosition, setup: TrainSetup, totals: EpochTotals
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors by name, and plain values that JSON can hold. All processes call it together."""
    tensors = {f"method.{k}": v for k, v in setup.method.state_dict().items()}
    packed = setup.optimizer.state_dict()
    scalars: dict[str, dict[str, Any]] = {}
    for i, entries in packed["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{i}.{key}"] = value
            else:
                scalars.setdefault(str(i), {})[key] = value
    tensors["epoch.totals"] = totals.of_all_processes()
    tensors["random.views"] = setup.generator.get_state()
    tensors["random.torch"] = torch.get_rng_state()
    if setup.device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(setup.device)
    numpy_state: Any = np.random.get_state(legacy=True)
    plain = {
        "place": asdict(position),
        "optimizer": {"groups": packed["param_groups"], "scalars": scalars},
        "random": {
            "python": random.getstate(),
            "numpy": [v.tolist() if isinstance(v, np.ndarray) else v for v in numpy_state],
        },
    }
    return {k: v.detach().contiguous() for k, v in tensors.items()}, plain


def restore(
    tensors: dict[str, Tensor], plain: dict[str, Any], setup: TrainSetup, totals: EpochTotals
) -> TrainPosition:
    """Put everything back that `capture` took. Returns the position to go on from."""
    setup.method.load_state_dict(_under(tensors, "method."))
    state: dict[int, dict[str, Any]] = {}
    for name, value in _under(tensors, "optimizer.").items():
        i, key = name.split(".", 1)
        state.setdefault(int(i), {})[key] = value
    for i, entries in plain["optimizer"]["scalars"].items():
        state.setdefault(int(i), {}).update(entries)
    groups = plain["optimizer"]["groups"]
    setup.optimizer.load_state_dict({"state": state, "param_groups": groups})
    totals.restore(tensors["epoch.totals"], is_rank0=setup.world.is_rank0)
    setup.generator.set_state(tensors["random.views"].cpu())
    torch.set_rng_state(tensors["random.torch"].cpu())
    if "random.cuda" in tensors and setup.device.type == "cuda":
        torch.cuda.set_rng_state(tensors["random.cuda"].cpu(), setup.device)
    version, internal, gauss = plain["random"]["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, key, *position = plain["random"]["numpy"]
    np.random.set_state((kind, np.array(key, np.uint32), *position))
    return TrainPosition(**plain["place"])


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
