"""The live view of the Loss Lab on a page of its own (tests/browser/live_script.py), and what it holds."""

from typing import Any

from patience import finder, repainted

__all__ = ["FIND", "ask", "drag_mouse", "set_slider", "visit"]


FIND = finder(".lab", "_lab")


def visit(page: Any, address: str, kind: str = "softmax", n: int = 64, more: str = "") -> list[str]:
    """Open the page; the list that is returned collects what the browser sends afterwards."""
    sent: list[str] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append("sent")))
    page.goto(f"{address}?n={n}&kind={kind}{more}")
    page.wait_for_function(f"() => {{ const lab = ({FIND})(); return lab?.rows?.length }}")
    page.locator(".picture canvas:visible").first.wait_for()  # whichever stage it begins with
    page.wait_for_timeout(300)
    sent.clear()
    return sent


def ask(page: Any, what: str) -> Any:
    return page.evaluate(f"() => {{ const lab = ({FIND})(); return {what}; }}")


def set_slider(page: Any, position: int) -> None:
    """As a drag does: `input` without `change`."""
    page.locator(".knob input").first.evaluate(
        "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }", position
    )
    repainted(page)


def drag_mouse(page: Any) -> None:
    box = page.locator(".knob input").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.55, y)
    page.mouse.down()
    for k in range(12):
        page.mouse.move(box["x"] + box["width"] * (0.55 - 0.4 * k / 12), y)
        page.wait_for_timeout(20)
    page.mouse.up()
