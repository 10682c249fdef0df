"""What every registered loss owes: the paper's formula, per anchor, on any pairs it can use.

A new file in `losses/` is held to all of this at once, given its loop in `slow_losses.py`.
"""

import itertools
import re
from typing import Any

import pytest
import torch
from cases import case
from losses_setup import build, builders_met, every_setting, knobs_of, make, usable
from slow_losses import FORMULAS, slow_loss

from contrastive_core import losses, pairs
from contrastive_core.losses import Anatomy, _base
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.ops import tiles as tiling
from contrastive_core.pairs.types import Pairs


def rows(seed: int = 0, n: int = 16, d: int = 5, dtype: torch.dtype = torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def is_paper_spread(name: str, chosen: dict[str, Any]) -> bool:
    return name == "invariance_spread" and chosen["form"] == "paper"


def has_detached_weights(chosen: dict[str, Any]) -> bool:
    return chosen.get("weighting") == "von_mises"


@every_setting()
def test_equals_a_plain_loop(name: str, chosen: dict[str, Any]) -> None:
    """The defaults on all builders, each other choice of a knob once on each."""
    if is_paper_spread(name, chosen):
        return  # its loop over columns is a test of its own
    for kind in builders_met(name, chosen):
        loss, made = make(name, chosen, temperature=0.3, l2_penalty=0.1, directions=8), build(kind, rows())
        if not usable(loss, made):
            continue
        if name == "nce" and made.log_z is None:
            loss = make(name, chosen, temperature=0.3, log_z=1.5)
        with case(kind):
            value, weight = slow_loss(name, made, **knobs_of(loss))
            out = loss(made)
            want, w = torch.tensor(value, dtype=torch.float64), torch.tensor(weight, dtype=torch.float64)
            torch.testing.assert_close(out.weight, w, rtol=0, atol=0)
            torch.testing.assert_close(out.per_anchor, want, rtol=1e-10, atol=1e-10)
            total = float((want * w).sum() / w.sum()) if w.sum() else 0.0
            assert float(out.value) == pytest.approx(total, rel=1e-10, abs=1e-10)
            assert out.n_valid == int((w > 0).sum())


def test_every_loss_has_a_loop() -> None:
    assert set(FORMULAS) == set(losses.names())


@every_setting()
def test_gradcheck(name: str, chosen: dict[str, Any]) -> None:
    if has_detached_weights(chosen):
        return  # lightly is its witness
    loss = make(name, chosen | ({"detach": False} if "detach" in chosen else {}))
    for kind in ("four_views", "labels", "queue", "noise", "mask", "captions"):

        def value(z: torch.Tensor, kind: str = kind) -> torch.Tensor:
            made = build(kind, z)
            return loss(made).value

        z = (0.7 * rows(3, d=4)).requires_grad_()
        if usable(loss, build(kind, z)) and not (name == "nce" and build(kind, z).log_z is None):
            assert torch.autograd.gradcheck(value, z, eps=1e-6, atol=1e-4, fast_mode=True)


def test_detached_candidates_carry_no_gradient() -> None:
    z = rows().requires_grad_()
    made = pairs.from_queue(z[:5].detach(), z[5:10], z[10:])
    out = losses.create("invariance_spread")(made)
    assert not out.value.requires_grad or (torch.autograd.grad(out.value, z)[0] == 0).all()


def two_of_each_family() -> list[tuple[str, dict[str, Any]]]:
    of: dict[str, list[str]] = {}
    for name in losses.names():
        of.setdefault(losses.get(name).card.family, []).append(name)
    return [(name, {}) for names in of.values() for name in names[:2]]


@every_setting(two_of_each_family())
@pytest.mark.parametrize("size", [512, 700])  # at once, and in blocks or tiles
def test_gradients_are_the_same_every_time(
    name: str, chosen: dict[str, Any], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if size > 512:
        monkeypatch.setattr(_base, "BLOCK", 1 << 16)
        monkeypatch.setattr(tiling, "TILE", 128)
    loss, z = make(name, chosen), rows(n=size, d=16, dtype=torch.float32).requires_grad_()
    made = pairs.from_labels(z, torch.arange(size) // 4)
    if not usable(loss, made):
        made = pairs.from_views(z.view(2, -1, 16).transpose(0, 1))
    if not usable(loss, made) or (name == "nce" and made.log_z is None):
        return
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        found = [torch.autograd.grad(loss(made).value, z, retain_graph=True)[0] for _ in range(3)]
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found)


@every_setting()
def test_permuting_the_batch_permutes_the_losses(name: str, chosen: dict[str, Any]) -> None:
    loss, z, labels = (make(name, chosen), rows().view(8, 2, 5), torch.tensor([0, 1, 0, 2, 0, 1, 2, 3]))
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    z[3] = z[5]  # ties
    z[0, 1] = z[0, 0]
    one, two = pairs.from_views(z, labels), pairs.from_views(z[order], labels[order])
    first, second = loss(one), loss(two)
    torch.testing.assert_close(first.per_anchor.view(8, 2)[order].flatten(), second.per_anchor, rtol=1e-9, atol=1e-9)


@every_setting()
def test_rotation_changes_nothing(name: str, chosen: dict[str, Any]) -> None:
    turn = torch.linalg.qr(rows(5, 5, 5)).Q
    loss, z = make(name, chosen), rows()
    for kind in ("views", "labels", "bank"):
        if usable(loss, build(kind, z)):
            a, b = loss(build(kind, z)), loss(build(kind, z @ turn))
            if isinstance(loss, TwoViewLoss):  # it looks at each dimension
                assert not torch.isclose(a.value, b.value)
                continue
            torch.testing.assert_close(a.per_anchor, b.per_anchor, rtol=1e-8, atol=1e-8)


@every_setting()
def test_finite_on_degenerate_rows(name: str, chosen: dict[str, Any]) -> None:
    z = torch.nn.functional.normalize(rows(dtype=torch.float32), dim=1)
    degenerate = (z, 0 * z, z[:1].expand(16, -1), torch.cat([z[:8], -z[:8]]), z * 1e-20, z * 1e3)
    for temperature in (0.001, 1.0, 100.0) if "temperature" in losses.knobs(name) else (1.0,):
        loss = make(name, chosen, temperature=temperature, directions=8)
        for (number, z), kind in itertools.product(enumerate(degenerate), builders_met(name, chosen)):
            leaf = z.clone().requires_grad_()
            made = build(kind, leaf)
            if not usable(loss, made):
                continue
            with case(temperature, number, kind):
                out = loss(made)
                (grad,) = torch.autograd.grad(out.value, leaf, allow_unused=True)
                assert out.value.isfinite()
                assert grad is None or grad.isfinite().all()
                assert (out.per_anchor[out.weight == 0] == 0).all()


@every_setting()
def test_undefined_everywhere_is_zero_and_attached(name: str, chosen: dict[str, Any]) -> None:
    loss = make(name, chosen)
    z = rows(n=3).requires_grad_()
    for made in (
        pairs.from_labels(z[:1], torch.tensor([0])),
        pairs.from_labels(z, torch.tensor([-1, -1, -1])),
        pairs.from_labels(z[:0], torch.zeros(0, dtype=torch.long)),
    ):
        if not usable(loss, made):
            continue
        out = loss(made)
        assert float(out.value.detach()) == 0
        assert out.n_valid == 0
        assert out.value.requires_grad
        out.value.backward()
        anatomy = loss.anatomy(made)
        assert anatomy.scores.shape == anatomy.weight.shape == anatomy.grad_scores.shape


@every_setting()
def test_dtypes(name: str, chosen: dict[str, Any]) -> None:
    loss = make(name, chosen)
    for dtype, kind in itertools.product((torch.float16, torch.bfloat16, torch.float64), ("views", "labels")):
        low = rows().to(dtype)
        made = build(kind, low)
        if not usable(loss, made):
            continue
        with case(dtype, kind):
            out, want = loss(made), loss(build(kind, low.double()))
            assert out.value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            scale = max(1.0, abs(float(want.value)))
            assert abs(float(out.value) - float(want.value)) <= 2e-5 * scale


@every_setting()
def test_autocast_changes_nothing(name: str, chosen: dict[str, Any]) -> None:
    loss, made = make(name, chosen), build("views", rows(dtype=torch.float32))
    want = loss(made).per_anchor
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(loss(made).per_anchor, want)


def rounding(anatomy: Anatomy, pairs: Pairs) -> torch.Tensor:
    """How far two orders of summation may lie apart (n): ε · terms · sizes, to first order.

    A score of d products of rows no longer than r is known to ε d r², a distance to that over
    itself; each goes into L_i by its gradient, and L_i is a sum of w terms of its own size.
    """
    eps = torch.finfo(anatomy.scores.dtype).eps
    (_, d), w = pairs.anchors.shape, pairs.width
    squared = max(float(z.square().sum(1).max()) for z in (pairs.anchors, pairs.candidates))
    score = 4 * eps * d * squared * torch.ones_like(anatomy.scores)  # ‖a − c‖² ≤ 4 r²
    if anatomy.score_kind == "distance":
        score = torch.where(anatomy.scores > 0, score / anatomy.scores, 0.0)
    through_scores = (anatomy.grad_scores.abs() * score).sum(1)
    return through_scores + eps * (w + d) * anatomy.output.per_anchor.abs().clamp_min(1)


@every_setting()
def test_anatomy_is_the_loss_taken_apart(name: str, chosen: dict[str, Any]) -> None:
    """The defaults on all builders, each other choice of a knob once on each."""
    for kind in builders_met(name, chosen):
        loss, made = make(name, chosen), build(kind, rows())
        if not usable(loss, made):
            continue
        with case(kind):
            out, anatomy = loss(made), loss.anatomy(made)
            error = (anatomy.output.per_anchor - out.per_anchor).abs()  # rows lie elsewhere in memory,
            assert (error <= rounding(anatomy, loss.rows(made))).all()  # so products may sum otherwise
            assert torch.equal(anatomy.output.weight, out.weight)
            for part in (anatomy.scores, anatomy.weight, anatomy.grad_scores):
                assert part.shape == (len(made), made.width)
                assert not part.requires_grad
                assert part.isfinite().all()
            off = ~(anatomy.positive | anatomy.negative)
            assert (anatomy.weight[off] == 0).all()
            assert anatomy.grad_anchors.shape == made.anchors.shape
            assert anatomy.grad_candidates.shape == made.candidates.shape


@every_setting()
def test_score_gradients_by_differences(name: str, chosen: dict[str, Any]) -> None:
    if has_detached_weights(chosen):
        return  # lightly is its witness
    loss, made = make(name, chosen), build("labeled_views", rows(2))
    anatomy = loss.anatomy(made)
    unit = loss.rows(made)
    masks, s, h = made.masks(), anatomy.scores, 1e-6
    for i, j in ((0, 1), (0, 2), (3, 0), (5, 8), (7, 7)):
        up, down = s.clone(), s.clone()
        up[i, j] += h
        down[i, j] -= h
        ahead, weight = loss.per_anchor(up, masks, unit)
        behind, _ = loss.per_anchor(down, masks, unit)
        slope = float((ahead - behind)[weight > 0].sum() / (2 * h))
        assert slope == pytest.approx(float(anatomy.grad_scores[i, j]), rel=1e-3, abs=1e-4)


def test_every_loss_describes_itself() -> None:
    for name in losses.names():
        card = losses.get(name).card
        with case(name):
            assert re.match(r"https?://", card.paper)
            assert 1980 < card.year < 2100
            assert "L_i" in card.formula
            assert card.summary.count(". ") >= 1
            assert card.family in ("softmax", "hinge", "sigmoid", "robust", "other")
            assert all(knob.help for knob in losses.knobs(name).values())
