"""The base of every function whose gradient is written by hand."""

from __future__ import annotations

import inspect
from typing import Any

import torch

__all__ = ["Function"]


class Function(torch.autograd.Function):
    """`torch.autograd.Function` in the style of `setup_context`, its signature read only once.

    Torch reads the signature of `forward` at every call, which for 64 rows takes as long as a
    product of their matrix.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        forward: Any = cls.forward
        forward.__signature__ = inspect.signature(forward)
