"""Every page of the app on a healthy run, drawn beside a run whose files are broken in every way.

HOSTILE_ALL=1 draws each page beside every broken file; else each page is drawn beside a few, drawn
from a fixed seed.
"""

import os
import random
from collections.abc import Callable

import pytest
from hostile.run_files import FILES, broken_run, structures
from opened_page import page_on
from test_pages import PAGES

ALL = bool(os.environ.get("HOSTILE_ALL"))
DRAWS = 10_000 if ALL else 8


# The Loss Lab encodes a batch when it opens, and meets other runs in the sidebar only, as all do.
@pytest.mark.parametrize("page", [p for p in PAGES if ALL or p != "loss_lab"])
def test_a_broken_run_takes_no_page_of_another_down(
    page: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[..., None]
) -> None:
    run = broken_run("broken")
    app = page_on(page, monkeypatch, run="simclr-digits")
    assert not app.exception
    paths = [run.path / name for name in FILES]
    cases = [(path, data) for path in paths for data in structures(path.read_bytes())]
    chosen = random.Random(page).sample(cases, min(DRAWS, len(cases)))
    first = [(path, b"null") for path in paths]
    for path, data in first + chosen:
        whole = path.read_bytes()
        path.write_bytes(data)
        app.run()
        said = [str(e.value)[:300] for e in app.exception]
        assert not said, f"{page} beside {path.name} = {data[:200]!r}: {said}"
        path.write_bytes(whole)
    record_property("hostile", [page, 0, len(first) + len(chosen)])
