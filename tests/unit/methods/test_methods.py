"""Contract of every registered method; tests/smoke/test_methods_in_short.py lets each take two steps. What queue and
bank hold after each step, worked out by hand."""

import copy
import math
import re

import pytest
import torch
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from methods_setup import SHAPE, batch, changed, make, optimizer, state, step
from torch import Tensor

from contrastive_core import losses, methods
from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.methods._asymmetric import KeyQueue, MomentumMethod
from contrastive_core.methods.inst_disc import MemoryBank
from contrastive_core.ops.similarity import normalize

every = pytest.mark.parametrize("name", methods.names())


# --- the contract ------------------------------------------------------------------------------


@every
def test_it_goes_on_bit_equal(name: str) -> None:
    """All state is in the state dict: a fresh method that loads it takes the same next step."""
    one, g = make(name), torch.Generator().manual_seed(0)
    opt = optimizer(one)
    step(one, opt, g, 1)
    two = make(name)
    for p in two.parameters():
        torch.nn.init.ones_(p)
    two.load_state_dict(one.state_dict())
    other = optimizer(two)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    h = torch.Generator()
    h.set_state(g.get_state())
    for seed in (2, 3):
        assert torch.equal(step(one, opt, g, seed).per_anchor, step(two, other, h, seed).per_anchor)
    assert changed(state(one), state(two)) == set()


@every
def test_gradients_reach_what_is_trained_and_nothing_else(name: str) -> None:
    method, g = make(name), torch.Generator().manual_seed(0)
    if isinstance(method, MomentumMethod):
        assert {k.split(".")[0] for k, p in method.named_parameters() if not p.requires_grad} == {
            "key_encoder",
            "key_head",
        }
    else:
        assert all(p.requires_grad for p in method.parameters())
    pairs = method.pairs(batch(), g)
    assert method.loss is not None
    method.loss(pairs).value.backward()
    for key, p in method.named_parameters():
        if p.requires_grad:
            assert p.grad is not None, key
            assert p.grad.abs().sum() > 0 or key.endswith("bias"), key
        else:
            assert p.grad is None, key
    assert not any(b.requires_grad for b in method.buffers())


@every
def test_only_after_step_changes_memory(name: str) -> None:
    """Building pairs moves the norms' running statistics, as any forward pass does; no more."""
    method, g = make(name), torch.Generator().manual_seed(0)
    before = state(method)
    pairs = method.pairs(batch(), g)
    moved = changed(before, state(method))
    assert all(k.split(".")[-1].startswith(("running_", "num_batches")) for k in moved)
    between = {k: v.clone() for k, v in vars(pairs).items() if isinstance(v, Tensor)}
    method.after_step(pairs)
    assert all(torch.equal(v, getattr(pairs, k)) for k, v in between.items())


@every
def test_every_knob_has_help_and_is_checked(name: str) -> None:
    for key, knob in methods.knobs(name).items():
        assert knob.help, key
        assert knob.check(key, knob.default) == knob.default
    with pytest.raises(ValueError, match="has no setting 'speed'"):
        make(name, speed=3)


@every
def test_the_card_is_filled_in(name: str) -> None:
    cls = methods.get(name)
    for field in ("title", "idea", "compared", "measured_by_paper", "differences", "paper_recipe"):
        assert isinstance(getattr(cls.card, field), str), field
        assert getattr(cls.card, field), field
    assert cls.card.paper.startswith("https://")
    assert 1990 < cls.card.year < 2030
    assert cls.card.default_loss in losses.names()
    assert len(cls.card.flow) >= 1
    assert cls.card.idea.count(".") >= 2


@every
def test_features_are_of_whole_images_and_do_not_depend_on_the_batch(name: str) -> None:
    method = make(name).eval()
    images = torch.rand(5, *SHAPE)
    with torch.no_grad():
        h = method.features(images)
        assert h.shape == (5, method.encoder.out_dim)
        assert torch.allclose(h[2:3], method.features(images[2:3]), atol=1e-5)
        assert method.project(h).shape == (5, method.head.out_dim)


# --- bad input ---------------------------------------------------------------------------------


@cases(
    ("name", "arguments", "sentence"),
    [
        ("moco_v1", (100, SHAPE, 16, {"queue": 4096}), "queue of 4096.*method.queue=32"),
        ("moco_v2", (100, SHAPE, 16, {"queue": 101}), "method.queue="),
        ("moco_v1", (100, SHAPE, 9, {"bn_splits": 8}), "method.bn_splits=4"),
        ("inst_disc", (2, SHAPE, 2, {}), "at least 3 images"),
        ("inst_disc", (100, SHAPE, 16, {"noise": 100}), "99 noise slots.*method.noise=0"),
        ("clip", (100, SHAPE, 16, {}), "needs captions: choose shapes, or a folder"),
        ("cpc", (100, (3, 5, 5), 8, {}), "at least 4 rows of patches; images of 5 pixels"),
    ],
)
def test_what_cannot_be_trained_names_the_remedy(name: str, arguments: tuple, sentence: str) -> None:
    n_train, shape, batch_size, knobs = arguments
    said = methods.get(name).incompatibility(methods.DatasetInfo(shape, n_train, 2), batch_size, knobs)
    assert said is not None
    assert re.search(sentence, said), said


# --- queue and bank ---


def numbered(start: int, n: int) -> torch.Tensor:
    """Unit rows that tell their number: the angle is the number of degrees."""
    angle = torch.arange(start, start + n) * (math.pi / 180)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def numbers(rows: torch.Tensor) -> list[int]:
    return (torch.atan2(rows[:, 1], rows[:, 0]) * (180 / math.pi)).round().int().tolist()


@given(k=st.integers(1, 9), batches=st.lists(st.integers(0, 20), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_queue_holds_the_last_k_keys(k: int, batches: list[int]) -> None:
    """Any batch size: smaller than the queue, larger, or no divisor of it."""
    queue, seen = KeyQueue(k, 2), []
    for n in batches:
        queue.enqueue(numbered(len(seen), n))
        seen += range(len(seen), len(seen) + n)
    assert int(queue.enqueued) == len(seen)
    assert set(seen[-k:]) <= set(numbers(queue.rows))
    if len(seen) >= k:
        oldest_first = queue.rows.roll(-int(queue.pointer), 0)
        assert numbers(oldest_first) == seen[-k:]


def test_noise_is_uniform_over_the_others() -> None:
    drawn = MemoryBank(5, 2).noise(torch.tensor([2]), 40_000, torch.Generator().manual_seed(0), BatchShare.whole(1))
    share = torch.bincount(drawn[0], minlength=5) / 40_000
    assert torch.allclose(share, torch.tensor([0.25, 0.25, 0, 0.25, 0.25]), atol=0.01)


def test_bank_moves_the_stored_vector() -> None:
    """v ← norm(μ v + (1 − μ) f), for the slots of the batch only."""
    bank = MemoryBank(6, 4, momentum=0.3)
    before, f = bank.rows.clone(), torch.randn(2, 4)
    bank.update(torch.tensor([4, 1]), f)
    for row, slot in enumerate((4, 1)):
        moved = 0.3 * before[slot] + 0.7 * f[row] / f[row].norm()
        assert torch.allclose(bank.rows[slot], moved / moved.norm(), atol=1e-6)
    rest = [0, 2, 3, 5]
    assert torch.equal(bank.rows[rest], before[rest])


def test_log_z_follows_the_mean_of_z() -> None:
    bank = MemoryBank(6, 4, ema=0.99)
    bank.log_z.copy_(bank.next_log_z(torch.tensor(math.log(2.0))))
    assert float(bank.next_log_z(torch.tensor(math.log(4.0)))) == pytest.approx(math.log(0.99 * 2 + 0.01 * 4), rel=1e-5)
    assert float(bank.log_z) == pytest.approx(math.log(2.0))  # asking changes nothing


def test_rows_are_unit_even_from_half_precision() -> None:
    bank = MemoryBank(4, 3)
    bank.update(torch.tensor([0]), torch.randn(1, 3).bfloat16())
    assert bank.rows.dtype == torch.float32
    assert torch.allclose(bank.rows, normalize(bank.rows), atol=1e-6)
