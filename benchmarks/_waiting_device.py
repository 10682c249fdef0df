"""A device in Python that counts how often the host would wait for it.

Its tensors hold real numbers, computed by the CPU, so a training step takes its usual course. Its name is `pretend`.
As on CUDA, a tensor that is on the device cannot be computed with one that is not, except for a single number. The
host waits for the device when it reads a number of it, when a shape depends on numbers, and when it copies without
`non_blocking`. A process that has called `install` keeps the device, so tests start one of its own.
"""

from __future__ import annotations

import collections
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

__all__ = ["DEVICE", "Waits", "install", "on_device", "waits"]

DEVICE = "pretend"
HERE = ("contrastive_core", "benchmarks")  # folders whose lines are named
READS = {  # operations that return a number, or as many rows as the numbers say
    "_local_scalar_dense": "item",
    "_unique2": "unique",
    **{name: name for name in ("bincount", "equal", "masked_select", "nonzero", "repeat_interleave")},
    **{name: name for name in ("unique", "unique_consecutive", "unique_dim")},
}
CONSTANTS = (torch.tensor, torch.as_tensor, Tensor.new_tensor)

Waits = collections.Counter[str]  # how often, by "kind at file:line"


class _Backend(_DummyBackendModule):
    """What torch asks of a device's module."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


def install() -> None:
    """Make the device known to this process."""
    _setup_privateuseone_for_python_backend(DEVICE, _Backend())


class _OnDevice(Tensor):
    """A tensor that says it is on the device, around one of the CPU."""

    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> Any:
        layout = {"strides": raw.stride(), "storage_offset": raw.storage_offset(), "dtype": raw.dtype}
        make: Any = Tensor._make_wrapper_subclass  # type: ignore[attr-defined]
        made = make(cls, raw.shape, device=torch.device(DEVICE, 0), **layout)
        made.raw = raw
        return made

    def __init__(self, raw: Tensor) -> None: ...

    def __repr__(self) -> str:  # type: ignore[override]
        return f"on_device({self.raw})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return _computed(func, args, kwargs or {}, collections.Counter())


def on_device(x: Tensor) -> Tensor:
    """The tensor on the device."""
    return _OnDevice(x)


@contextmanager
def waits() -> Iterator[Waits]:
    """Count the waits of what is computed inside. Only inside can tensors be made on the device."""
    found: Waits = collections.Counter()
    with _Operations(found), _Functions(found):
        yield found


class _Operations(TorchDispatchMode):
    def __init__(self, found: Waits) -> None:
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {}, self.found)


class _Functions(TorchFunctionMode):
    """What no operation shows: tensors of Python's numbers, which the host copies to the device, and lists."""

    def __init__(self, found: Waits) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        ours = bool(args) and isinstance(args[0], _OnDevice)
        if func is torch.gru and ours:
            return _gru(*args[:3])
        if func is Tensor.tolist and ours:
            self.found[f"tolist at {_line()}"] += 1
            return args[0].raw.tolist()
        return self._constant(func, args, kwargs) if func in CONSTANTS else func(*args, **kwargs)

    def _constant(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        device = kwargs.pop("device", None)
        if func is Tensor.new_tensor:
            like, args = args[0], args[1:]
            device, kwargs = device or like.device, {"dtype": like.dtype, **kwargs}
        made = torch.tensor(*args, **kwargs)
        if device is None or torch.device(device).type != DEVICE:
            return made
        self.found[f"constant at {_line()}"] += 1
        return on_device(made)


def _gru(x: Tensor, h: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """`torch.gru` of one layer, batch first, from single steps: the CPU lacks the kernel that devices have."""
    w_x, w_h, b_x, b_h = weights
    h, rows = h[0], []
    for at in range(x.shape[1]):
        gates = torch.nn.functional.linear(x[:, at], w_x, b_x).chunk(3, 1)
        own = torch.nn.functional.linear(h, w_h, b_h).chunk(3, 1)
        reset, update = (gates[0] + own[0]).sigmoid(), (gates[1] + own[1]).sigmoid()
        new = (gates[2] + reset * own[2]).tanh()
        h = (h - new) * update + new
        rows.append(h)
    return torch.stack(rows, 1), h[None]


def _computed(func: Any, args: Any, kwargs: Any, found: Waits) -> Any:
    """The result of an operation, on the device where it is asked for or where its arguments are."""
    device, name = kwargs.get("device"), func.overloadpacket.__name__
    wanted = device is not None and torch.device(device).type == DEVICE
    given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    ours = [x for x in given if isinstance(x, _OnDevice)]
    if kind := _kind(name, args, kwargs, bool(ours), wanted):
        found[f"{kind} at {_line()}"] += 1
    strangers = [x for x in given if not isinstance(x, _OnDevice) and x.ndim]
    if ours and strangers and not name.startswith(("_to_copy", "copy", "index")):
        raise RuntimeError(f"{name}: a tensor {tuple(strangers[0].shape)} is on the CPU and others on {DEVICE}")
    on_cpu = {**kwargs, "device": torch.device("cpu")} if device is not None else kwargs
    result = func(*tree_map(_raw, args), **tree_map(_raw, on_cpu))
    if name.endswith("_") and isinstance(args[0], Tensor):
        return args[0]  # in place
    if not (wanted or (ours and device is None)):
        return result
    return tree_map(lambda x: on_device(x) if isinstance(x, Tensor) else x, result)


def _raw(x: Any) -> Any:
    return x.raw if isinstance(x, _OnDevice) else x


def _kind(name: str, args: Any, kwargs: Any, ours: bool, wanted: bool) -> str:
    """Why the host waits for the device; "" where it does not."""
    if name == "copy_":
        return _copy(isinstance(args[0], _OnDevice), args[1], len(args) > 2 and args[2])
    if name == "_to_copy":
        there = wanted or (ours and kwargs.get("device") is None)
        return _copy(there, args[0], kwargs.get("non_blocking"))
    if ours and name.startswith("index") and len(args) > 1 and isinstance(args[1], (list, tuple)):
        chosen = [x for x in args[1] if isinstance(x, Tensor)]
        if any(x.dtype in (torch.bool, torch.uint8) for x in chosen):
            return "boolean index"
        return "index from the CPU" if any(not isinstance(x, _OnDevice) for x in chosen) else ""
    if not ours or (name == "repeat_interleave" and kwargs.get("output_size") is not None):
        return ""
    return READS.get(name, "")


def _copy(there: bool, source: Tensor, non_blocking: Any) -> str:
    """A copy to the device waits unless it is asked not to; one from the device is used at once, so it waits."""
    return "copy" if there != isinstance(source, _OnDevice) and not (there and non_blocking) else ""


def _line() -> str:
    """The nearest line of the project that asked for it."""
    for frame in reversed(traceback.extract_stack()):
        path = frame.filename.replace("\\", "/")
        if any(f"/{part}/" in path for part in HERE) and not path.endswith("_waiting_device.py"):
            return f"{path.rsplit('/', 1)[1]}:{frame.lineno}"
    return "torch"
