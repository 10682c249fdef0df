"""Every method takes two steps, and one training that was stopped goes on bit-equal."""

import signal
from typing import Any

import pytest
import torch
from methods_setup import changed, make, optimizer, state, step

from contrastive_core import methods, runs
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig
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
    config = TrainConfig(
        "sup_con",
        "digits",
        epochs=2,
        device="cpu",
        threads=1,
        batch_size=256,
        sample=200,
        encoder_knobs={"width": 0.25},
    )

    def stop(lines: list[dict[str, Any]]) -> None:
        if any("images_per_s" in line and line["step"] == 3 for line in lines):
            signal.raise_signal(signal.SIGTERM)

    found = []
    for name in ("whole", "parts"):
        prepared = prepare(config)
        run = runs.create(name, prepared.config.to_dict())
        if name == "parts":
            assert loop.train(prepared, run, on_lines=stop) == "stopped"
            prepared = prepare(config)
        assert loop.train(prepared, run, resume=name == "parts") == "done"
        found.append(checkpoints.load_state(run)[0])
    whole, parts = found
    assert whole.keys() == parts.keys()
    assert [key for key in whole if not torch.equal(whole[key], parts[key])] == []
