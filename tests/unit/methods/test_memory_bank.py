"""Queue, bank and average: what they hold after each step, worked out by hand."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.methods._asymmetric import ema_update
from contrastive_core.methods._moco import KeyQueue
from contrastive_core.methods.inst_disc import MemoryBank
from contrastive_core.ops.similarity import normalize


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


def test_queue_starts_with_unit_rows_and_keeps_its_state() -> None:
    queue = KeyQueue(7, 3)
    assert torch.allclose(queue.rows.norm(dim=1), torch.ones(7))
    queue.enqueue(5 * torch.randn(4, 3))
    assert torch.allclose(queue.rows.norm(dim=1), torch.ones(7))
    other = KeyQueue(7, 3)
    other.load_state_dict(queue.state_dict())
    keys = torch.randn(5, 3)
    queue.enqueue(keys)
    other.enqueue(keys)
    assert all(torch.equal(v, other.state_dict()[k]) for k, v in queue.state_dict().items())


def test_queue_copies_its_keys_without_gradient() -> None:
    queue, keys = KeyQueue(4, 3), torch.randn(2, 3, requires_grad=True)
    queue.enqueue(keys)
    before = queue.rows.clone()
    with torch.no_grad():
        keys.zero_()
    assert torch.equal(queue.rows, before)
    assert not queue.rows.requires_grad


@given(n=st.integers(2, 12), k=st.integers(1, 40), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_noise_is_never_the_own_slot(n: int, k: int, seed: int) -> None:
    bank, index = MemoryBank(n, 2), torch.arange(n)
    drawn = bank.noise(index, k, torch.Generator().manual_seed(seed), BatchShare.whole(n))
    assert drawn.shape == (n, k)
    assert (drawn != index[:, None]).all()
    assert drawn.min() >= 0
    assert drawn.max() < n


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


def test_log_z_of_the_first_batch_stays() -> None:
    bank = MemoryBank(6, 4)
    for estimate in (3.0, 9.0):
        bank.log_z.copy_(bank.next_log_z(torch.tensor(estimate)))
    assert float(bank.log_z) == 3.0


def test_log_z_follows_the_mean_of_z() -> None:
    bank = MemoryBank(6, 4, ema=0.99)
    bank.log_z.copy_(bank.next_log_z(torch.tensor(math.log(2.0))))
    assert float(bank.next_log_z(torch.tensor(math.log(4.0)))) == pytest.approx(math.log(0.99 * 2 + 0.01 * 4), rel=1e-5)
    assert float(bank.log_z) == pytest.approx(math.log(2.0))  # asking changes nothing


def test_ema_moves_parameters_and_nothing_else() -> None:
    source = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    target = copy.deepcopy(source)
    with torch.no_grad():
        for p in source.parameters():
            p.add_(1)
    source(torch.randn(8, 3))
    buffers = {k: v.clone() for k, v in target.named_buffers()}
    expected = [0.9 * t + 0.1 * s for t, s in zip(target.parameters(), source.parameters(), strict=True)]
    ema_update(target, source, 0.9)
    for p, e in zip(target.parameters(), expected, strict=True):
        assert torch.allclose(p, e, atol=1e-6)
    assert all(torch.equal(v, buffers[k]) for k, v in target.named_buffers())
    ema_update(target, source, 0.0)
    for t, s in zip(target.parameters(), source.parameters(), strict=True):
        assert torch.equal(t, s)


def test_rows_are_unit_even_from_half_precision() -> None:
    bank = MemoryBank(4, 3)
    bank.update(torch.tensor([0]), torch.randn(1, 3).bfloat16())
    assert bank.rows.dtype == torch.float32
    assert torch.allclose(bank.rows, normalize(bank.rows), atol=1e-6)
