"""The Loss Lab's page in a browser."""

import re
from typing import Any

from patience import SLOW

__all__ = ["LAB", "drawn", "visit"]


LAB = "/loss_lab?run=simclr-digits&on=matrix&size=32"


def visit(page: Any, url: str) -> None:
    page.goto(url)
    drawn(page)


def drawn(page: Any) -> None:
    """Until the page shows figures, which stand there before they have numbers."""
    page.locator(".matrix:visible").wait_for(timeout=SLOW)
    page.locator(".figures .loss").get_by_text(re.compile(r"\d")).wait_for()
    page.wait_for_timeout(300)
