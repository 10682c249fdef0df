"""Queue, bank and average: what they hold after each step, worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.methods._asymmetric import KeyQueue
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
