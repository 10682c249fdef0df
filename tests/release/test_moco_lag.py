"""MoCo beside lightly's: with the same weights, queue, batches and views, every step has the same loss."""

import pytest

pytest.importorskip("lightly.loss")

from benchmarks import moco_lag


def test_moco_steps_as_lightlys() -> None:
    losses = []
    for side in (moco_lag.ours, moco_lag.theirs):
        settings = {"method_knobs": {"queue": 256}}  # overwritten from step 2 on
        setup = moco_lag.setup_of("moco_v2", "digits", 0, 1, settings)
        _, _, step = side(setup)
        losses.append([step(batch) for batch in setup.loader.batches(setup.loader.epoch(0)[:5])])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0][-1] > losses[0][0] + 0.5  # keys have replaced the random rows
