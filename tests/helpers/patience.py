"""How long a test waits for what comes in a moment on a machine that has nothing else to do."""

import time
from collections.abc import Callable
from typing import Any

__all__ = ["PATIENCE", "SLOW", "finder", "repainted", "settled_box", "wait"]

PATIENCE = 150  # seconds that a busy machine may take; what fails waits as long, and once more
SLOW = 1000 * PATIENCE  # in the browser's milliseconds

_FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))"""


def wait(what: Callable[[], Any], seconds: float = 2 * PATIENCE) -> None:
    """Until `what` is true."""
    last = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < last, "took too long"
        time.sleep(0.02)


def repainted(page: Any) -> None:
    """Until what was asked of the page is painted: components paint in the next frame, however
    long a busy machine takes to come to it."""
    page.evaluate(_FRAMES)


def finder(part: str, name: str) -> str:
    """A function of JavaScript that returns what a part of the page, `.lab` or `.map`, holds by this name."""
    return f"""() => {{
  const roots = [document, ...[...document.querySelectorAll('*')].map((e) => e.shadowRoot)];
  for (const root of roots) for (const e of root?.querySelectorAll('{part}') ?? []) {{
    let at = e.parentNode;
    for (; at; at = at.parentNode ?? at.host) if (at.{name}) return at.{name};
  }}
  return null;
}}"""


def settled_box(page: Any, locator: Any) -> dict[str, float]:
    """Where an element stands once it has not moved for three looks: what is drawn last moves what is there."""
    seen: list[dict[str, float]] = []
    while len(seen) < 3 or seen[-1] != seen[-2] or seen[-2] != seen[-3]:
        page.wait_for_timeout(150)
        seen.append(locator.bounding_box())
    return seen[-1]
