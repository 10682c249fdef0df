"""What pages need: the catalog of what is registered."""

import pytest


@pytest.fixture(autouse=True)
def catalog_of_pages(made_catalog: None) -> None:
    """Made before a page is drawn."""
