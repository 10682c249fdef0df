"""The live view in a browser: what is dragged is computed there, and told once."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW, repainted

FIND = """() => {
  const roots = [document, ...[...document.querySelectorAll('*')].map((e) => e.shadowRoot)];
  for (const root of roots) for (const e of root?.querySelectorAll('.lab') ?? []) {
    let at = e.parentNode;
    for (; at; at = at.parentNode ?? at.host) if (at._lab) return at._lab;
  }
  return null;
}"""


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/live"


def visit(page: Any, address: str, kind: str = "softmax", n: int = 64, more: str = "") -> list[str]:
    """Open the page; the list that is returned collects what the browser sends afterwards."""
    sent: list[str] = []
    page.on("websocket", lambda ws: ws.on("framesent", lambda _: sent.append("sent")))
    page.goto(f"{address}?n={n}&kind={kind}{more}")
    page.wait_for_function(f"() => {{ const lab = ({FIND})(); return lab?.rows?.length }}")
    page.locator(".matrix").wait_for()
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


def drag_mouse(page: Any, steps: int = 12, release: bool = True) -> None:
    box = page.locator(".knob input").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.55, y)
    page.mouse.down()
    for k in range(steps):
        page.mouse.move(box["x"] + box["width"] * (0.55 - 0.4 * k / steps), y)
        page.wait_for_timeout(20)
    if release:
        page.mouse.up()


def test_a_drag_is_computed_in_the_browser_and_told_once(page: Any, address: str) -> None:
    sent = visit(page, address)
    before, loss = ask(page, "lab.value"), page.locator(".loss").inner_text()
    drag_mouse(page, release=False)
    assert ask(page, "lab.value") < before / 3
    assert page.locator(".loss").inner_text() != loss
    assert sent == []
    value = ask(page, "lab.value")
    page.mouse.up()
    page.get_by_text(re.compile(r"runs 2 value")).wait_for()
    assert f"value {value} anchor 0" in page.get_by_text("runs 2").inner_text()
    assert len(sent) == 1
    assert ask(page, "lab.value") == value


def test_a_held_arrow_key_is_one_drag(page: Any, address: str) -> None:
    sent = visit(page, address)
    page.locator(".knob input").first.focus()
    before = ask(page, "lab.value")
    for _ in range(8):
        page.keyboard.down("ArrowLeft")
    repainted(page)
    assert ask(page, "lab.value") < before
    assert sent == []
    page.keyboard.up("ArrowLeft")
    page.get_by_text("runs 2").wait_for()
    assert len(sent) == 1


def test_touch_moves_the_knob(browser: Any, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 900, "height": 900})
    context.set_default_timeout(SLOW)
    page = context.new_page()
    visit(page, address)
    before, box = ask(page, "lab.value"), page.locator(".knob input").first.bounding_box()
    page.touchscreen.tap(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2)
    page.wait_for_function(f"() => ({FIND})().value < {before}")
    context.close()


def test_a_value_can_be_typed(page: Any, address: str) -> None:
    visit(page, address)
    field = page.locator(".knob input[type=number]").first
    field.fill("0.05")
    field.press("Enter")
    page.get_by_text("runs 2 value 0.05").wait_for()
    assert ask(page, "lab.kernel.temperature") == 0.05
    field.fill("99")
    field.press("Enter")
    page.get_by_text("value 10 ").wait_for()


def test_effective_negatives_in_words(page: Any, address: str) -> None:
    visit(page, address)
    set_slider(page, 1000)  # τ = 10: all negatives weigh alike
    hot = page.locator(".effective").inner_text()
    assert re.fullmatch(r"60 of 60", hot), hot
    set_slider(page, 0)  # τ = 0.01: the hardest stands alone
    cold = page.locator(".effective").inner_text()
    assert float(cold.split()[0]) < 3
    assert cold.endswith("of 60")
    softmax = ask(page, "Array.from(lab.out.pair.subarray(0, 64)).reduce((a, b) => a + b)")
    assert math.isclose(softmax, 1, abs_tol=1e-5)


def test_hover_and_keys_light_the_same_pair(page: Any, address: str) -> None:
    sent = visit(page, address)
    bars = page.locator(".bars")
    bars.hover(position={"x": 40, "y": 11})
    nearest = ask(page, "lab.barRows[0]")
    repainted(page)
    assert ask(page, "lab.hover") == [0, nearest]
    assert f"<b>row {nearest}</b>" in page.locator(".told .hint").inner_text()  # text, not HTML
    page.locator(".matrix").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.get_by_text("anchor 2").wait_for()
    assert ask(page, "lab.anchor") == 2
    page.locator(".bars").focus()
    page.keyboard.press("ArrowDown")
    repainted(page)
    assert ask(page, "lab.barRows.indexOf(lab.hover[1])") >= 0
    assert 1 <= len(sent) <= 2


@pytest.mark.parametrize("kind", ["softmax", "pair", "triplet"])
def test_every_panel_draws_and_follows_the_knob(page: Any, address: str, kind: str) -> None:
    visit(page, address, kind)
    for panel in ("scores", "grads", "curves", "two", "formula"):
        page.locator(f"button[data-key={panel}]").click()
        seen = []
        for position in (400, 700):
            set_slider(page, position)
            drawn = page.locator(".panel canvas").evaluate("c => c.toDataURL()")
            seen.append(drawn + page.locator(".panel").inner_text())
        assert seen[0] != seen[1] or (kind == "softmax" and panel == "scores"), panel
        assert page.locator(".panel .hint").inner_text()
    page.locator("button[data-key=none]").click()
    for view in ("score", "grad", "mask", "weight"):
        page.locator(f"button[data-key={view}]").click()
    page.locator("button[data-key=cluster]").click()
    repainted(page)
    assert sorted(ask(page, "lab.rows")) == list(range(64))


def test_the_margin_line_can_be_dragged(page: Any, address: str) -> None:
    sent = visit(page, address, "pair")
    page.locator("button[data-key=scores]").click()
    page.get_by_text("runs 2").wait_for()
    sent.clear()
    page.locator("canvas.scores").scroll_into_view_if_needed()
    box = page.locator("canvas.scores").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 50, steps=5)
    repainted(page)
    assert ask(page, "lab.value") > 1
    assert sent == []
    words = page.locator(".panel .hint").inner_text()
    inside = int(re.search(r"(\d+) negatives are inside", words).group(1))
    wanted = "lab.S.filter((d, k) => lab.M[k] === 2 && d < Math.fround(lab.value)).length"
    assert abs(inside - ask(page, wanted)) <= 2
    page.mouse.up()
    page.get_by_text("runs 3").wait_for()


def test_the_margin_line_answers_to_a_finger(browser: Any, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 900, "height": 1400})
    context.set_default_timeout(SLOW)
    page = context.new_page()
    visit(page, address, "pair", more="&panel=scores")
    line = page.locator("canvas.scores")
    line.scroll_into_view_if_needed()
    line.tap(position={"x": 0.8 * line.bounding_box()["width"], "y": 60})
    page.wait_for_function(f"() => ({FIND})().value > 1")
    page.get_by_text("runs 2").wait_for()
    context.close()


def test_the_matrix_and_the_bars_answer_to_a_finger(browser: Any, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 900, "height": 1400})
    context.set_default_timeout(SLOW)
    page = context.new_page()
    visit(page, address)
    at = page.locator(".matrix").bounding_box()["width"]
    page.locator(".matrix").tap(position={"x": 0.9 * at, "y": 0.5 * at})
    page.wait_for_function(f"() => ({FIND})().anchor > 20")
    row, column = ask(page, "lab.hover")  # what was touched stays lit
    assert row == ask(page, "lab.anchor")
    page.get_by_text(f"anchor {row}").wait_for()
    assert f"row {column}" in page.locator(".told .hint").inner_text()
    first = ask(page, "lab.barRows[0]")
    page.get_by_role("button", name="farther").tap()
    page.wait_for_function(f"() => ({FIND})().barRows[0] !== {first}")
    page.locator(".bars").tap(position={"x": 60, "y": 11})
    page.wait_for_function(f"() => ({FIND})().anchor !== {row}")  # it is an anchor, too
    context.close()


def test_all_of_it_can_be_reached_and_moved_by_keys(page: Any, address: str) -> None:
    """Tab through the view: nothing is left out, focus is seen, and each part answers."""
    visit(page, address, "pair", more="&panel=scores")
    page.locator(".knob input").first.focus()
    seen = []
    for _ in range(40):
        active = page.evaluate(
            """() => { let a = document.activeElement;
            while (a?.shadowRoot?.activeElement) a = a.shadowRoot.activeElement;
            if (!a?.closest('.lab')) return null;
            const style = getComputedStyle(a);
            const name = a.className || a.dataset.key || a.textContent || a.type;
            return [name, style.outlineStyle]; }"""
        )
        if active is None:
            break
        seen.append(active)
        page.keyboard.press("Tab")
    assert all(outline != "none" for _, outline in seen), seen
    views, panels = ["weight", "score", "grad", "mask"], ["none", "scores", "grads", "curves"]
    wanted = ["range", "number", *views, "mark positives and negatives", "group", "cluster"]
    wanted += ["PNG", "CSV", *panels, "formula", "two", "pushes", "matrix", "bars", "farther", "scores"]
    assert [name for name, _ in seen] == wanted
    page.locator("canvas.scores").focus()
    before = ask(page, "lab.value")
    for _ in range(5):
        page.keyboard.down("ArrowRight")
    page.wait_for_function(f"() => ({FIND})().value > {before} + 0.04")
    page.keyboard.up("ArrowRight")
    page.get_by_text(re.compile(r"runs 2 value 0\.55 ")).wait_for()
    page.locator(".bars").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(f"() => ({FIND})().hover")
    nearest = ask(page, "lab.hover[1]")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => ({FIND})().anchor === {nearest}")
    page.locator("button[data-key=two]").focus()
    page.keyboard.press("Enter")
    page.locator("canvas.two:visible").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => ({FIND})().anchor === {nearest} + 1")
    with page.expect_download():
        page.get_by_role("button", name="CSV").focus()
        page.keyboard.press("Enter")


@pytest.mark.parametrize("anchors", [64, 16])
def test_clusters_stand_together(modules: Any, anchors: int) -> None:
    """Groups that came mixed stand together, in a square batch and in a rectangular one."""
    rng = np.random.default_rng(0)
    group = np.arange(64) * 27 % 8
    rows = np.eye(8)[group] + 0.1 * rng.standard_normal((64, 8))
    scores = rows[:anchors] @ rows.T
    names = [f"row {i}" for i in range(64)]
    order, columns = modules.evaluate(
        """async ([S, meta, n]) => {
          const { clustersOf } = await import("/loss_view/order.js");
          return clustersOf({ n, w: 64, S: Float32Array.from(S), meta });
        }""",
        [scores.ravel().tolist(), {"names": names[:anchors], "columnNames": names, "scoreName": "similarity"}, anchors],
    )
    for found, m in ((order, anchors), (columns, 64)):
        assert sorted(found) == list(range(m))
        changes = np.count_nonzero(np.diff(group[found]))
        assert changes == len(np.unique(group[:m])) - 1


def test_two_settings_differ_as_the_formula_says(page: Any, address: str) -> None:
    visit(page, address)
    page.locator("button[data-key=two]").click()
    repainted(page)
    assert ask(page, "lab.two.value") == ask(page, "lab.value") / 4  # a difference at once
    page.locator(".panel select").select_option("out")  # what it is already
    repainted(page)
    assert "the same gradient" in page.locator(".panel .hint").inner_text()
    page.locator(".panel select").select_option("in")
    repainted(page)
    assert ask(page, "lab.two.out.value <= lab.out.value + 1e-9")  # Jensen
    assert "but not the same gradient" in page.locator(".panel .hint").inner_text()
    page.locator(".panel input").first.evaluate("e => { e.value = 200; e.dispatchEvent(new Event('input')); }")
    repainted(page)
    assert "weigh more in the first" in page.locator(".panel .hint").inner_text()


def test_a_second_loss_comes_from_the_server_and_is_then_live(page: Any, address: str) -> None:
    visit(page, address, more="&panel=two")
    select = page.locator(".panel select")
    select.select_option("loss:pair")
    page.wait_for_function(f"() => ({FIND})().two.out")
    rows = [row.split() for row in page.locator(".panel tr").all_inner_texts()]
    assert rows[0] == "first, τ 0.500 second, ε 0.500 difference".split()
    before = ask(page, "lab.two.out.value")
    page.locator(".panel input").first.evaluate("e => { e.value = 900; e.dispatchEvent(new Event('input')); }")
    repainted(page)
    assert ask(page, "lab.two.out.value") > before
    select.select_option("loss:server")
    page.wait_for_function(f"() => ({FIND})().two.out?.value === 1.5")
    select.select_option("loss:refused")
    page.get_by_text("It needs labels.").wait_for()


def test_an_address_restores_the_view(page: Any, address: str) -> None:
    more = "&view=grad&panel=two&order=cluster&masks=yes&second=loss:pair&anchor=5"
    visit(page, address, more=more)
    page.wait_for_function(f"() => ({FIND})().two?.out")
    for key in ("grad", "cluster", "two"):
        assert page.locator(f"button[data-key={key}]").get_attribute("aria-pressed") == "true"
    assert ask(page, "[lab.anchor, lab.overlay, lab.second.choice]") == [5, True, "loss:pair"]
    visit(page, address, more="&view=nonsense&panel=<b>&second=loss:nothing")
    assert ask(page, "[lab.view, lab.panel]") == ["weight", "none"]


def test_the_formula_adds_up(page: Any, address: str) -> None:
    """The numbers put into the formula give the loss, at a τ where e^(s/τ) is large too."""
    visit(page, address, more="&panel=formula")
    for position in (0, 500):
        set_slider(page, position)
        lines = page.locator(".worked > div").all_inner_texts()
        loss = ask(page, "lab.out.loss[lab.anchor]")
        told = [float(t.split()[-1].split("=")[-1]) for t in lines[:-1]]
        assert math.isclose(told[-1], loss, rel_tol=0.01)
        assert math.isclose(sum(told[1:-1]) / 3, loss, rel_tol=0.01)
        assert "NaN" not in "".join(lines)
        assert page.locator(".worked").evaluate("e => e.scrollWidth <= e.clientWidth")  # terms wrap


def test_pull_is_blue_for_similarities_and_for_distances(page: Any, address: str) -> None:
    for kind in ("softmax", "pair"):
        visit(page, address, kind, more="&view=grad")
        red, _, blue, _ = ask(page, "Array.from(lab.image.data.slice(4, 8))")  # rows 0 and 1
        assert blue > red, kind


def test_a_low_temperature_is_explained(page: Any, address: str) -> None:
    visit(page, address)
    set_slider(page, 0)
    least = ask(page, "lab.out.effective.indexOf(Math.min(...lab.out.effective))")
    visit(page, address, more=f"&panel=curves&anchor={least}")
    words = page.locator(".panel .hint").inner_text()
    tau = float(re.search(r"Below τ = ([\d.]+)", words).group(1))
    assert "does not change which negatives matter" in words
    set_slider(page, round(1000 * math.log(tau / 0.01) / math.log(1000)))
    assert 1 <= ask(page, "lab.out.effective[lab.anchor]") < 1.15


def test_degenerate_batches_say_why(page: Any, address: str) -> None:
    visit(page, address, "lonely")
    page.get_by_text("No anchor has a positive").wait_for()
    assert page.locator(".loss").inner_text() == "undefined"
    visit(page, address, "one group", 16)
    assert page.locator(".effective").inner_text() == "none"
    visit(page, address, "server", 16)
    assert page.locator(".loss").inner_text() == "1.500"
    assert "NaN" not in page.locator(".lab").inner_text()


def test_downloads(page: Any, address: str) -> None:
    visit(page, address, n=16)
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    lines = Path(got.value.path()).read_text().splitlines()
    assert lines[0].startswith("anchor,candidate,relation,score,weight,gradient,anchor_loss,")
    assert len(lines) == 1 + 16 * 16
    with page.expect_download() as got:
        page.get_by_role("button", name="PNG").click()
    assert Path(got.value.path()).read_bytes()[:4] == b"\x89PNG"
