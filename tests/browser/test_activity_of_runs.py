"""The strip of activity, in the browser: what goes on again and what fails is told without a word
from the page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import SLOW

from benchmarks import browser as real
from contrastive_core import runs


def opened(pill: Any, strip: Any) -> None:
    """Open what is behind the pill, unless it is open still."""
    if not strip.is_visible():
        pill.click()


def test_a_run_that_goes_on_is_told_of_and_so_is_its_failure(
    serve: Callable[..., str], page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = {"CONTRASTIVE_LAB_RUNS": str(tmp_path / "runs")}
    monkeypatch.setenv(*next(iter(homes.items())))
    run = runs.create("again", {"method": "simclr", "dataset": "digits", "unknown": 1})
    run.set_status("stopped", epoch=1, epochs=2)
    app = serve(real.ROOT / "app.py", environment=homes)
    page.goto(f"{app}/train?watch=again")
    pill, strip = page.locator(".st-key-activity-pill button"), page.locator(".st-key-activity")
    page.get_by_role("button", name="Resume").wait_for(timeout=SLOW)
    assert pill.count() == 0
    page.get_by_role("button", name="Resume").click()
    pill.click()
    strip.get_by_role("button", name="again").wait_for(timeout=SLOW)
    page.get_by_role("link", name="Methods").click()
    pill.filter(has_text="1 failed").wait_for(timeout=SLOW)  # told by itself, on another page
    opened(pill, strip)
    strip.get_by_text("unknown setting").wait_for(timeout=SLOW)
    strip.get_by_role("button", name="Look").click()
    page.get_by_role("heading", name="again").wait_for(timeout=SLOW)
    opened(pill, strip)
    strip.get_by_role("button", name="Dismiss").click()
    pill.wait_for(state="detached", timeout=SLOW)
