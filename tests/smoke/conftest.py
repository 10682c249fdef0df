"""What pages need: the catalog of what is registered."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def catalog_of_pages(made_catalog: None) -> None:
    """Made before a page is drawn."""
