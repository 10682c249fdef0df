"""Masks of numbers: a candidate that stands for three counts as if it stood there three times."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from losses_setup import SETTINGS, build, ids, make

from contrastive_core import losses
from contrastive_core.ops.similarity import compare
from contrastive_core.pairs.types import Masks

WEIGHED = [(n, k) for n, k in SETTINGS if make(n, k).takes_weights]


@pytest.mark.parametrize(("name", "chosen"), WEIGHED, ids=ids)
@pytest.mark.parametrize("kind", ["labels", "four_views"])
def test_a_weight_is_a_number_of_candidates(name: str, chosen: dict[str, Any], kind: str) -> None:
    draw = torch.Generator().manual_seed(1)
    pairs = build(kind, torch.randn(16, 4, generator=draw, dtype=torch.float64))
    loss = make(name, chosen, temperature=0.3, margin=0.8, l2_penalty=0.1)
    pairs = loss.rows(pairs)
    times = torch.randint(0, 4, (16, 16), generator=draw)
    most = int(times.sum(1).max())
    repeated = torch.arange(16).repeat(16, 1)  # padded with the anchor itself, which is no pair
    columns = [row.repeat_interleave(n) for row, n in zip(repeated, times, strict=True)]
    columns = [torch.cat([c, c.new_full((most - len(c),), i)]) for i, c in enumerate(columns)]
    many = dataclasses.replace(pairs, columns=torch.stack(columns))
    expected, of = loss.per_anchor(compare(many, loss.score), many.masks(), many)
    positive, negative, own = pairs.masks()
    weights = Masks(positive * times.double(), negative * times.double(), own)
    value, weight = loss.per_anchor(compare(pairs, loss.score), weights, pairs)
    assert (of > 0).sum() > 8
    torch.testing.assert_close(weight, of)
    torch.testing.assert_close(value[of > 0], expected[of > 0], rtol=1e-9, atol=1e-12)


def test_which_losses_take_weights() -> None:
    """Where one pair of all decides, a positive's own negatives count, or whole columns, no weight is right."""
    taken = {n: {make(n, k).takes_weights for m, k in SETTINGS if m == n} for n in losses.names()}
    assert {n for n, v in taken.items() if v == {False}} == set(
        "barlow_twins invariance_spread lejepa lifted_structure nce swapped_prediction vicreg".split()
    )
    assert {n for n, v in taken.items() if len(v) == 2} == {"decoupled", "triplet", "info_nce", "nt_xent", "sup_con"}
    assert losses.create("triplet", mining="all").takes_weights
