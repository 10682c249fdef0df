"""Adapter for torch.distributed: the processes of a run (`--processes` or torchrun) and simple messages between them.
With one process, every function returns its input."""

import functools
import hashlib
import hmac
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from contrastive_core.base.device import check_shared
from contrastive_core.base.errors import Elsewhere, NoDevice
from contrastive_core.base.local_processes import RENDEZVOUS

T = TypeVar("T")
PROOF_PATIENCE = timedelta(minutes=2)  # all processes have met at that moment
PATIENCE = timedelta(days=7)  # for work that takes one process as long as it takes


@dataclass(frozen=True)
class World:
    """Rank and number of the processes, overall and on this machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    @property
    def is_rank0(self) -> bool:
        """Return whether this process has rank 0 and writes the files."""
        return self.rank == 0


def init_process_group(device: str = "cpu") -> World:
    """Join the other processes of this command; without them, the world has one process. `device`: "cuda" for one GPU
    per process, "cuda:N" for a named one. One process of a machine raises ValueError, the others `Elsewhere`."""
    local_rank, local_size = _local()
    cuda = device.split(":")[0] == "cuda"
    try:
        check_shared(device, local_size)
        if cuda and torch.cuda.device_count() < local_size:
            raise NoDevice(
                f"{local_size} processes need {local_size} GPUs, and this machine has "
                f"{torch.cuda.device_count()}: take fewer processes, or --device cpu"
            )
    except NoDevice:
        if local_rank:
            raise Elsewhere from None
        raise
    if not dist.is_initialized() and "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        if cuda:
            torch.cuda.set_device(torch.device(device if ":" in device else f"cuda:{local_rank}"))
        store = None
        if path := os.environ.get(RENDEZVOUS):
            store = dist.FileStore(path, int(os.environ["WORLD_SIZE"]))
        rank, size = (int(os.environ[name]) if store else -1 for name in ("RANK", "WORLD_SIZE"))
        dist.init_process_group("nccl" if cuda else "gloo", store=store, rank=rank, world_size=size)
        _check_peers(dist.group.WORLD)
    return world()


def new_group(timeout: timedelta | None = None) -> Any:
    """Create another gloo group of all processes. All of them must call this together."""
    group = dist.new_group(backend="gloo", timeout=timeout)
    _check_peers(group)
    return group


def _check_peers(group: Any) -> None:
    """Check that no other program answers in place of a process: gloo accepts the first connection without a secret.
    Each pair exchanges a proof directly, before any pickle. Raises RuntimeError."""
    if RENDEZVOUS not in os.environ or dist.get_backend(group) != "gloo":
        return
    rank, size, name = dist.get_rank(), dist.get_world_size(), group.group_name
    secret = os.environ[RENDEZVOUS].encode()

    def proof(sender: int, receiver: int) -> bytes:
        return hmac.digest(secret, f"{name}/{sender}/{receiver}".encode(), "sha256")

    mine = torch.tensor([list(proof(rank, other)) for other in range(size)], dtype=torch.uint8)
    answers = torch.empty_like(mine)
    exchange: Any = dist.all_to_all_single(answers, mine, group=group, async_op=True)
    exchange.wait(PROOF_PATIENCE)  # a stranger may be silent
    for other, answer in enumerate(answers):
        if not hmac.compare_digest(answer.numpy().tobytes(), proof(other, rank)):
            raise RuntimeError(f"another program answers in place of process {other}")


def _local() -> tuple[int, int]:
    """Return the rank and number of processes on this machine, from torchrun's environment variables."""
    return int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))


def world() -> World:
    """Return the rank and number of processes; a world of one process if no group was joined."""
    return World(dist.get_rank(), dist.get_world_size(), *_local()) if dist.is_initialized() else World()


@contextmanager
def process_group(device: str) -> Iterator[World]:
    """Join the process group for a command on `device`, and leave it afterwards."""
    if not torch.cuda.is_available():
        device = "cpu"
    try:
        yield init_process_group("cuda" if device == "auto" else device)
        all_gather_object(None)  # nobody leaves while another still works
    finally:
        destroy_process_group()


def destroy_process_group() -> None:
    """Leave the process group, if there is one."""
    if dist.is_initialized():
        _patient_group.cache_clear()
        dist.destroy_process_group()


def is_single_process() -> bool:
    """Return whether this is the only process."""
    return not dist.is_initialized() or dist.get_world_size() == 1


class _Gather(torch.autograd.Function):
    """All processes' rows in rank order; backward sums the gradients of each row. torch.distributed.nn's all_gather
    needs shares of equal size, and on NCCL the order of its sum varies."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int]) -> Tensor:
        ctx.counts = counts
        padded = x.new_zeros(max(counts), *x.shape[1:])
        padded[: len(x)] = x
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([p[:n] for p, n in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        grad, mine = grads[0].contiguous(), ctx.counts[dist.get_rank()]
        parts = grad.new_empty(len(ctx.counts) * mine, *grad.shape[1:])
        dist.all_to_all_single(parts, grad, [mine] * len(ctx.counts), ctx.counts)
        return parts.view(len(ctx.counts), mine, *grad.shape[1:]).sum(0), None


def all_gather(x: Tensor, counts: list[int] | None = None) -> Tensor:
    """Concatenate the rows (n, …) of all processes to (Σ n, …), with gradient; `counts`: every n, if known."""
    if is_single_process():
        return x
    counts = [one for (one,) in all_gather_ints(len(x))] if counts is None else counts
    if x.dtype == torch.bool:
        return all_gather(x.to(torch.uint8), counts).bool()
    return _Gather.apply(x.contiguous(), counts)  # type: ignore[no-any-return]


def all_gather_ints(*mine: int) -> list[list[int]]:
    """Gather a few integers from every process, in rank order. One small message, cheap enough for every step."""
    if is_single_process():
        return [list(mine)]
    local = torch.tensor(mine, device="cuda" if dist.get_backend() == "nccl" else "cpu")  # NCCL sends no others
    gathered = local.new_empty(dist.get_world_size() * len(mine))
    dist.all_gather_into_tensor(gathered, local)
    return gathered.view(-1, len(mine)).tolist()  # type: ignore[no-any-return]


def all_gather_object(value: Any, group: dist.ProcessGroup | None = None) -> list[Any]:
    """Gather a plain value from every process, in rank order."""
    if is_single_process():
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value, group)
    return values


def broadcast_object(value: Any) -> Any:
    """Return the value of rank 0 on every process."""
    if is_single_process():
        return value
    holder = [value]
    dist.broadcast_object_list(holder, 0)
    return holder[0]


def raise_together(work: Callable[[], T], patient: bool = False) -> T:
    """Run `work` on every process. If it fails on some, the lowest failing rank raises its error and every other
    process `Elsewhere`, so nobody waits for a process that has ended. `patient`: allow far more than the usual
    timeout."""
    group = _patient_group(dist.group.WORLD) if patient and not is_single_process() else None
    result: T | None = None
    error: Exception | None = None
    try:
        result = work()
    except Exception as caught:
        error = caught
    failed = all_gather_object(error is not None, group)
    if error is not None and failed.index(True) == world().rank:
        raise error
    if any(failed):
        raise Elsewhere
    return result  # type: ignore[return-value]


def on_rank0(work: Callable[[], None]) -> None:
    """Run `work` on rank 0, without a timeout, while the others wait. All processes call it together. Rank 0 raises its
    error, and the others raise `Elsewhere`."""
    raise_together(work if world().is_rank0 else lambda: None, patient=True)


@functools.cache
def _patient_group(world: dist.ProcessGroup | None) -> Any:
    """Return a group of the processes of `world` with a timeout of days. All processes make the first call together."""
    return new_group(PATIENCE)


class _AllReduceSum(torch.autograd.Function):
    """Sum over processes whose gradient is summed too. torch.distributed.nn's is deprecated, and its replacement has a
    gradient only in compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _summed(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return _summed(grads[0])


def _summed(x: Tensor) -> Tensor:
    x = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(x)
    return x


def all_reduce_sum(x: Tensor) -> Tensor:
    """Sum `x` over all processes, with gradient."""
    return x if is_single_process() else _AllReduceSum.apply(x)  # type: ignore[no-any-return]


def mismatched_tensors(state: Mapping[str, Tensor]) -> list[str]:
    """Return the names of tensors that are not bit-identical on all processes."""
    if is_single_process():
        return []
    digests = {k: hashlib.sha256(v.detach().cpu().contiguous().numpy().tobytes()).hexdigest() for k, v in state.items()}
    hashes = all_gather_object(digests)
    return [k for k in state if any(h[k] != hashes[0][k] for h in hashes)]
