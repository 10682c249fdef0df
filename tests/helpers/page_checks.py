"""Checks of a page that is open in a browser: axe-core, what a field says of itself, its words in Chinese."""

import re
from itertools import product
from typing import Any

from choices import open_all
from patience import SLOW, repainted
from visits import Visit

__all__ = ["AXE_FINDINGS", "CUT", "ESCAPED", "check_accessibility", "check_chinese", "check_labels", "settled"]

AXE_FINDINGS = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((v) => ["serious", "critical"].includes(v.impact) || v.id === "heading-order")
  .map((v) => `${v.id}: ${v.nodes[0].target} ${v.nodes[0].html.slice(0, 200)}
    ${document.querySelector(v.nodes[0].target[0]).innerText.slice(0, 200)}
    ${v.nodes[0].failureSummary}`))"""
# For half a second the frame's styles are there, nothing waits for Streamlit's code of it (a
# skeleton), no script runs, nothing is stale (what is to be replaced is drawn fainter) and nothing
# fades in or out; a spinner, which turns for ever, does not count, nor does what moves as one scrolls.
STILL = """() => {
  const moving = (a) => a.timeline === document.timeline && a.playState === "running"
    && a.effect.getComputedTiming().iterations < 99;
  const busy = "[data-testid=stApp][data-test-script-state=running], [data-stale=true]";
  const framed = document.querySelector(".frame ~ style"),
    awaited = [...document.querySelectorAll("[data-testid=stSkeleton]")];
  if (!framed || awaited.some((e) => e.checkVisibility()) || document.querySelector(busy) ||
    document.getAnimations().some(moving)) window.still = null;
  else window.still ??= performance.now();
  return window.still !== null && performance.now() - window.still > 500;
}"""
BACKGROUND = """() => getComputedStyle(document.querySelector("[data-testid=stApp]"))
  .backgroundColor"""
BACKGROUNDS = {"light": "rgb(252, 252, 251)", "dark": "rgb(20, 25, 31)"}  # as .streamlit has them

WIDTHS = (1440, 1024, 390)
# Both look into the parts' shadows too.
ALL = """const all = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
  e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);"""
ESCAPED = f"""() => {{ {ALL}
  const said = ["aria-label", "aria-description", "title", "alt", "placeholder"];
  return all(document).flatMap((e) => said.map((name) => e.getAttribute(name) ?? ""))
    .filter((text) => text.includes("\\\\"));
}}"""
CUT = f"""() => {{ {ALL}
  const pen = document.createElement("canvas").getContext("2d");
  return all(document).filter((e) => e.matches("input:placeholder-shown") && e.clientWidth)
    .filter((e) => {{
      const style = getComputedStyle(e);
      pen.font = style.font;
      const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
      return pen.measureText(e.placeholder).width > room + 0.5;
    }}).map((e) => `${{e.ariaLabel}}: ${{e.placeholder}}`);
}}"""
OPENED_BY = "[data-testid=stMain] [data-testid=stPopover]:not([inert] *) button:visible"  # not behind a drawer

# Every text that is seen or read out, those of browser parts too; code and formulas are no words.
TEXTS = """() => {
  const found = [], code = "style, script, code, pre, math, .katex, [data-testid=stIconMaterial]";
  const read = (root) => {
    for (const e of root.querySelectorAll("*")) {
      if (e.shadowRoot) read(e.shadowRoot);
      if (e.closest(code) || !e.checkVisibility()) continue;
      for (const name of ["aria-label", "placeholder", "alt"])
        if (e.getAttribute(name)) found.push(e.getAttribute(name));
      for (const n of e.childNodes) if (n.nodeType === Node.TEXT_NODE) found.push(n.textContent);
    }
  };
  read(document.body);
  return [...new Set(found)];
}"""
SENTENCE = re.compile(r"[A-Za-z][a-z’'-]*(?:[,;:]? [a-z][a-z’'-]*){2,}[.…:?!]?")
STREAMLIT = (  # its own words, which it has in English only
    "Navigate to home page",
    "Download plot as a PNG",
    "Link to heading",
    "381MB per file",
)
BUSY = """[data-testid=stApp][data-test-script-state=running], [data-testid=stSkeleton],
  [data-testid=stMain] [data-testid=stProgress]"""


def check_accessibility(page: Any, axe: str) -> None:
    """axe-core finds nothing serious, in both themes and on a phone."""
    page.evaluate(axe)
    size = page.viewport_size
    for theme, width in product(BACKGROUNDS, (1440, 390)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(f"color => ({BACKGROUND})() === color", arg=BACKGROUNDS[theme], timeout=SLOW)
        page.evaluate("() => { window.still = null; }")
        page.wait_for_function(STILL, polling=100, timeout=SLOW)
        found = page.evaluate(AXE_FINDINGS)
        assert not found, "\n".join([f"{theme}, {width} pixels", *found])
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)


def check_labels(visit: Visit) -> None:
    """No screen reader hears a backslash and no placeholder is cut off, folded up and in popovers too."""
    page = visit.page
    open_all(page)
    size = page.viewport_size
    for number in range(-1, page.locator(OPENED_BY).count()):  # the page itself, then what opens
        if number >= 0:
            page.set_viewport_size(size)  # on a phone the toolbar is folded up
            page.locator(OPENED_BY).nth(number).click()
            page.get_by_test_id("stPopoverBody").first.wait_for()
            visit.answers.wait(0)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            repainted(page)
            found = [*page.evaluate(ESCAPED), *page.evaluate(CUT)]
            assert not found, f"{width} pixels: {found}"
        if number >= 0:
            page.keyboard.press("Escape")
            page.get_by_test_id("stPopoverBody").first.wait_for(state="detached")
    page.set_viewport_size(size)


def check_chinese(page: Any) -> None:
    """Nothing that is seen or read out is an English sentence."""
    texts = [t for t in page.evaluate(TEXTS) if not t.strip().startswith(STREAMLIT)]
    found = [t for t in texts if SENTENCE.search(t)]
    assert not found, found


def settled(page: Any) -> None:
    """Nothing is drawn or made any more, for a while."""
    calm = 0
    while calm < 4:
        calm = 0 if page.locator(BUSY).count() else calm + 1
        page.wait_for_timeout(150)
