"""Short trainings: one that starts, a stop as `kill` asks for it, and whether two runs ended alike."""

import signal
from typing import Any

import torch

from contrastive_core import runs
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import loop
from contrastive_core.train.setup import TrainSetup, prepare

__all__ = ["SHORT", "assert_bit_equal", "start", "stop_at"]

SHORT = TrainConfig(
    "sup_con", "digits", epochs=2, device="cpu", threads=1, batch_size=256, sample=200, encoder_knobs={"width": 0.25}
)


def start(config: TrainConfig, name: str, **keywords: Any) -> tuple[TrainSetup, Run, str]:
    p = prepare(config)
    run = runs.create(name, p.config.to_dict())
    return p, run, loop.train(p, run, **keywords)


def stop_at(step: int) -> loop.OnLines:
    """A report that asks for a stop when that step is done."""

    def report(lines: list[loop.Line]) -> None:
        if any("images_per_s" in line and line["step"] == step for line in lines):
            signal.raise_signal(signal.SIGTERM)

    return report


def assert_bit_equal(one: Run, two: Run) -> None:
    a, b = (checkpoints.load_state(run)[0] for run in (one, two))
    assert a.keys() == b.keys()
    assert [k for k in a if not torch.equal(a[k], b[k])] == []
