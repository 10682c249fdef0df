"""The app in Chinese: what every page shows and reads out, and the switch between the languages."""

from __future__ import annotations

import re
from typing import Any

import pytest
from patience import SLOW

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
    "Skip to main content",
    "Navigate to home page",
    "Download plot as a PNG",
    "Link to heading",
)
BUSY = """[data-testid=stApp][data-test-script-state=running], [data-testid=stSkeleton],
  [data-testid=stMain] [data-testid=stProgress]"""
PAGES = {  # address and what is there once it has come
    "": "最近",
    "explore?run=simclr-digits": "kNN 准确率",
    "loss_lab?run=simclr-digits": "负样本",
    "loss_lab?on=circle": "圆上",
    "loss_lab?lesson=6": "标签",
    "train": "开始",
    "compare?runs=simclr-digits,sup_con-digits": "降维图",
    "samples?run=simclr-digits": "可能标错",
    "runs": "搜索",
    "runs?view=sweeps&sweep=a new one…": "保存参数扫描",
    "methods": "论文",
    "methods?beside=moco_v1,sup_con": "相同之处",
}


@pytest.fixture
def app(shared_app: str) -> str:
    return shared_app


def settled(page: Any) -> None:
    """Nothing is drawn or made any more, for a while."""
    calm = 0
    while calm < 4:
        calm = 0 if page.locator(BUSY).count() else calm + 1
        page.wait_for_timeout(150)


@pytest.mark.parametrize("address", PAGES)
def test_no_page_has_an_english_sentence_in_chinese(app: str, page: Any, address: str) -> None:
    page.goto(f"{app}/{address}{'&' if '?' in address else '?'}lang=zh")
    page.get_by_text(re.compile(PAGES[address])).filter(visible=True).first.wait_for(timeout=SLOW)
    settled(page)
    texts = [t for t in page.evaluate(TEXTS) if not t.strip().startswith(STREAMLIT)]
    assert not [t for t in texts if SENTENCE.search(t)]


def test_switch_in_the_browser_three_times(app: str, page: Any) -> None:
    """A list, whose choice the browser keeps as a text, speaks the new language at once and keeps
    its choice; the address says the language, on the next page too."""
    page.goto(f"{app}/explore?run=simclr-digits")
    settled(page)
    for _ in range(3):
        switch(page, "中文", "无")
        assert page.evaluate("document.documentElement.lang") == "zh-CN"  # for a screen reader
        switch(page, "English", "nothing else")
        assert page.evaluate("document.documentElement.lang") == "en"
    switch(page, "中文", "无")
    page.wait_for_url(re.compile("lang=zh"))
    page.get_by_test_id("stSidebarNav").get_by_text("方法", exact=True).click()
    page.wait_for_url(re.compile(r"/methods\?.*lang=zh"))
    page.get_by_role("heading", name="方法", exact=True).wait_for(timeout=SLOW)


def switch(page: Any, language: str, chosen: str) -> None:
    page.get_by_test_id("stSidebar").get_by_text(language, exact=True).click()
    page.wait_for_function(
        """(said) => [...document.querySelectorAll("[data-testid=stSelectbox] input")]
          .some((input) => input.value === said)""",
        arg=chosen,
        timeout=SLOW,
    )


@pytest.mark.parametrize(("width", "kind"), [(1440, "wide"), (1024, "upright"), (390, "upright")])
def test_the_flow_of_a_method_is_drawn_in_chinese(app: str, page: Any, width: int, kind: str) -> None:
    """From left to right where there is room, else downwards; no label of it is English."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{app}/methods?method=moco_v2&lang=zh")
    page.locator(f".flow.{kind}").wait_for(timeout=SLOW)
    assert page.locator(".flow:visible").count() == 1
    drawn = page.locator(f".flow.{kind}").evaluate("e => [atob(e.src.split(',')[1]), e.getBoundingClientRect().right]")
    assert drawn[1] <= width
    svg = drawn[0].encode("latin-1").decode()
    assert "旧键队列" in re.sub(r"</tspan><tspan[^>]*>", "", svg)
    labels = re.sub(r"<[^>]+>", " ", svg)
    assert not re.search(r"\b(encoder|head|queue|gradient|view)\b", labels), labels
