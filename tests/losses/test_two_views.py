"""Losses over dimensions put no weight on pairs, and the Loss Lab says so."""

from __future__ import annotations

import numpy as np
import pytest

from contrastive_core.loss_lab.view import compute_view
from contrastive_core.records.lab_view import LabBatch


@pytest.mark.parametrize("name", ["barlow_twins", "vicreg", "lejepa"])
def test_the_loss_lab_says_what_they_compare(name: str) -> None:
    rows = np.random.default_rng(0).normal(size=(12, 2, 6)).astype(np.float32)
    batch = LabBatch(rows, np.zeros(12, np.int64), None, ("a",), [str(i) for i in range(12)])
    view = compute_view(batch, "views", name, {})
    assert "puts no weight on pairs" in str(view.reason)
    assert not view.weight.any()
    with pytest.raises(ValueError, match="two views of each image"):
        compute_view(LabBatch(rows[:, :1], batch.labels, None, ("a",), batch.ids), "views", name, {})
