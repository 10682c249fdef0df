"""A training batch."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Int, UInt8
from torch import Tensor

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """A training batch as the loader yields it: uint8 images, labels (-1: none), indices."""

    images: UInt8[Tensor, "b c h w"]
    labels: Int[Tensor, " b"]
    index: Int[Tensor, " b"]
