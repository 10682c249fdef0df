"""The map in a browser: zoom, lasso, box, hover, search, keys; a selection goes back as rows."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from patience import repainted

from contrastive_lab.components.scatter import rows_of
from contrastive_lab.components.scatter.categories import PALETTE, categories
from contrastive_lab.components.scatter.rows import pack_rows
from contrastive_lab.components.shared.mount import component_key

FIND = """() => {
  const roots = [document, ...[...document.querySelectorAll('*')].map((e) => e.shadowRoot)];
  for (const root of roots) for (const e of root?.querySelectorAll('.map') ?? []) {
    let at = e.parentNode;
    for (; at; at = at.parentNode ?? at.host) if (at._map) return at._map;
  }
  return null;
}"""


@pytest.fixture(scope="module")
def address(script_pages: str) -> str:
    return f"{script_pages}/scatter"


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


def test_a_lasso_selects_what_it_encloses(page: Any, address: str) -> None:
    visit(page, address)
    lasso(page, [(-3, -2.2), (2.5, -2.2), (2.5, 2.5), (-3, 2.5)])
    page.get_by_text("rows 120").wait_for()
    rows = ask(page, "map.picked")
    assert {i % 5 for i in rows} == {0}
    assert f"sum {sum(rows)}" in told(page)
    assert page.locator(".gallery canvas").count() == 120
    page.locator(".map canvas").first.focus()
    page.keyboard.press("Escape")
    page.get_by_text("rows 0").wait_for()


def test_a_box_and_many_rows(page: Any, address: str) -> None:
    visit(page, address, n=3000)
    page.locator("button[data-key=box]").click()
    lasso(page, [(-3, -2.2), (5.9, 9.5)])
    page.get_by_text(re.compile("rows 1[78]")).wait_for()
    rows = ask(page, "map.picked")
    assert f"rows {len(rows)} sum {sum(rows)}" in told(page)  # came as bits


def test_zoom_and_selection_stay_when_colors_change(page: Any, address: str) -> None:
    visit(page, address)
    page.mouse.move(*at(page, 7))
    page.mouse.wheel(0, -600)
    page.wait_for_timeout(100)
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
    page.locator(".legend button").nth(0).click()
    canvas.focus()
    page.keyboard.press("a")
    page.get_by_text("rows 480").wait_for()


def test_a_selection_from_elsewhere_is_lit(page: Any, address: str) -> None:
    visit(page, address, given=1)
    assert ask(page, "map.picked") == [1, 2, 3]
    assert "rows 3 sum 6" in told(page)


MANY = 200_000


def zoom_to(page: Any, i: int, times: float) -> None:
    """Look at point i from so many times as near."""
    page.evaluate(
        f"""() => {{ const map = ({FIND})(), v = map.view, stage = map.stage;
        v.scale *= {times}; v.x = stage.clientWidth / 2 - map.xy[{2 * i}] * v.scale;
        v.y = stage.clientHeight / 2 + map.xy[{2 * i + 1}] * v.scale;
        map.moved = map.stale = true; map.redraw(); }}"""
    )


def test_many_points_are_a_density_until_one_is_near(page: Any, address: str) -> None:
    visit(page, address, n=MANY)
    assert "density of 200,000 points" in page.locator(".stage .kind").inner_text()
    inks = page.locator(".stage canvas").first.evaluate(
        """(c) => { const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return [...new Set(p.filter((_, k) => k % 4 === 3))].length; }"""
    )
    assert inks > 20  # as strong as there are points; single points know two
    page.locator(".legend button").nth(0).click()
    repainted(page)
    assert "density of 160,000 points" in page.locator(".stage .kind").inner_text()
    page.locator(".legend button").nth(0).click()
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


IN_VIEW = """(() => { const v = map.view, found = [];
  for (let i = 0; i < map.n; i++) {
    const x = map.xy[2 * i] * v.scale + v.x, y = v.y - map.xy[2 * i + 1] * v.scale;
    if (x >= 0 && y >= 0 && x < map.stage.clientWidth && y < map.stage.clientHeight) found.push(i);
  }
  return found; })()"""


def test_a_line_of_images_shows_what_is_in_view(page: Any, address: str) -> None:
    visit(page, address, view=1, some=1)  # every third row has its image
    line = page.get_by_role("group", name="images in view")
    line.locator("button").nth(5).wait_for()
    settled = f"() => {{ const map = ({FIND})(), inside = {IN_VIEW};"
    settled += " return map.inView.length && map.inView.every((i) => inside.includes(i)) }"
    for k, i in enumerate((3, 9, 12)):
        zoom_to(page, i, 1 if k else 12)
        page.wait_for_function(settled)
        assert {row % 3 for row in ask(page, "map.inView")} == {0}
    rows = ask(page, "map.inView")
    shown = line.locator("button").first
    inks = shown.locator("canvas").evaluate("c => c.getContext('2d').getImageData(20, 20, 1, 1).data[0]")
    assert abs(inks - rows[0] % 5 * 50) < 3
    shown.click()
    page.get_by_text(f"rows 1 sum {rows[0]}").wait_for()


def test_images_that_the_sheet_lacks_are_brought(page: Any, address: str) -> None:
    """Pointed at three times, and in the line of what is in view; the page is not drawn anew."""
    visit(page, address, view=1, some=1, bring=1)  # every third row has its image at first
    ink = "c => c.getContext('2d').getImageData(20, 20, 1, 1).data[0]"
    line = page.get_by_role("group", name="images in view")
    line.locator("button").nth(5).wait_for()
    for i in (1, 4, 8):
        zoom_to(page, i, 1 if i > 1 else 22)
        page.mouse.move(*at(page, i))
        page.wait_for_function(f"() => ({FIND})().hover === {i}")
        picture = page.locator(".tip canvas")
        picture.wait_for()
        assert abs(picture.evaluate(ink) - i % 5 * 50) < 3
        page.wait_for_function(
            f"() => {{ const map = ({FIND})(), inside = {IN_VIEW}, most = Math.floor("
            "map.stage.clientWidth / 48); "
            "return map.inView.length === Math.min(inside.length, most) }"
        )
        rows = ask(page, "map.inView")
        assert {row % 3 for row in rows} > {0}
        inks = [c.evaluate(ink) for c in line.locator("canvas").all()]
        assert [round(v / 50) for v in inks] == [row % 5 for row in rows]
    assert told(page).startswith("runs 1 ")


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


def test_rows_and_colors_in_python() -> None:
    assert rows_of(None).tolist() == []
    assert rows_of({"rows": [4, 1]}).tolist() == [4, 1]
    assert rows_of({"bits": "BQAB"}).tolist() == [0, 2, 16]
    assert rows_of({"runs": "AgAAAAMAAAAJAAAAAQAAAA=="}).tolist() == [2, 3, 4, 9]
    groups, names, palette = categories(np.array([0, 1, -1]), ["a", "b"], 3, PALETTE)
    assert groups.tolist() == [0, 1, 2]
    assert names == ["a", "b", "no label"]
    assert palette[2] not in PALETTE  # also where colors are used over again
    assert categories(np.array([0, 1, -1]), ["a", "b"], 3, PALETTE[:2])[2][2] == palette[2]
    for count, none in ((255, 0), (254, 1), (300, 0), (1000, 7)):
        color = np.concatenate([np.arange(count), np.full(none, -1)])
        groups, names, palette = categories(color, [f"c{i}" for i in range(count)], count, PALETTE)
        assert len(names) == len(palette) == 255
        seen = [names[g] for g in groups[:count]]
        alone = 255 - bool(none) - (count + bool(none) > 255)
        assert seen[:alone] == [f"c{i}" for i in range(alone)]
        assert set(seen[alone:]) <= {f"{count - alone:,} more classes"}
        assert {names[g] for g in groups[count:]} <= {"no label"}
    groups, names, palette = categories(np.array([0.0, np.nan, 1.0, np.inf]), (), 4, PALETTE)
    assert len(names) == len(palette) == 9
    assert groups.tolist()[1] == 8
    assert names[8] == "no value"


def test_many_rows_travel_as_runs_or_bits_and_come_back() -> None:
    n = 1_000_000
    for rows, form, most in (
        ([7, 3, 5], "rows", 100),
        (range(200_000, 900_000), "runs", 20),
        (range(0, n, 2), "bits", 170_000),
        ([*range(600), n - 1], "runs", 40),
        (range(n), "runs", 20),
    ):
        packed = pack_rows(list(rows), n)
        assert list(packed) == [form]
        assert len(packed[form]) < most
        assert rows_of(packed).tolist() == list(rows)


def test_a_gallery_tells_which_pictures_are_chosen(page: Any, script_pages: str) -> None:
    page.goto(f"{script_pages}/gallery")
    pictures = page.locator(".gallery button")
    pictures.nth(2).wait_for()
    assert pictures.nth(2).inner_text() == "<b>2</b>"
    pictures.nth(2).click()
    page.get_by_text("chosen [1, 2]").wait_for()
    assert pictures.nth(2).get_attribute("aria-pressed") == "true"
    pictures.nth(1).focus()
    page.keyboard.press("Enter")
    page.get_by_text("chosen [2]").wait_for()


@pytest.mark.parametrize("key", ["a__b", "ä/…__<i>", "x" * 200])
def test_a_key_may_hold_any_name(page: Any, address: str, key: str) -> None:
    """Class and file names go into keys; Streamlit refuses two underscores in a component's."""
    visit(page, address, key=quote(key))
    page.locator("canvas").first.focus()
    page.keyboard.press("a")
    page.get_by_text("runs 2 rows 600").wait_for()


def test_keys_of_parts_are_plain_and_differ() -> None:
    assert component_key("map-digits test") == "map-digits test"
    keys = {component_key(text) for text in ("a__b", "a___b", "__", "a/b", "a" * 100)}
    assert len(keys) == 5
    assert all("__" not in key for key in keys)
