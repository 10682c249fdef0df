"""The live view in a browser: what is dragged is computed there and told once (browser/test_app.py: by a mouse), no
answer takes back what one does meanwhile, pull and push look alike everywhere; panels, touch, addresses, downloads."""

import math
import re
from typing import Any

import pytest
from live_page import FIND, ask, set_slider, visit
from patience import SLOW, repainted


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/live"


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


def test_the_margin_line_can_be_dragged(page: Any, address: str) -> None:
    sent = visit(page, address, "pair")
    page.locator("button[data-key=curves]").click()
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
    words = page.locator(".of-scores .hint").inner_text()
    inside = int(re.search(r"(\d+) negatives are inside", words).group(1))
    wanted = "lab.S.filter((d, k) => lab.M[k] === 2 && d < Math.fround(lab.value)).length"
    assert abs(inside - ask(page, wanted)) <= 2
    page.mouse.up()
    page.get_by_text("runs 3").wait_for()


def test_all_of_it_can_be_reached_and_moved_by_keys(page: Any, address: str) -> None:
    """Tab through the view: nothing is left out, focus is seen, and each part answers."""
    visit(page, address, "pair")
    page.locator("button[data-key=star]").focus()
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
    wanted = ["star", "matrix", "curves", "PNG", "CSV", "range", "number", "matrix", "weight", "score", "grad", "mask"]
    wanted += ["of-matrix", "group", "cluster", "bars", "farther", "Pin as A"]
    assert [name for name, _ in seen] == wanted
    page.locator(".bars").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(f"() => ({FIND})().hover")
    nearest = ask(page, "lab.hover[1]")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => ({FIND})().anchor === {nearest}")
    page.get_by_role("button", name="Pin as A").focus()
    page.keyboard.press("Enter")
    page.locator("canvas.two:visible").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => ({FIND})().anchor === {nearest} + 1")
    page.locator("button[data-key=curves]").focus()
    page.keyboard.press("Enter")
    page.locator(".knob input").first.focus()
    for _ in range(5):
        page.keyboard.down("ArrowRight")
    page.wait_for_function(f"() => ({FIND})().value === 0.51")
    assert page.locator("math [data-held]").first.text_content() == "ε"  # the letter of the knob that is held
    page.keyboard.up("ArrowRight")
    page.get_by_text(re.compile(r"value 0\.51 ")).wait_for()
    assert page.locator("math [data-held]").count() == 0
    with page.expect_download():
        page.get_by_role("button", name="CSV").focus()
        page.keyboard.press("Enter")


def test_an_answer_that_comes_while_one_types_takes_nothing_back(page: Any, address: str) -> None:
    visit(page, address)
    field = page.locator(".knob input[type=number]").first
    field.fill("0.05")
    page.get_by_role("button", name="again").evaluate("button => button.click()")  # keeps the focus
    page.get_by_text("runs 2 ").wait_for()
    repainted(page)
    assert field.input_value() == "0.05"
    field.press("Enter")
    page.get_by_text("value 0.05 ").wait_for()
    assert ask(page, "[lab.value, lab.kernel.temperature]") == [0.05, 0.05]
    field.fill("99")
    field.press("Enter")
    page.get_by_text("value 10 ").wait_for()


def test_an_answer_to_an_older_report_moves_nothing(page: Any, address: str) -> None:
    """What was let go last stays, whatever is still on its way."""
    visit(page, address)
    found = page.evaluate(
        f"""async () => {{
          const lab = ({FIND})(), {{ applyKernel }} = await import(
            performance.getEntriesByType("resource").find((e) => e.name.includes("load.js")).name);
          const older = {{ ...lab.meta, heard: lab.reports }};
          lab.readout.value = 0.05;
          lab.readout.onchange();
          const told = lab.value;
          applyKernel(lab, older);
          const kept = lab.value;
          applyKernel(lab, {{ ...older, heard: lab.reports }});
          return [told, kept, lab.value];
        }}"""
    )
    assert found == [0.05, 0.05, 0.5]


def test_pull_is_filled_and_push_is_hollow(page: Any, address: str) -> None:
    """Pixels in the middle and at the edge of cells that are pulled and pushed, wherever cells are
    wide enough for a shape; positives and negatives look alike them."""
    cell = "[0, 4].map((k) => lab.grained.data[4 * (3 * 16 * Math.floor(k / 3) + 3 + k % 3) + 3])"
    for kind, view in (("softmax", "grad"), ("pair", "mask")):  # row 0 with 1, of its group, and 4
        visit(page, address, kind, n=16, more=f"&view={view}")
        edge, middle = ask(page, cell)
        assert edge == middle > 0, kind
        edge, middle = ask(page, cell.replace("+ 3 +", "+ 12 +"))
        assert edge > 0 == middle, kind
    visit(page, address, n=1024)
    assert not ask(page, "lab.hasGrain")  # a cell is hardly a pixel
    assert page.locator(".legend i.hollow").count() == 1
    assert page.locator(".legend i.filled").count() == 1


@pytest.mark.parametrize("kind", ["softmax", "pair", "triplet"])
def test_every_panel_draws_and_follows_the_knob(page: Any, address: str, kind: str) -> None:
    visit(page, address, kind)
    page.get_by_role("button", name="Pin as A").click()
    page.locator("button[data-key=curves]").click()
    for panel in ("of-scores", "of-grads", "of-curves", "of-formula", "panel:has(table)"):
        seen = []
        for position in (400, 700):
            set_slider(page, position)
            drawn = page.locator(f".{panel} canvas").evaluate("c => c.toDataURL()")
            seen.append(drawn + page.locator(f".{panel}").inner_text())
        assert seen[0] != seen[1] or (kind == "softmax" and panel == "of-scores"), panel
        assert page.locator(f".{panel} .hint").inner_text()
    page.locator("button[data-key=matrix]").click()
    for view in ("score", "grad", "mask", "weight"):
        page.locator(f"button[data-key={view}]").click()
    page.locator("button[data-key=cluster]").click()
    repainted(page)
    assert sorted(ask(page, "lab.rows")) == list(range(64))


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


def test_a_second_loss_comes_from_the_server_and_is_then_live(page: Any, address: str) -> None:
    visit(page, address, more="&second=same")
    select = page.locator(".panel select")
    select.select_option("loss:pair")
    page.wait_for_function(f"() => ({FIND})().two.out")
    rows = [row.split() for row in page.locator(".panel tr").all_inner_texts()]
    assert rows[0] == "now, τ 0.500 A, ε 0.500 difference".split()
    before = ask(page, "lab.two.out.value")
    page.locator(".panel input").first.evaluate("e => { e.value = 900; e.dispatchEvent(new Event('input')); }")
    repainted(page)
    assert ask(page, "lab.two.out.value") > before
    select.select_option("loss:server")
    page.wait_for_function(f"() => ({FIND})().two.out?.value === 1.5")
    select.select_option("loss:refused")
    page.get_by_text("It needs labels.").wait_for()


def test_the_formula_adds_up(page: Any, address: str) -> None:
    """The numbers put into the formula give the loss, at a τ where e^(s/τ) is large too."""
    visit(page, address, more="&stage=curves")
    for position in (0, 500):
        set_slider(page, position)
        lines = page.locator(".worked > div").all_inner_texts()
        loss = ask(page, "lab.out.loss[lab.anchor]")
        told = [float(t.split()[-1].split("=")[-1]) for t in lines[:-1]]
        assert math.isclose(told[-1], loss, rel_tol=0.01)
        assert math.isclose(sum(told[1:-1]) / 3, loss, rel_tol=0.01)
        assert "NaN" not in "".join(lines)
        assert page.locator(".worked").evaluate("e => e.scrollWidth <= e.clientWidth")  # terms wrap


def test_degenerate_batches_say_why(page: Any, address: str) -> None:
    visit(page, address, "lonely")
    page.get_by_text("No anchor has a positive").wait_for()
    assert page.locator(".loss").inner_text() == "undefined"
    visit(page, address, "one group", 16)
    assert page.locator(".effective").inner_text() == "none"
    visit(page, address, "server", 16)
    assert page.locator(".loss").inner_text() == "1.50"
    assert "NaN" not in page.locator(".lab").inner_text()
