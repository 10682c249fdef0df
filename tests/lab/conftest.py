"""What every page needs: the catalog of what is registered."""

from __future__ import annotations

import pytest
from sample_desk import Desk

from contrastive_lab.samples import bench


@pytest.fixture(autouse=True)
def catalog_of_pages(made_catalog: None) -> None:
    """Made before a page is drawn."""


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """What the Samples page hands to its bench, and what that reports."""
    desk = Desk()
    monkeypatch.setattr(bench, "draw_bench", desk.draw)
    monkeypatch.setattr(bench, "reported", lambda key: desk.report)
    return desk
