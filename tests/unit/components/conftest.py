"""One node for each file of tests."""

from collections.abc import Iterator

import pytest
from node import Node, node


@pytest.fixture(scope="module")
def modules() -> Iterator[Node]:
    with node() as started:
        yield started
