"""Annotations are held to at run time: each kind of fault is refused, also after calls that were right."""

from dataclasses import dataclass

import jaxtyping
import pytest
import torch
from cases import cases
from jaxtyping import Float
from torch import Tensor
from typechecker import check

from contrastive_core.ops import similarity

Rows = Float[Tensor, "n d"]


def held(fn):
    return jaxtyping.jaxtyped(fn, typechecker=check)


@held
def product(a: Rows, b: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    return (a * b).sum(1)


@held
def half(x: float) -> float:
    return x / 2


@held
@dataclass
class Row:
    values: Rows


@held
def rows_of(kind: str) -> Rows:
    return torch.ones(3, 2) if kind == "rows" else torch.ones(3)


@cases(
    "fault",
    [
        lambda: product(torch.ones(3, 2), torch.ones(4, 2)),
        lambda: product(torch.ones(3, 2), torch.ones(3, 2, dtype=torch.long)),
        lambda: product(torch.ones(3), torch.ones(3, 2)),
        lambda: half("1"),
        lambda: Row(torch.ones(3)),
        lambda: rows_of("row"),
        lambda: similarity.dot(torch.ones(3), torch.ones(3, 2)),
    ],
)
def test_a_fault_is_refused(fault) -> None:
    for _ in range(2):
        product(torch.ones(3, 2), torch.ones(3, 2))
        Row(torch.ones(3, 2))
        rows_of("rows")
        assert half(1) == 0.5
    with pytest.raises(Exception, match=r"[Tt]ype|violates"):
        fault()
