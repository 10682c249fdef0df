"""A run's state to its folder and back, for one process or many."""

from __future__ import annotations

import torch

from contrastive_core.distributed import collectives
from contrastive_core.errors import CannotGoOn
from contrastive_core.runs import Run, checkpoints
from contrastive_core.training.epoch_totals import EpochTotals
from contrastive_core.training.failures import diverged
from contrastive_core.training.metrics_log import MetricsLog
from contrastive_core.training.setup import TrainSetup
from contrastive_core.training.state import OF_EACH_PROCESS, TrainPosition, capture, restore

__all__ = ["resume", "save"]


def save(
    setup: TrainSetup, run: Run, log: MetricsLog, position: TrainPosition, totals: EpochTotals
) -> None:
    """Keep all that a resume needs, every process's random states, and the weights for use.

    Raises: CannotGoOn, before anything is written, when a step since the last look had no finite
        loss or gradient, or when weights, queue or bank are not the same, bit by bit, on every
        process.
    """
    if sums := totals.not_finite():
        raise CannotGoOn(diverged(position.step, *sums, setup.config.lr or 0))
    if names := collectives.mismatched_tensors(setup.method.state_dict()):
        raise CannotGoOn(
            f"{names[0]} is no longer the same on all processes (nor are {len(names) - 1} others); "
            "go on with --resume from the last state, on machines of one kind"
        )
    tensors, plain = capture(position, setup, totals)
    local_states = {k: v for k, v in tensors.items() if k in OF_EACH_PROCESS}
    plain |= {"world": setup.world.size, "versions": _versions(setup)}
    for rank, states in enumerate(collectives.all_gather_object(local_states)):
        tensors |= {f"rank{rank}.{k}": v for k, v in states.items()}
    if setup.world.is_rank0:
        log.flush()  # first: a resume cuts lines off after the state's step, and adds none before
        checkpoints.save_state(run, tensors, plain)
        checkpoints.save_weights(run, setup.method.state_dict())


def resume(setup: TrainSetup, run: Run, totals: EpochTotals) -> tuple[TrainPosition, str]:
    """Put the last state back; its position, and why equality is void, if it is."""
    tensors, plain = collectives.broadcast_object(
        checkpoints.load_state(run) if setup.world.is_rank0 else None
    )
    for name in OF_EACH_PROCESS:
        if (state := tensors.get(f"rank{setup.world.rank}.{name}")) is not None:
            tensors[name] = state
    tensors.setdefault("epoch.totals", torch.zeros(3))  # states of before: the mean starts here
    position = restore(tensors, plain, setup, totals)
    reasons, damaged = [], ", ".join(plain["damaged"])
    if plain["world"] != setup.world.size:
        reasons.append(
            f"it had {plain['world']} processes and goes on with {setup.world.size} "
            "(equal to rounding)"
        )
    if plain["versions"] != _versions(setup):
        reasons.append(f"it ran on {plain['versions']} and goes on with {_versions(setup)}")
    notes = [f"{damaged} is damaged; went on from the state before it"] if damaged else []
    notes += [f"not bit-equal to a run in one go: {'; '.join(reasons)}"] if reasons else []
    return position, ". ".join(notes)


def _versions(setup: TrainSetup) -> str:
    threads = torch.get_num_threads()
    return f"torch {torch.__version__}, {setup.device.type}, {threads} threads"
