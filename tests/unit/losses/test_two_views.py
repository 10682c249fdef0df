"""Losses over dimensions put no weight on pairs, and the Loss Lab says so."""

import numpy as np
import pytest

from contrastive_core.lab.lab_view import LabBatch
from contrastive_core.lab.view import compute_view


@pytest.mark.parametrize("name", ["barlow_twins", "vicreg", "lejepa"])
def test_the_loss_lab_says_what_they_compare(name: str) -> None:
    rows = np.random.default_rng(0).normal(size=(12, 2, 6)).astype(np.float32)
    batch = LabBatch(rows, np.zeros(12, np.int64), None, ("a",), [str(i) for i in range(12)])
    view = compute_view(batch, "views", name, {})
    assert "puts no weight on pairs" in str(view.reason)
    assert not view.weight.any()
    with pytest.raises(ValueError, match="two views of each image"):
        compute_view(LabBatch(rows[:, :1], batch.labels, None, ("a",), batch.ids), "views", name, {})


def test_views_go_to_the_browser_where_it_shows_dimensions() -> None:
    rows = np.random.default_rng(1).normal(size=(6, 3, 4)).astype(np.float32)
    batch = LabBatch(rows, np.zeros(6, np.int64), None, ("a",), [str(i) for i in range(6)])
    for name, is_shown in (("barlow_twins", True), ("vicreg", True), ("lejepa", True), ("nt_xent", False)):
        views = compute_view(batch, "views", name, {}).views
        assert (views is not None) == is_shown, name
        if views is not None:
            assert np.array_equal(views, rows[:, :2])
    wide = LabBatch(np.tile(rows, 2100), batch.labels, None, ("a",), batch.ids)
    view = compute_view(wide, "views", "vicreg", {})
    assert view.views is None
    assert "takes at most 8,192, and these vectors have 8,400" in str(view.reason)


@pytest.mark.parametrize("name", ["barlow_twins", "vicreg"])
def test_one_image_has_no_variance(name: str) -> None:
    batch = LabBatch(np.ones((1, 2, 4), np.float32), np.zeros(1, np.int64), None, ("a",), ["0"])
    view = compute_view(batch, "views", name, {})
    assert "With one image, no dimension varies" in str(view.reason)
    assert view.views is None
