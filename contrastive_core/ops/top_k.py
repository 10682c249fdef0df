"""The largest of each row."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["best_of"]


def best_of(s: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`s.topk(k)`, unsorted, (r, k) each, by the largest of each group of columns: whatever is
    among the best k lies in one of the k groups whose largest are best: few columns are ranked."""
    rows, columns = s.shape
    size = math.isqrt(columns // k)  # columns in a group
    if size < 2:
        return s.topk(k, dim=1, sorted=False)
    number = columns // size
    grouped = s[:, : size * number].unflatten(1, (size, number))  # (r, size, number)
    groups = grouped.amax(1).topk(k, dim=1, sorted=False).indices[:, None].expand(-1, size, -1)
    remainder = s[:, size * number :]  # (r, < size)
    values = torch.cat([grouped.gather(2, groups).flatten(1), remainder], 1)
    at = torch.arange(size, device=s.device)[:, None] * number + groups  # (r, size, k)
    tail = torch.arange(size * number, columns, device=s.device).expand(rows, -1)
    values, chosen = values.topk(k, dim=1, sorted=False)
    return values, torch.cat([at.flatten(1), tail], 1).gather(1, chosen)
