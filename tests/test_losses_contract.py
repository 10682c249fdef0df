"""What every registered loss is held to: a new file is held to all of this at once."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from contrastive_core import losses, pairs
from contrastive_core.losses import _base
from contrastive_core.types import Pairs

NAMES = losses.names()
TEMPERED = [n for n in NAMES if "temperature" in losses.knobs(n)]
CHOICES = [
    (name, knob, choice)
    for name in NAMES
    for knob, k in losses.knobs(name).items()
    for choice in k.choices
]


def views(b: int = 4, v: int = 2, d: int = 6, seed: int = 0, dtype=torch.float64) -> Tensor:
    return torch.randn(b, v, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def both_pairings(z: Tensor) -> list[Pairs]:
    labels = torch.arange(len(z)) // 2
    return [pairs.from_views(z), pairs.from_views(z, labels)]


@pytest.mark.parametrize("name", NAMES)
def test_metadata_and_knobs(name: str) -> None:
    loss = losses.create(name)
    assert loss.title
    assert loss.paper.startswith("http")
    assert 2004 < loss.year < 2021
    assert "L_i" in loss.formula
    assert loss.family in ("softmax", "hinge", "other")
    kernel = loss.kernel()
    assert kernel is None or kernel["family"] == loss.family
    for knob in losses.knobs(name).values():
        assert knob.help
    with pytest.raises(ValueError, match="has no setting"):
        losses.create(name, speed=1)


@pytest.mark.parametrize(("name", "knob", "choice"), CHOICES)
def test_gradcheck_of_every_choice(name: str, knob: str, choice: str) -> None:
    loss = losses.create(name, **{knob: choice})
    if name == "invariance_spread":
        loss = dataclasses.replace(loss, detach=False)

    def value(z: Tensor) -> Tensor:
        return loss(pairs.from_views(z, torch.tensor([0, 0, 1, 1]))).value

    if name == "invariance_spread" and choice == "paper":

        def value(z: Tensor) -> Tensor:
            return loss(pairs.from_views(z)).value

    z = views(seed=5).requires_grad_()
    assert torch.autograd.gradcheck(value, z, eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_permuting_the_batch_permutes_the_loss(name: str) -> None:
    z, labels = views(6, 1)[:, 0], torch.tensor([0, 0, 1, 1, 2, 0])
    order = torch.tensor([3, 5, 0, 2, 4, 1])
    loss = losses.create(name)
    a, b = (loss(pairs.from_labels(*p)) for p in ((z, labels), (z[order], labels[order])))
    torch.testing.assert_close(a.per_anchor[order], b.per_anchor)
    torch.testing.assert_close(a.weight[order], b.weight)


@pytest.mark.parametrize("name", NAMES)
def test_rotation_changes_nothing(name: str) -> None:
    z = views()
    turn = torch.linalg.qr(views(1, 6, 6, 9)[0])[0]
    for a, b in zip(both_pairings(z), both_pairings(z @ turn), strict=True):
        loss = losses.create(name)
        torch.testing.assert_close(loss(a).per_anchor, loss(b).per_anchor)


@pytest.mark.parametrize("name", NAMES)
def test_value_is_the_weighted_mean_and_undefined_anchors_are_left_out(name: str) -> None:
    z = views(5, 1)[:, 0]
    out = losses.create(name)(pairs.from_labels(z, torch.tensor([0, 0, 1, 1, -1])))
    assert float(out.weight[4]) == 0
    assert float(out.per_anchor[4]) == 0
    expected = (out.weight * out.per_anchor).sum() / out.weight.sum()
    torch.testing.assert_close(out.value, expected)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_defined_is_zero_and_attached(name: str) -> None:
    z = views(3, 1)[:, 0].requires_grad_()
    out = losses.create(name)(pairs.from_labels(z, torch.tensor([-1, -1, -1])))
    assert out.n_valid == 0
    assert float(out.value.detach()) == 0
    out.value.backward()
    assert z.grad is not None
    assert float(z.grad.abs().max()) == 0


@pytest.mark.parametrize("name", TEMPERED)
@pytest.mark.parametrize("temperature", [0.001, 0.02, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["random", "zero", "identical", "opposite", "one class"])
def test_finite_at_any_temperature(name: str, temperature: float, kind: str) -> None:
    z = views(dtype=torch.float32)
    z = {
        "random": z, "zero": torch.zeros_like(z), "identical": torch.ones_like(z),
        "opposite": torch.stack([z[:, 0], -z[:, 0]], 1), "one class": z,
    }[kind].clone().requires_grad_()  # fmt: skip
    labels = torch.zeros(4, dtype=torch.long) if kind == "one class" else None
    out = losses.create(name, temperature=temperature)(pairs.from_views(z, labels))
    out.value.backward()
    assert math.isfinite(float(out.value.detach()))
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(NAMES), st.integers(1, 7), st.integers(1, 4), st.integers(0, 10_000),
    st.lists(st.integers(-1, 2), min_size=7, max_size=7), st.booleans(),
)  # fmt: skip
def test_degenerate_batches(name, n, d, seed, labels, repeated) -> None:
    z = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    if repeated:
        z = z[:1].expand(n, d)
    z = z.clone().requires_grad_()
    out = losses.create(name)(pairs.from_labels(z, torch.tensor(labels[:n])))
    out.value.backward()
    assert bool(torch.isfinite(out.per_anchor).all())
    assert z.grad is not None
    assert bool(torch.isfinite(z.grad).all())
    assert bool(((out.weight > 0) | (out.per_anchor == 0)).all())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(name: str, dtype: torch.dtype) -> None:
    z = views(8, 2, 8, dtype=torch.float32).to(dtype)
    out = losses.create(name)(pairs.from_views(z))
    exact = losses.create(name)(pairs.from_views(z.double()))
    assert out.per_anchor.dtype == torch.float32
    torch.testing.assert_close(out.per_anchor.double(), exact.per_anchor, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_autocast_does_not_reach_inside(name: str) -> None:
    z = views(8, 2, 8, dtype=torch.float32)
    plain = losses.create(name)(pairs.from_views(z)).per_anchor
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = losses.create(name)(pairs.from_views(z)).per_anchor
    torch.testing.assert_close(plain, inside, rtol=0, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_rows_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    z = views(10, 2, 6)

    def run() -> tuple[Tensor, Tensor]:
        leaf = z.clone().requires_grad_()
        out = losses.create(name)(pairs.from_views(leaf, torch.arange(10) // 2))
        out.value.backward()
        assert leaf.grad is not None
        return out.per_anchor.detach(), leaf.grad

    whole = run()
    monkeypatch.setattr(_base, "BLOCK", 60)  # three rows at a time
    parts = run()
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_anatomy_is_the_loss_taken_apart(name: str) -> None:
    z = views(5, 2, 4).requires_grad_()
    p = pairs.from_views(z, torch.tensor([0, 0, 1, 1, 2]))
    loss = losses.create(name)
    a = loss.anatomy(p)
    torch.testing.assert_close(a.output.per_anchor, loss(p).per_anchor.detach())
    loss(p).value.backward()
    assert z.grad is not None
    total = a.grad_anchors
    if p.candidates is not p.anchors:
        total = a.grad_anchors + a.grad_candidates
    torch.testing.assert_close(total, z.grad.flatten(0, 1))
    assert a.scores.shape == a.weight.shape == a.grad_scores.shape == (10, 10)
    compared = a.positive | a.negative
    if name not in ("lifted_structure", "invariance_spread"):
        assert float(a.grad_scores[~compared].abs().max()) == 0
    if loss.family == "softmax":
        torch.testing.assert_close(a.weight.sum(1), torch.ones(10, dtype=torch.float64))
        number = a.extras["effective_negatives"]
        assert bool((number <= a.negative.sum(1) + 1e-9).all())
        assert bool((number >= 1 - 1e-9).all())


@pytest.mark.parametrize("name", NAMES)
def test_every_way_to_pair(name: str) -> None:
    """Queue, bank with and without noise, pairs, mask: a finite loss, or a sentence why not."""
    z = views(6, 2, 4)
    q, k = z[:, 0], z[:, 1]
    noise = torch.tensor([[1, 2], [0, 0], [3, 4], [5, 0], [1, 1], [0, 2]])
    eye = torch.eye(6, dtype=torch.bool)
    ways = [
        pairs.from_queue(q, k, views(7, 1, 4, 3)[:, 0]),
        pairs.from_bank(q, torch.arange(6), k),
        pairs.from_bank(q, torch.arange(6), k, noise),
        pairs.from_pairs(q, k, torch.tensor([1, 0, 1, 0, 1, 1]).bool()),
        pairs.from_mask(q, k, eye, ~eye),
        pairs.from_views(z, anchors="first_view"),
    ]
    loss = losses.create(name)
    for p in ways:
        if loss.check(p):
            with pytest.raises(ValueError, match=r"\w+ \w+"):
                loss(p)
            continue
        out = loss(p)
        assert bool(torch.isfinite(out.per_anchor).all())
        assert len(out.per_anchor) == 6
