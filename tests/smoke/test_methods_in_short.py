"""Every method takes two steps, and one training that was stopped goes on bit-equal."""

import pytest
import torch
from methods_setup import changed, make, optimizer, state, step
from trainings import SHORT, assert_bit_equal, start, stop_at

from contrastive_core import methods
from contrastive_core.train import loop
from contrastive_core.train.setup import prepare


@pytest.mark.parametrize("name", methods.names())
def test_two_steps_change_what_they_should(name: str) -> None:
    method, g = make(name), torch.Generator().manual_seed(0)
    before, opt = state(method), optimizer(method)
    for seed in (1, 2):
        out = step(method, opt, g, seed)
        assert out.value.isfinite()
        assert out.n_valid == len(out.per_anchor)
    moved = changed(before, state(method))
    trained = {k for k, p in method.named_parameters() if p.requires_grad}
    assert {k for k in trained if "head" not in k} <= moved, "a trained weight stood still"
    assert all(v.isfinite().all() for v in state(method).values() if v.is_floating_point())


def test_a_training_that_was_stopped_goes_on_bit_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "FLUSH_SECONDS", 0.0)  # each step is told at once, and the third stops it
    _, whole, _ = start(SHORT, "whole")
    _, parts, status = start(SHORT, "parts", on_lines=stop_at(3))
    assert status == "stopped"
    assert loop.train(prepare(SHORT), parts, resume=True) == "done"
    assert_bit_equal(whole, parts)
