"""The map in a browser: zoom, lasso, box, hover, search, keys; a selection goes back as rows."""

from typing import Any

import pytest
from map_page import FIND as MAP
from map_page import ask, at, lasso, told, visit, zoom_to
from patience import repainted


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/scatter"


def test_a_lasso_selects_what_it_encloses(page: Any, address: str) -> None:
    visit(page, address)
    place = page.locator(".stage").bounding_box()
    lasso(page, [(-3, -2.2), (2.5, -2.2), (2.5, 2.5), (-3, 2.5)])
    page.get_by_text("rows 120").wait_for()
    rows = ask(page, "map.picked")
    assert {i % 5 for i in rows} == {0}
    assert f"sum {sum(rows)}" in told(page)
    assert page.locator(".gallery canvas").count() == 120
    assert page.locator(".stage").bounding_box() == place  # what a selection says moves no map
    page.locator(".map canvas").first.focus()
    page.keyboard.press("Escape")
    page.get_by_text("rows 0").wait_for()
    page.locator("button[data-key=box]").click()
    lasso(page, [(-3, -2.2), (2.5, 2.5)])
    page.get_by_text("rows 120").wait_for()


def hues(page: Any) -> int:
    """How many colors of points are drawn faintly."""
    return page.locator(".stage canvas").first.evaluate(
        """(c) => { const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, found = new Map();
        for (let k = 0; k < p.length; k += 4) if (p[k + 3] > 60 && p[k + 3] < 90) {
          const hue = [p[k], p[k + 1], p[k + 2]].map((v) => v >> 5).join();
          found.set(hue, (found.get(hue) ?? 0) + 1);
        }
        return [...found.values()].filter((count) => count > 50).length; }"""
    )


def test_zoom_and_selection_stay_when_colors_change(page: Any, address: str) -> None:
    visit(page, address)
    page.mouse.move(*at(page, 7))
    whole = ask(page, "({...map.view})")
    page.mouse.wheel(0, -600)
    page.get_by_text("Hold Ctrl or ⌘ to zoom with the wheel").wait_for()
    assert ask(page, "({...map.view})") == whole  # the wheel alone scrolls the page
    page.keyboard.down("Control")
    page.mouse.wheel(0, -600)
    page.keyboard.up("Control")
    page.wait_for_function(f"whole => ({MAP})().view.scale > whole", arg=whole["scale"])
    repainted(page)
    page.mouse.click(*at(page, 7))
    page.get_by_text("rows 1 sum 7").wait_for()
    before = ask(page, "({...map.view})")
    page.get_by_text("number", exact=True).click()
    page.get_by_text("runs 3").wait_for()
    repainted(page)
    assert ask(page, "({...map.view})") == before
    assert ask(page, "map.picked") == [7]
    assert ask(page, "map.meta.names.length") == 8
    assert "rows 1 sum 7" in told(page)
    page.get_by_role("button", name="whole map").click()
    repainted(page)
    assert hues(page) > 3  # what is not selected is paler and keeps its color


def test_two_fingers_zoom_about_their_middle_and_select_nothing(browser: Any, address: str) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 900, "height": 900})
    page = context.new_page()
    visit(page, address)
    (x, y), scale = at(page, 7), ask(page, "map.view.scale")
    touch = context.new_cdp_session(page)
    for kind, apart in (("touchStart", 30), ("touchMove", 40), ("touchMove", 60), ("touchEnd", 0)):
        points = [{"x": x + side * apart, "y": y, "id": k} for k, side in enumerate((-1, 1)) if apart]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_for_function(f"({MAP})().fingers.size === 0")
    repainted(page)
    assert ask(page, "map.view.scale") == pytest.approx(2 * scale, rel=0.02)
    assert at(page, 7) == pytest.approx((x, y), abs=1.5)
    assert "rows 0" in told(page)
    context.close()


def test_hover_shows_picture_and_id_as_text(page: Any, address: str) -> None:
    visit(page, address)
    page.mouse.move(*at(page, 11))
    repainted(page)
    i = ask(page, "map.hover")
    tip = page.locator(".tip").inner_text()
    assert f"test/{i:06d}" in tip
    assert f"<i>class {i % 5}</i>" in tip
    shown = page.locator(".tip canvas").evaluate("c => c.getContext('2d').getImageData(30, 30, 1, 1).data[0]")
    assert abs(shown - i % 5 * 50) < 3
    # the grid finds what a search over all points finds
    near = "((x, y) => { let b = -1, d = 1e9; for (let i = 0; i < map.n; i++) {"
    near += "const q = (map.xy[2*i] - x) ** 2 + (map.xy[2*i+1] - y) ** 2;"
    near += "if (q < d) { d = q; b = i; } } return b; })(map.xy[22], map.xy[23])"
    assert i == ask(page, near)


def test_search_keys_and_legend(page: Any, address: str) -> None:
    visit(page, address)
    page.locator("input[type=search]").fill("000042")
    page.keyboard.press("Enter")
    page.get_by_text("rows 1 sum 42").wait_for()
    canvas = page.locator(".map canvas").first
    canvas.focus()
    scale = ask(page, "map.view.scale")
    page.keyboard.press("+")
    assert ask(page, "map.view.scale") == pytest.approx(1.25 * scale)
    page.keyboard.press("a")
    page.get_by_text("rows 600").wait_for()
    page.keyboard.press("n")
    assert ask(page, "map.hover") == 0
    page.keyboard.press("Enter")
    page.get_by_text("rows 1 sum 0").wait_for()
    first = page.locator(".legend button").nth(0)
    assert first.inner_text().endswith("class 0</i>")
    first.click(modifiers=["Shift"])
    canvas.focus()
    page.keyboard.press("a")
    page.get_by_text("rows 480").wait_for()
    page.locator(".legend button").nth(1).click()  # alone
    canvas.focus()
    page.keyboard.press("a")
    page.get_by_text("rows 120").wait_for()
    page.locator(".legend button").nth(1).click()  # all again
    canvas.focus()
    page.keyboard.press("a")
    page.get_by_text("rows 600").wait_for()


MANY = 200_000


def test_many_points_are_a_density_until_one_is_near(page: Any, address: str) -> None:
    visit(page, address, n=MANY)
    assert "density of 200,000 points" in page.locator(".stage .kind").inner_text()
    inks = page.locator(".stage canvas").first.evaluate(
        """(c) => { const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return [...new Set(p.filter((_, k) => k % 4 === 3))].length; }"""
    )
    assert inks > 20  # as strong as there are points; single points know two
    page.locator(".legend button").nth(0).click(modifiers=["Shift"])
    repainted(page)
    assert "density of 160,000 points" in page.locator(".stage .kind").inner_text()
    page.locator(".legend button").nth(0).click(modifiers=["Shift"])
    zoom_to(page, 7, 60)
    repainted(page)
    assert not page.locator(".stage .kind").is_visible()
    assert 0 < ask(page, "map.shown") < 50_000
    x, y = at(page, 7)
    page.mouse.move(x + 2, y)
    repainted(page)
    nearest = "((x, y) => { let b = -1, d = 1e9; for (let i = 0; i < map.n; i++) {"
    nearest += "const q = (map.xy[2*i] - x) ** 2 + (map.xy[2*i+1] - y) ** 2;"
    nearest += "if (q < d) { d = q; b = i; } } return b; })"
    found = ask(page, f"[map.hover, {nearest}(map.xy[14] + 2 / map.view.scale, map.xy[15])]")
    assert found[0] == found[1]
    assert f"test/{found[0]:06d}" in page.locator(".tip").inner_text()


# What lies in the path that was drawn, by the even-odd rule: the number of rows, and their sum.
IN_PATH = """() => { const path = window.drawn, v = map.view, found = [0, 0];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i] * v.scale + v.x, y = v.y - map.xy[2 * i + 1] * v.scale;
    let odd = false;
    path.forEach(([xa, ya], k) => {
      const [xb, yb] = path[(k + 1) % path.length];
      if (ya > y !== yb > y && x < ((xb - xa) * (y - ya)) / (yb - ya) + xa) odd = !odd;
    });
    if (odd) { found[0]++; found[1] += i; }
  }
  return found; }"""


def test_a_lasso_among_many_selects_exactly_what_it_encloses(page: Any, address: str) -> None:
    visit(page, address, n=MANY)
    keep = "() => { if (map.path) window.drawn = [...map.path] }"
    ask(page, f"map.canvas.addEventListener('pointermove', {keep})")
    for corners in (
        [(-3, -2.2), (2.5, -2.2), (2.5, 2.5), (-3, 2.5)],
        [(3, 3.1), (5.1, 4.2), (9, 3), (9, 9), (4, 5)],
        [(-1, 9), (9, -1), (9, 9), (-1, -1)],
    ):
        lasso(page, corners)
        count, total = ask(page, f"({IN_PATH})()")
        assert 10_000 < count < MANY
        page.get_by_text(f"rows {count} sum {total} ").wait_for()
