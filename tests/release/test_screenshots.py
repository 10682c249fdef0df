"""The pictures of README and docs show the app as it is: the labels of each page are those stored beside them."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from patience import PATIENCE

from benchmarks import browser as real
from docs.screenshots import COMMAND, LABELS, MOVING, PAGES, PICTURES, labels, open_picture

STORED = json.loads(LABELS.read_text("utf-8"))


@pytest.fixture(scope="module")
def app(serve: Callable[..., str]) -> str:
    """One where no test has opened a file, which Samples would offer."""
    return serve(real.ROOT / "app.py")


@pytest.mark.parametrize("name", PICTURES)
def test_picture_is_current(name: str, app: str, page: Any) -> None:
    open_picture(page, app, PICTURES[name])
    end = time.monotonic() + PATIENCE
    while (found := labels(page)) != STORED[name] and time.monotonic() < end:
        page.wait_for_timeout(500)
    missing = [label for label in STORED[name] if label not in found]
    new = [label for label in found if label not in STORED[name]]
    assert found == STORED[name], f"{name}.webp is out of date (missing {missing}, new {new}): run `{COMMAND} {name}`"


def test_each_picture_is_stored() -> None:
    assert list(STORED) == list(PICTURES)
    folder = LABELS.parent
    files = {path.relative_to(folder).as_posix()[:-5]: path.stat().st_size for path in folder.rglob("*.webp")}
    assert set(files) == {*PICTURES, *PAGES, MOVING}, f"run `{COMMAND}`"
    assert sum(files[name] for name in PICTURES) < 2_000_000
    assert sum(files[name] for name in PAGES) < 3_500_000
    assert files[MOVING] < 1_500_000
