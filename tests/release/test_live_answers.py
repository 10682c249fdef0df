"""The live view in a browser: pull and push look alike everywhere, and no answer takes back what
one does meanwhile."""

from typing import Any

import pytest
from live_page import FIND, ask, visit
from patience import repainted


@pytest.fixture
def address(script_pages: str) -> str:
    return f"{script_pages}/live"


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


def test_bars_are_shares_of_the_push_unless_weights_are_asked_for(page: Any, address: str) -> None:
    visit(page, address)
    assert "share of the push on negatives" in page.locator(".barside .hint").inner_text()
    page.get_by_role("button", name="share among negatives").click()
    repainted(page)
    assert "share of the softmax" in page.locator(".barside .hint").inner_text()
    page.get_by_role("button", name="share among negatives").click()
    page.locator("button[data-key=score]").click()  # similarities are shared by nobody
    page.get_by_role("button", name="share among negatives").wait_for()


def test_the_hardest_negative_stands_beside_the_anchor(page: Any, address: str) -> None:
    visit(page, address)
    told = page.locator(".told .hint").inner_text()
    at = "lab.anchor * lab.w"
    negatives = "[...lab.columns].filter((j) => lab.M[at + j] === 2)"
    hardest = f"{negatives}.sort((a, b) => lab.out.grad[at + b] - lab.out.grad[at + a])[0]"
    j = ask(page, hardest.replace("at +", f"{at} +"))
    assert "hardest negative" in told
    assert f"row {j}" in told
