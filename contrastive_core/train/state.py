"""The state that a training needs to continue exactly: position, weights and buffers (queue, bank, key encoder),
optimizer and random states. The order of batches and the learning rate are pure functions of seed, epoch and step."""

from __future__ import annotations

import errno
import math
import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.errors import CannotGoOn, Diverged
from contrastive_core.base.messages import N_, join, message, sentence
from contrastive_core.ops import collectives
from contrastive_core.runs import checkpoints
from contrastive_core.runs.checkpoints import PlainState
from contrastive_core.runs.records import Change
from contrastive_core.runs.run import Run
from contrastive_core.train.setup import TrainSetup, unsplit


def diverged(step: int, loss: float, norm: float, lr: float) -> Diverged:
    """Return the error about a loss or a gradient that is not finite at, or just before, `step`."""
    what = message("the gradient norm is {norm}", norm=norm)
    if not math.isfinite(loss):
        what = message("the loss is {loss}", loss=loss)
    return Diverged(
        "{what} at step {step}; the last good state is kept. Try a lower learning rate (--set lr={lr}), clipped "
        "gradients (--set clip=1), or a higher temperature",
        what=what,
        step=step,
        lr=f"{lr / 3:.2g}",
    )


def reason_of(error: BaseException, setup: TrainSetup) -> str:
    """Return the reason why training ended, in a sentence."""
    if isinstance(error, torch.OutOfMemoryError):
        size, tip = setup.config.batch_size or 0, N_("not even two fit")
        if setup.world.size > 1:  # a trial would wait for processes that have ended
            tip = message("try half of it: --set batch_size={half}", half=max(2, size // 2))
        elif fits := _fitting_batch_size(setup):
            tip = N_("a batch of {fits} fits: --set batch_size={fits}, or keep yours with --micro-batch {fits}")
            if setup.config.micro_batch:
                tip = N_("try --micro-batch {fits}")
            elif unsplit(setup.method):
                tip = N_("a batch of {fits} fits: --set batch_size={fits}")
            tip = message(tip, fits=fits)
        text = N_("{device} has too little memory for batch_size {size}; {tip}")
        return message(text, device=setup.device, size=size, tip=tip)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        file = error.filename or "run folder"
        return message("the disk is full ({filename}); free some space and resume", filename=file)
    return sentence(error)


def _fitting_batch_size(setup: TrainSetup) -> int:
    """Halve the batch size until a step fits into memory; return that size, or 0 if none fits."""
    size = (setup.config.micro_batch or setup.config.batch_size or 0) // 2
    while size >= 2:
        torch.cuda.empty_cache()
        try:
            batch = setup.loader.batch(setup.loader.epoch(0)[0][:size])
            with torch.autocast(setup.device.type, torch.bfloat16, enabled=bool(setup.config.amp)):
                pairs = setup.method.pairs(batch, setup.generator)
            setup.loss(pairs).value.backward()
            return size
        except torch.OutOfMemoryError:
            size //= 2
    return 0


OF_EACH_PROCESS = ("random.torch", "random.cuda")  # saved once for every process


@dataclass(frozen=True)
class TrainPosition:
    """The position of a run: finished epochs, batches done in this epoch, and total steps."""

    epoch: int = 0
    batch: int = 0
    step: int = 0

    def after_batch(self) -> TrainPosition:
        return TrainPosition(self.epoch, self.batch + 1, self.step + 1)

    def after_epoch(self) -> TrainPosition:
        return TrainPosition(self.epoch + 1, 0, self.step)


def new_totals(device: torch.device) -> Tensor:
    """Return zeros (3,) for an epoch's sums of losses (this process's part), gradient norms and steps. They stay on the
    device, and a sum that is not finite stays so."""
    return torch.zeros(3, dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)


def of_all_processes(totals: Tensor) -> Tensor:
    """Return the totals (3,) with the losses summed over all processes. All call it together."""
    return torch.cat([collectives.all_reduce_sum(totals[:1]), totals[1:]])


def epoch_means(totals: Tensor, step: int, lr: float) -> tuple[float, float]:
    """Return the mean loss and gradient norm of the epoch's steps before `step`. All processes call it together. Raises
    Diverged if one is not finite."""
    loss, norm, steps = of_all_processes(totals).tolist()
    means = loss / max(1.0, steps), norm / max(1.0, steps)
    if not all(map(math.isfinite, means)):
        raise diverged(step, *means, lr)
    return means


class StateWriter:
    """Writes states in a thread while training continues, one at a time. Its context waits for the last one."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "state-writer")
        self._last: Future[None] | None = None

    def __enter__(self) -> StateWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._thread.shutdown()
        if kind is None:  # else training has a reason of its own to end
            self.wait()

    def start(self, write: Callable[[], None]) -> None:
        """Call `write` in the thread. The previous write must have ended."""
        self._last = self._thread.submit(write)

    @property
    def is_idle(self) -> bool:
        """Return whether no write is in progress."""
        return self._last is None or self._last.done()

    def wait(self) -> None:
        """Wait for the last write. Raises its error."""
        if self._last:
            self._last.result()

    def check(self) -> None:
        """Raise the error of the last write if it has failed."""
        if self.is_idle:
            self.wait()


def save(
    setup: TrainSetup,
    run: Run,
    position: TrainPosition,
    totals: Tensor,
    writer: StateWriter,
    changes: Sequence[Change] = (),
) -> None:
    """Copy everything that a resume needs and leave writing to `writer`. The metrics must be on disk before: a resume
    removes lines after the state's step. Raises: CannotGoOn, before anything is written, if a loss or gradient was not
    finite, or the processes differ; the error of the previous write."""
    epoch_means(totals, position.step, setup.config.lr or 0)
    if names := collectives.mismatched_tensors(setup.method.state_dict()):
        raise CannotGoOn(
            "{name} differs between processes (and {others} others); continue with --resume from the last state, on "
            "identical machines",
            name=names[0],
            others=len(names) - 1,
        )
    tensors, plain = capture(position, setup, totals)
    local_states = {k: v for k, v in tensors.items() if k in OF_EACH_PROCESS}
    plain |= {"world": setup.world.size, "versions": _versions(setup)}
    plain |= {"changes": [change for change in changes if change["step"] <= position.step]}
    plain |= {"captions": setup.dataset.captions.digest} if setup.dataset.captions else {}
    for rank, states in enumerate(collectives.all_gather_object(local_states)):
        tensors |= {f"rank{rank}.{k}": v for k, v in states.items()}

    def start_writing() -> None:
        writer.wait()  # memory holds one copy
        on_gpu = [v.device for v in tensors.values() if v.is_cuda]
        dense = torch.contiguous_format
        copies = {  # those of a GPU, in pinned memory, are not waited for
            k: v.detach().to("cpu", non_blocking=v.is_cuda, copy=True, memory_format=dense) for k, v in tensors.items()
        }
        copied = torch.cuda.current_stream(on_gpu[0]).record_event() if on_gpu else None

        def write() -> None:
            if copied:
                copied.synchronize()
            checkpoints.save_state(run, copies, plain)
            checkpoints.save_weights(run, checkpoints.strip_prefix(copies, "method."))

        writer.start(write)

    collectives.on_rank0(start_writing)


def resume(setup: TrainSetup, run: Run, totals: Tensor) -> tuple[TrainPosition, str, list[Change]]:
    """Restore the last state. Return its position, a note if the run is not bit-identical, and earlier changes."""
    tensors, plain = collectives.broadcast_object(checkpoints.load_state(run) if setup.world.is_rank0 else None)
    for name in OF_EACH_PROCESS:
        if (state := tensors.get(f"rank{setup.world.rank}.{name}")) is not None:
            tensors[name] = state

    if setup.dataset.captions and plain.get("captions") != setup.dataset.captions.digest:
        raise CannotGoOn(
            "{name} cannot continue: its captions differ from those it was trained on; restore the old captions.csv, "
            "or train again",
            name=run.name,
        )
    before, now = tensors.get("method.text_tower.digest"), setup.method.state_dict().get("text_tower.digest")
    if before is not None and now is not None and not torch.equal(before.cpu(), now.cpu()):
        raise CannotGoOn(
            "{name} cannot continue: the folder of its text tower was edited; restore the old files, or train again",
            name=run.name,
        )
    position = restore(tensors, plain, setup, totals)
    reasons, notes = [], []
    if plain["world"] != setup.world.size:
        text = N_("it had {world} processes and continues with {size} (equal up to rounding)")
        reasons.append(message(text, world=plain["world"], size=setup.world.size))
    if plain["versions"] != (versions := _versions(setup)):
        text = N_("it ran on {versions} and continues with {setup}")
        reasons.append(message(text, versions=plain["versions"], setup=versions))
    if damaged := ", ".join(plain["damaged"]):
        notes.append(message("{damaged} is damaged; continued from the state before it", damaged=damaged))
    if reasons:
        text = N_("not bit-identical to an uninterrupted run: {reasons}")
        notes.append(message(text, reasons=join("; ", reasons)))
    return position, join(". ", notes), plain.get("changes") or []


def _versions(setup: TrainSetup) -> str:
    text = N_("torch {version}, {type}, {threads} threads")
    return message(text, version=torch.__version__, type=setup.device.type, threads=torch.get_num_threads())


def capture(position: TrainPosition, setup: TrainSetup, totals: Tensor) -> tuple[dict[str, Tensor], PlainState]:
    """Collect tensors by name, without copies, and plain values for JSON. All processes call it together."""
    tensors = {f"method.{k}": v for k, v in setup.method.state_dict().items()}
    packed = setup.optimizer.state_dict()
    scalars: dict[str, dict[str, object]] = {}
    for i, entries in packed["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{i}.{key}"] = value
            else:
                scalars.setdefault(str(i), {})[key] = value
    tensors["epoch.totals"] = of_all_processes(totals)
    tensors["random.views"] = setup.generator.get_state()
    tensors["random.torch"] = torch.get_rng_state()
    if setup.device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(setup.device)
    numpy_state: Any = np.random.get_state(legacy=True)
    numbers = [v.tolist() if isinstance(v, np.ndarray) else v for v in numpy_state]
    plain: PlainState = {
        "place": {"epoch": position.epoch, "batch": position.batch, "step": position.step},
        "optimizer": {"groups": packed["param_groups"], "scalars": scalars},
        "random": {"python": random.getstate(), "numpy": numbers},
    }
    return tensors, plain


def restore(tensors: dict[str, Tensor], plain: PlainState, setup: TrainSetup, totals: Tensor) -> TrainPosition:
    """Restore everything that `capture` collected. Returns the position to continue from."""
    setup.method.load_state_dict(checkpoints.strip_prefix(tensors, "method."))
    state: dict[int, dict[str, object]] = {}
    parameters = [p for group in setup.optimizer.param_groups for p in group["params"]]
    for name, value in checkpoints.strip_prefix(tensors, "optimizer.").items():
        i, key = name.split(".", 1)
        own = parameters[int(i)]
        if value.shape == own.shape:  # files hold no strides, and CUDA's fused optimizers refuse others
            value = torch.empty_like(own, dtype=value.dtype, device=value.device).copy_(value)
        state.setdefault(int(i), {})[key] = value
    for i, entries in plain["optimizer"]["scalars"].items():
        state.setdefault(int(i), {}).update(entries)
    groups = own_kernels(plain["optimizer"]["groups"], setup.optimizer)
    setup.optimizer.load_state_dict({"state": state, "param_groups": groups})
    totals.copy_(tensors["epoch.totals"])
    if not setup.world.is_rank0:  # the sum of losses goes to one process, the rest to each
        totals[0] = 0
    setup.generator.set_state(tensors["random.views"].cpu())
    torch.set_rng_state(tensors["random.torch"].cpu())
    if "random.cuda" in tensors and setup.device.type == "cuda":
        torch.cuda.set_rng_state(tensors["random.cuda"].cpu(), setup.device)
    version, internal, gauss = plain["random"]["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, key, *position = plain["random"]["numpy"]
    np.random.set_state((kind, np.array(key, np.uint32), *position))
    return TrainPosition(**plain["place"])


def own_kernels(groups: list[dict[str, object]], optimizer: torch.optim.Optimizer) -> list[dict[str, object]]:
    """Return saved parameter groups with this device's kernel options, so a state can move between devices."""
    names = ("fused", "foreach")
    own = [{k: g[k] for k in names if k in g} for g in optimizer.param_groups]
    return [{**group, **kernels} for group, kernels in zip(groups, own, strict=False)]
