"""What the losses promise to whoever calls them from outside: sentences, learned τ, torch.func."""

import itertools
import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest
import torch
from cases import case
from losses_setup import SETTINGS, build, every_setting, make, usable

from contrastive_core import losses, pairs
from contrastive_core.losses import _base, _softmax
from contrastive_core.ops import tiles as tiling

WITH_TAU = [(n, k) for n, k in SETTINGS if "temperature" in losses.knobs(n)]
KINDS = ("four_views", "labels", "queue", "bank")


def rows(seed: int = 0, n: int = 16, d: int = 4, dtype: torch.dtype = torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.fixture(params=["dense", "one_tile", "tiles"])
def form(request, monkeypatch: pytest.MonkeyPatch) -> str:
    """Plain formula, one tile, or blocks and tiles that are computed again."""
    if request.param != "dense":
        monkeypatch.setattr(_softmax, "TILED_FROM", 0)
    if request.param == "tiles":
        monkeypatch.setattr(_base, "BLOCK", 100)
        monkeypatch.setattr(tiling, "TILE", 8)
    return request.param


# --- torch.func --------------------------------------------------------------------------------


@every_setting()
def test_func_grad_is_autograds(name: str, chosen: dict[str, Any], form: str) -> None:
    loss, z = make(name, chosen), rows()
    for kind in KINDS:
        if not usable(loss, build(kind, z)):
            continue

        def value(z: torch.Tensor, kind: str = kind) -> torch.Tensor:
            return loss(build(kind, z)).value

        leaf = z.clone().requires_grad_()
        (want,) = torch.autograd.grad(value(leaf), leaf)
        got = torch.func.grad(value)(z)
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11)
    _, back = torch.func.vjp(lambda z: loss(build("four_views", z)).per_anchor, z)
    leaf = z.clone().requires_grad_()
    out = loss(build("four_views", leaf)).per_anchor
    share = torch.linspace(0.5, 1.5, len(out), dtype=z.dtype)
    (want,) = torch.autograd.grad(out, leaf, share)
    torch.testing.assert_close(back(share)[0], want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["nt_xent", "info_nce"])
def test_second_derivatives_of_tiles_are_right(name: str, form: str) -> None:
    z, loss = rows().requires_grad_(), losses.create(name)
    assert torch.autograd.gradgradcheck(lambda z: loss(build("views", z)).value, z, fast_mode=True)


# --- a learned temperature -----------------------------------------------------------------------


@every_setting(WITH_TAU)
def test_a_temperature_can_be_learned(name: str, chosen: dict[str, Any], form: str) -> None:
    """Given with the pairs, it changes no value and gets the value's derivative."""
    z, tau = rows(), torch.tensor(0.37, dtype=torch.float64, requires_grad=True)
    loss, fixed = make(name, chosen), make(name, chosen, temperature=0.37)
    extra = {"log_z": 1.5} if name == "nce" else {}  # else it is estimated, detached, from τ
    loss, fixed = (make(name, chosen, temperature=t, **extra) for t in (0.5, 0.37))
    for kind in ("views", "labels", "queue"):
        if not usable(loss, build(kind, z)):
            continue
        leaf, same = z.clone().requires_grad_(), z.clone().requires_grad_()
        learned, want = loss(build(kind, leaf), temperature=tau), fixed(build(kind, same))
        torch.testing.assert_close(learned.per_anchor, want.per_anchor, rtol=1e-12, atol=1e-12)
        got, slope = torch.autograd.grad(learned.value, [leaf, tau])
        (grad,) = torch.autograd.grad(want.value, same)
        torch.testing.assert_close(got, grad, rtol=1e-10, atol=1e-12)
        h = 1e-6
        ahead, behind = (make(name, chosen, temperature=0.37 + s, **extra)(build(kind, z)).value for s in (h, -h))
        assert float(slope) == pytest.approx(float(ahead - behind) / (2 * h), rel=1e-5, abs=1e-7)


def test_a_temperature_that_cannot_be_learned_is_refused() -> None:
    tau, made = torch.tensor(0.1, requires_grad=True), build("views", rows())
    with pytest.raises(ValueError, match=r"temperature is a plain setting.*loss\(pairs, temperature=tau"):
        losses.create("nt_xent", temperature=tau)
    with pytest.raises(ValueError, match="margin is a plain setting"):
        losses.create("triplet", margin=tau)
    with pytest.raises(ValueError, match="has no temperature to learn"):
        losses.create("triplet")(made, temperature=tau)
    with pytest.raises(ValueError, match="remove it to learn"):
        losses.create("sup_con", base_temperature=0.07)(made, temperature=tau)
    with pytest.raises(ValueError, match=r"at least 0\.001"):
        losses.create("nt_xent")(made, temperature=0 * tau)
    assert losses.create("nt_xent", temperature=torch.tensor(0.25)).temperature == 0.25


# --- lengths ----------------------------------------------------------------------------------


@every_setting()
def test_any_length_of_rows_is_finite_or_refused(name: str, chosen: dict[str, Any], form: str) -> None:
    unit = torch.nn.functional.normalize(rows(dtype=torch.float32), dim=1)
    loss = make(name, chosen)
    for scale, kind in itertools.product(([1e30], [1e-30], [1.0, 1e30, 1e-30, 1e10]), KINDS):
        leaf = (unit * torch.tensor(scale).repeat(16)[:16, None]).requires_grad_()
        made = build(kind, leaf)
        if not usable(loss, made):
            continue
        with case(scale, kind):
            if not (scale == [1e-30] or loss.normalize):
                with pytest.raises(ValueError, match=r"some rows have length .* Scale them down"):
                    loss(made)
                continue
            out = loss(made)
            (grad,) = torch.autograd.grad(out.value, leaf, allow_unused=True)
            assert out.value.isfinite()
            assert out.per_anchor.isfinite().all()
            assert grad is None or grad.isfinite().all()


def test_long_rows_in_float64_are_no_trouble() -> None:
    z = (1e30 * rows()).requires_grad_()
    out = losses.create("n_pair")(build("views", z))
    (grad,) = torch.autograd.grad(out.value, z)
    assert out.value > 1e58
    assert grad.isfinite().all()


# --- builders and sentences -------------------------------------------------------------------


def test_reference_rows_need_their_labels() -> None:
    with pytest.raises(ValueError, match="given together"):
        pairs.from_labels(rows(), torch.arange(16), rows(1))


SENTENCES = """
    import json
    import numpy as np, torch
    from contrastive_core import losses, pairs

    z2, z3, y = torch.randn(8, 4), torch.randn(4, 2, 4), torch.zeros(8, dtype=torch.long)
    loss, found = losses.create("nt_xent"), {}
    for what in CALLS:
        try:
            eval(what)
            found[what] = ["", "nothing"]
        except Exception as e:
            found[what] = [type(e).__name__, str(e)]
    print(json.dumps(found))
"""
EXPECTED = {
    "loss(z2)": ("TypeError", "got a tensor of shape (8, 4): pairs.from_labels(z, labels)"),
    "loss(z3)": ("TypeError", "got a tensor of shape (4, 2, 4): pairs.from_views(z)"),
    "loss(z3.numpy())": ("TypeError", "got a numpy array of shape (4, 2, 4): pairs.from_views(z)"),
    "loss(z2, z2)": ("TypeError", "pairs.from_views(torch.stack([a, b], 1))"),
    "loss([1, 2])": ("TypeError", "got a list"),
    "pairs.from_views(z2)": ("ValueError", "z must be (images, views, d); got shape (8, 4): pairs.from_labels"),
    "pairs.from_labels(z3, y)": ("ValueError", "z must be (n, d); got shape (4, 2, 4): pairs.from_views"),
    "pairs.from_views(z3.numpy())": ("TypeError", "z must be a torch tensor (images, views, d); got a numpy array"),
    "pairs.from_labels(z2, y.numpy())": ("TypeError", "labels must be a torch tensor (8,); got a numpy array"),
    "pairs.from_labels(z2, y[:5])": ("ValueError", "labels must be (8,), one per image; got shape (5,)"),
    "pairs.from_labels(z2, y.float())": ("ValueError", "labels must be whole numbers, -1 for none; got torch.float32"),
    "pairs.from_labels(y[:, None], y)": ("ValueError", "z must hold floating-point numbers; got torch.int64"),
    "pairs.from_pairs(z2, z2.double(), y > 0)": (
        "ValueError",
        "a and b must have the same width and device, and float64 only with float64; got a (8, 4) torch.float32 on cpu",
    ),
    "pairs.from_queue(z2, z2, torch.randn(3, 5))": ("ValueError", "keys and queue must have the same width"),
    "pairs.from_labels(z2, y, torch.randn(3, 5), y[:3])": (
        "ValueError",
        "must have the same width and device, and float64 only with float64; got anchors (8, 4)",
    ),
    "pairs.from_towers(z2, torch.randn(8, 5))": (
        "ValueError",
        "a and b must have the same width and device, and float64 only with float64; got a (8, 4)",
    ),
    "pairs.from_bank(z2, y, torch.randn(9, 4).double())": (
        "ValueError",
        "features and bank must have the same width and device",
    ),
}


def test_sentences_for_what_cannot_be_compared() -> None:
    """In a process of its own: here annotations are held, and would speak first."""
    code = textwrap.dedent(SENTENCES).replace("CALLS", repr(list(EXPECTED)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for call, (kind, words) in EXPECTED.items():
        assert found[call][0] == kind, (call, found[call])
        assert words in found[call][1], (call, found[call])


def test_help_lists_losses_and_their_settings() -> None:
    import pydoc

    text = pydoc.plain(pydoc.render_doc(losses.create))
    for name in losses.names():
        assert f"{name}: " in text
        for key, one in losses.knobs(name).items():
            assert f"{key} = {one.default!r}" in text


def test_progress_is_reported_and_stops_the_work(form: str) -> None:
    for name in ("nt_xent", "info_nce", "triplet", "lifted_structure", "n_pair"):
        shares: list[float] = []
        losses.create(name)(build("labels", rows()), on_fraction=shares.append)
        assert shares == sorted(shares)
        assert not shares or shares[-1] == 1.0
        if form == "tiles":
            assert len(shares) > 1

            def stop(share: float) -> None:
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                losses.create(name)(build("labels", rows()), on_fraction=stop)
