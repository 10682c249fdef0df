"""The strip of activity, in the browser: what goes on again and what fails is told without a word
from the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import SLOW

from benchmarks import browser as real
from contrastive_core.records import runs


def test_a_run_that_goes_on_is_told_of_and_so_is_its_failure(
    serve: Callable[..., str], page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = {"CONTRASTIVE_LAB_RUNS": str(tmp_path / "runs")}
    monkeypatch.setenv(*next(iter(homes.items())))
    run = runs.create("again", {"method": "simclr", "dataset": "digits", "unknown": 1})
    run.set_status("stopped", epoch=1, epochs=2)
    app = serve(real.ROOT / "app.py", environment=homes)
    page.goto(f"{app}/train?watch=again")
    strip = page.locator("[data-testid=stSidebar] .st-key-activity")
    page.get_by_role("button", name="Resume").wait_for(timeout=SLOW)
    assert strip.count() == 0
    page.get_by_role("button", name="Resume").click()
    strip.get_by_role("button", name="again").wait_for(timeout=SLOW)
    page.get_by_role("link", name="Methods").click()
    strip.get_by_text("unknown setting").wait_for(timeout=SLOW)  # told by itself, on another page
    strip.get_by_role("button", name="Look").click()
    page.get_by_role("heading", name="again").wait_for(timeout=SLOW)
    strip.get_by_role("button", name="Dismiss").click()
    strip.wait_for(state="detached", timeout=SLOW)
