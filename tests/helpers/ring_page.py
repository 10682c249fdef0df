"""The circle on a page of its own (tests/browser/circle_script.py), and what it holds."""

from typing import Any

__all__ = ["FIND", "ask", "visit"]


FIND = """() => {
  const roots = [document, ...[...document.querySelectorAll('*')].map((e) => e.shadowRoot)];
  for (const root of roots) for (const e of root?.querySelectorAll('.lab') ?? []) {
    let at = e.parentNode;
    for (; at; at = at.parentNode ?? at.host) if (at._ring) return at._ring;
  }
  return null;
}"""


def visit(page: Any, address: str, **asked: Any) -> None:
    page.goto(f"{address}?" + "&".join(f"{k}={v}" for k, v in asked.items()))
    page.wait_for_function(f"() => ({FIND})()?.force")


def ask(page: Any, what: str) -> Any:
    return page.evaluate(f"() => {{ const ring = ({FIND})(); return {what}; }}")
