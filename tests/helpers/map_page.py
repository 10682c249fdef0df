"""The map on a page of its own (tests/browser/scatter_script.py), what it holds, and gestures on it."""

import re
from typing import Any

from patience import finder, repainted

__all__ = ["FIND", "ask", "at", "corner", "lasso", "told", "visit", "zoom_to"]


FIND = finder(".map", "_map")


def visit(page: Any, address: str, **asked: Any) -> None:
    page.goto(f"{address}?" + "&".join(f"{k}={v}" for k, v in asked.items()))
    page.wait_for_function(f"() => {{ const map = ({FIND})(); return map?.view && map?.shown }}")
    repainted(page)


def ask(page: Any, what: str) -> Any:
    return page.evaluate(f"() => {{ const map = ({FIND})(); return {what}; }}")


def told(page: Any) -> str:
    return page.get_by_text(re.compile(r"^runs \d+ rows")).inner_text()


def at(page: Any, i: int) -> tuple[float, float]:
    """Where point i is on the page."""
    box = page.locator(".stage").bounding_box()
    x, y = ask(
        page, f"[map.xy[{2 * i}] * map.view.scale + map.view.x, map.view.y - map.xy[{2 * i + 1}] * map.view.scale]"
    )
    return box["x"] + x, box["y"] + y


def corner(page: Any, x: float, y: float) -> tuple[float, float]:
    box = page.locator(".stage").bounding_box()
    px, py = ask(page, f"[{x} * map.view.scale + map.view.x, map.view.y - {y} * map.view.scale]")
    return box["x"] + px, box["y"] + py


def lasso(page: Any, corners: list[tuple[float, float]]) -> None:
    page.mouse.move(*corner(page, *corners[0]))
    page.mouse.down()
    for c in corners[1:]:
        page.mouse.move(*corner(page, *c), steps=6)
    page.mouse.up()


def zoom_to(page: Any, i: int, times: float) -> None:
    """Look at point i from so many times as near."""
    page.evaluate(
        f"""() => {{ const map = ({FIND})(), v = map.view, stage = map.stage;
        v.scale *= {times}; v.x = stage.clientWidth / 2 - map.xy[{2 * i}] * v.scale;
        v.y = stage.clientHeight / 2 + map.xy[{2 * i + 1}] * v.scale;
        map.moved = map.stale = true; map.redraw(); }}"""
    )
