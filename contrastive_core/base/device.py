"""Devices for tensors: CUDA, MPS or CPU, by name or automatic, and their settings. bf16 autocast is on only where it
was measured to help (benchmarks/train_step.py): on CUDA from compute capability 8.0, and on CPUs with AMX tiles or
AVX512-BF16, where it takes a third to a half off the step time of the small encoder. Other CPUs emulate bf16, which is
slower."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import torch

from contrastive_core.base.errors import CannotGoOn, NoDevice
from contrastive_core.base.messages import N_, message

KNOWN = N_("auto, cpu, cuda, cuda:N, mps")


def choose(name: str = "auto") -> torch.device:
    """Return the device called `name`; "auto" is CUDA if present, else MPS, else the CPU. Raises NoDevice."""
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if _present(kind))
    kind = name.split(":")[0]
    try:
        device = torch.device(name) if kind in ("cpu", "cuda", "mps") else None
    except RuntimeError:  # cuda:x
        device = None
    if device is None:
        raise NoDevice("unknown device {name}; known: {known}", name=repr(name), known=KNOWN)
    if kind != "cpu" and not _present(kind):
        here = ", ".join(kind for kind in ("cpu", "cuda", "mps") if _present(kind))
        raise NoDevice("this machine has no {kind} device (available: {here}); use --device auto", kind=kind, here=here)
    if kind == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        template = N_("there is no {name}; this machine has {device_count} GPUs")
        if count == 1:
            template = N_("there is no {name}; this machine has 1 GPU")
        raise NoDevice(template, name=name, device_count=count)
    return device


def _present(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return torch.backends.mps.is_available() if kind == "mps" else kind == "cpu"


def for_process(name: str, local_rank: int, local_size: int) -> torch.device:
    """Return the device of one of `local_size` processes on this machine, one GPU each.
    Raises: NoDevice, also if several processes would share one numbered GPU."""
    if local_size == 1:
        return choose(name)
    check_shared(name, local_size)
    kind = choose(name).type
    return choose(f"cuda:{local_rank}" if kind == "cuda" else kind)


def check_shared(name: str, local_size: int) -> None:
    """Raise NoDevice if several processes of a machine would share one numbered GPU."""
    if local_size > 1 and name.startswith("cuda:"):
        raise NoDevice(
            "{name} is one GPU, but this machine has {local_size} processes; use --device cuda for one GPU per "
            "process, or start one process",
            name=name,
            local_size=local_size,
        )


def describe(device: torch.device) -> str:
    """Describe the device for the run's manifest."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    if device.type == "cpu":
        threads = torch.get_num_threads()
        return message("{device} ({threads} threads)", device=device, threads=threads)
    return str(device)


def wants_bf16(device: torch.device) -> bool:
    """Return whether bf16 autocast speeds up training on the device."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type != "cpu":
        return False
    products = (getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("amx_tile", "avx512_bf16"))
    return any(has is not None and has() for has in products)  # x86 builds of torch have them


def is_free_to_read(x: torch.Tensor) -> bool:
    """Return whether the host can read a tensor's values without waiting for a device, outside a compiled graph."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def send(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a tensor to a device without waiting. On CUDA the copy starts from pinned memory."""
    if x.device == device:
        return x
    return (x.pin_memory() if device.type == "cuda" else x).to(device, non_blocking=True)


def memory_bytes(device: torch.device) -> int:
    """Return the peak memory in bytes: allocated on a CUDA device, otherwise resident in this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # Windows keeps the peak elsewhere
        about = psutil.Process().memory_info()
        return int(getattr(about, "peak_wset", about.rss))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def enough_memory(device: torch.device, count: int, height: int, width: int) -> Iterator[None]:
    """Context that raises CannotGoOn if the device runs out of memory while encoding `count` images of this size."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        values = {"device": device, "count": count, "width": width, "height": height}
        raise CannotGoOn(
            "{device} has too little memory for {count} images of {width} × {height} pixels; close other programs on "
            "it, use the CPU, or choose a smaller encoder",
            **values,
        ) from error


def pick_device(name: str = "auto") -> torch.device:
    """Return the device for computations: the named one, else CUDA if present, else the CPU. The CPU also replaces MPS,
    which lacks exact sorting and float64. Raises NoDevice."""
    device = choose(name)
    return torch.device("cpu") if device.type == "mps" else device
