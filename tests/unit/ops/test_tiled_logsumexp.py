"""The tiled engine gives what the dense formula gives, in memory that does not grow with n²."""

import subprocess
import sys
import textwrap
import traceback
from itertools import pairwise

import pytest
import torch
from cases import case
from losses_setup import SETTINGS, builders_met, every_setting, make

from contrastive_core import losses, pairs
from contrastive_core.base.storage import ROOT
from contrastive_core.losses import _base, _softmax
from contrastive_core.losses._softmax import FormulaLoss
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.ops import tiles as tiling
from contrastive_core.pairs.types import Pairs

TILED = [(n, k) for n, k in SETTINGS if issubclass(losses.get(n), FormulaLoss)]
N = 96


def rows(n: int = N, d: int = 6, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=dtype)


def labels(n: int) -> torch.Tensor:
    """Unequal classes, rows without a label, a class of one."""
    found = torch.randint(0, 5, (n,), generator=torch.Generator().manual_seed(1)) ** 2
    found[: n // 20], found[n // 2] = -1, 77
    return found


def build(kind: str, z: torch.Tensor) -> Pairs:
    n, d = z.shape
    if kind == "views":
        return pairs.from_views(z.view(-1, 2, d))
    if kind == "three_views":  # an image's rows stand in two tiles
        return pairs.from_views(z.view(-1, 3, d))
    if kind == "labeled_views":
        return pairs.from_views(z.view(-1, 2, d), labels(n // 2))
    if kind == "first_view":
        return pairs.from_views(z.view(-1, 3, d), anchors="first_view")
    if kind == "labels":
        return pairs.from_labels(z, labels(n))
    if kind == "queue":
        return pairs.from_queue(z[:40], z[40:80], z[80:])
    if kind == "bank":
        return pairs.from_bank(z[:40], torch.arange(40).flip(0), z[40:])
    if kind == "towers":
        return pairs.from_towers(*z.tensor_split(2))
    if kind == "captions":
        return pairs.from_towers(z[:70], z[70:], torch.arange(70), labels(n - 70))
    every = pairs.from_views(z.view(-1, 2, d), labels(n // 2))  # one process's share of the anchors
    return every.take_anchors(slice(20, 71))


KINDS = "views three_views labeled_views first_view labels queue bank share towers captions".split()


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "TILE", 32)
    monkeypatch.setattr(_softmax, "TILED_FROM", 0)
    monkeypatch.setattr(_softmax, "LISTED", 1000)


def both(loss, kind: str, z: torch.Tensor, monkeypatch: pytest.MonkeyPatch):
    """Values and gradients, tiled and dense."""
    found = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(_softmax, "TILED_FROM", least)
        leaf = z.clone().requires_grad_()
        out = loss(build(kind, leaf))
        weight = out.weight * torch.linspace(0.5, 1.5, len(out.weight), dtype=z.dtype)
        (grad,) = torch.autograd.grad((out.per_anchor * weight).sum(), leaf)
        found.append((out, grad, float(weight.sum())))
    return found


@every_setting(TILED)
def test_equals_dense(name, chosen, small_tiles, monkeypatch) -> None:
    """In tiles: the defaults on all builders, each other choice of a knob once on each; in one tile: on labels."""
    for kind, size in [*((kind, 32) for kind in builders_met(name, chosen, KINDS)), ("labels", 1024)]:
        monkeypatch.setattr(tiling, "TILE", size)
        for temperature in (0.001, 0.1, 10.0) if "temperature" in losses.knobs(name) else (0.1,):
            loss = make(name, chosen, temperature=temperature, base_temperature=0.07)
            with case(kind, size, temperature):
                (a, grad_a, total), (b, grad_b, _) = both(loss, kind, rows(), monkeypatch)
                assert torch.equal(a.weight, b.weight)
                scale = b.per_anchor.abs().clamp_min(1)
                assert ((a.per_anchor - b.per_anchor).abs() <= 1e-10 * scale).all()
                norm = float(rows().norm(dim=1).mean()) * min(temperature, 1) / max(total, 1)
                assert float((grad_a - grad_b).abs().max()) * norm <= 1e-10
                assert a.extras.keys() == b.extras.keys()


@every_setting(TILED)
def test_float32(name, chosen, small_tiles, monkeypatch) -> None:
    for temperature in (0.01, 0.1, 1.0):
        loss, z = make(name, chosen, temperature=temperature), rows(dtype=torch.float32)
        z = z if loss.normalize else z / 3
        (a, grad_a, total), _ = both(loss, "labeled_views", z, monkeypatch)
        _, (b, grad_b, _) = both(loss, "labeled_views", z.double(), monkeypatch)
        t = temperature if "temperature" in losses.knobs(name) else 1.0
        got, want = a.value.item(), b.value.item()
        with case(temperature):
            assert abs(got - want) <= 1e-5 * max(1, abs(want))
            norm = float(z.norm(dim=1).max()) * t / total
            assert float((grad_a - grad_b).abs().max()) * norm <= max(1e-5, 2e-7 / t)


@pytest.mark.parametrize("kind", ["views", "towers", "captions", "share"])
@pytest.mark.parametrize("bias", [-10.0, 500.0])
def test_a_learned_bias_has_the_same_gradient(kind: str, bias: float, small_tiles, monkeypatch) -> None:
    found = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(_softmax, "TILED_FROM", least)
        learned = torch.tensor(bias, dtype=torch.float64, requires_grad=True)
        out = losses.create("siglip")(build(kind, rows()), bias=learned)
        weight = torch.linspace(0.5, 1.5, len(out.weight), dtype=torch.float64)
        found.append(torch.autograd.grad((out.per_anchor * weight).sum(), learned)[0])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["info_nce", "siglip"])
def test_tiles_made_again_equal_those_kept(name: str, small_tiles, monkeypatch) -> None:
    found = []
    for most in (1 << 30, 0):
        monkeypatch.setattr(tiling, "KEPT", most)
        leaf = rows().requires_grad_()
        value = losses.create(name, temperature=0.1)(build("towers", leaf)).value
        first = torch.autograd.grad(value, leaf, retain_graph=True)[0]
        assert torch.equal(first, torch.autograd.grad(value, leaf)[0])
        found.append(first)
    assert torch.equal(*found)


def test_same_result_with_any_number_of_threads(small_tiles) -> None:
    z, found, before = rows(960, dtype=torch.float32), [], torch.get_num_threads()
    loss = losses.create("nt_xent")
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaf = z.clone().requires_grad_()
            out = loss(build("views", leaf))
            found.append((out.per_anchor, *torch.autograd.grad(out.value, leaf)))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert torch.equal(found[0][0], other[0])
        assert torch.equal(found[0][1], other[1])


@pytest.mark.parametrize("taken", [slice(3, 17), torch.tensor([5, 0, 11])], ids=["slice", "index"])
def test_taken_rows_keep_their_relations(taken) -> None:
    for kind in KINDS:
        made = build(kind, rows())
        with case(kind):
            for got, want in zip(made.take_anchors(taken).masks(), made.masks(), strict=True):
                assert torch.equal(got, want[taken])
            for got, want in zip(made.take_candidates(taken).masks(), made.masks(), strict=True):
                assert torch.equal(got, want[:, taken])


DENSE = [(n, k) for n, k in SETTINGS if not issubclass(losses.get(n), FormulaLoss)]
DENSE += [("nt_xent", {}), ("siglip", {}), ("soft_nearest_neighbor", {"distance": "squared"})]


@every_setting(DENSE)
def test_blocks_equal_the_whole(name, chosen, monkeypatch) -> None:
    loss, found = make(name, chosen), []
    for block in (1 << 30, 500):
        monkeypatch.setattr(_base, "BLOCK", block)
        leaf = rows(96).requires_grad_()
        out = loss(build("views" if name == "invariance_spread" or isinstance(loss, TwoViewLoss) else "labels", leaf))
        found.append((out.per_anchor, *torch.autograd.grad(out.value, leaf)))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_blocks_send_the_gradient_of_a_learned_bias(monkeypatch) -> None:
    loss, found = losses.create("siglip"), []
    for block in (1 << 30, 500):
        monkeypatch.setattr(_base, "BLOCK", block)
        bias = torch.tensor(-3.0, dtype=torch.float64, requires_grad=True)
        found.append(torch.autograd.grad(loss(build("towers", rows(96)), bias=bias).value, bias)[0])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)
    assert found[0] != 0


@pytest.mark.parametrize("tiled", [True, False])
def test_the_way_to_the_formula_is_short(monkeypatch, tiled: bool) -> None:
    """At most five calls over three files from `Loss.__call__` to the formula."""
    monkeypatch.setattr(_softmax, "TILED_FROM", 0 if tiled else 1 << 60)
    loss, ways = losses.create("nt_xent"), []
    formula = type(loss).formula

    def seen(self, logits, pairs):
        frames = [f for f in traceback.extract_stack()[:-1] if f.filename.startswith(str(ROOT / "contrastive_core"))]
        first = max(i for i, f in enumerate(frames) if f.name == "__call__")
        ways.append([(f.filename, f.name) for f in frames[first:]])
        return formula(self, logits, pairs)

    monkeypatch.setattr(type(loss), "formula", seen)
    loss(build("views", rows(96)))
    (way,) = ways
    assert len(way) <= 5  # each of them calls the next, the last the formula
    files = [file for file, _ in way]
    assert sum(a != b for a, b in pairwise([*files, "nt_xent.py"])) <= 2  # no way back


MEMORY = """
    import resource, torch
    from contrastive_core import losses, pairs
    torch.set_num_threads(2)

    def step(n):
        z = torch.randn(n, 2, 64).requires_grad_()
        losses.create("nt_xent")(pairs.from_views(z)).value.backward()

    step(1200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(6000)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no ru_maxrss there")
def test_memory_stays_small() -> None:
    code = [sys.executable, "-c", textwrap.dedent(MEMORY)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    unit = 1024 if sys.platform == "darwin" else 1
    assert float(done.stdout) / unit < 64, "12,000 rows: their matrix would take 576 MB"
