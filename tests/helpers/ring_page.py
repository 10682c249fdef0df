"""The circle on a page of its own (tests/browser/circle_script.py), and what it holds."""

from typing import Any

from patience import finder

__all__ = ["FIND", "ask", "visit"]


FIND = finder(".lab", "_ring")


def visit(page: Any, address: str, **asked: Any) -> None:
    page.goto(f"{address}?" + "&".join(f"{k}={v}" for k, v in asked.items()))
    page.wait_for_function(f"() => ({FIND})()?.force")


def ask(page: Any, what: str) -> Any:
    return page.evaluate(f"() => {{ const ring = ({FIND})(); return {what}; }}")
