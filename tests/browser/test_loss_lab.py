"""The Loss Lab in the app: whatever is chosen stands in the address and comes back from it."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from lab_page import LAB, visit
from live_page import drag_mouse
from page_checks import settled
from patience import SLOW, repainted


@pytest.fixture
def address(filled_app: str) -> str:
    return filled_app


def pressed(page: Any) -> list[str]:
    """The keys of what is chosen, of each row of choices."""
    found = page.locator(".lab .below button[data-key][aria-pressed=true]")
    return found.evaluate_all("all => all.map(b => b.dataset.key)")


def test_a_view_can_be_bookmarked(page: Any, address: str) -> None:
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=classes&form=in&temperature=0.3&anchor=0")
    for name in ("Gradient", "mark positives and negatives", "Pin as A"):
        page.get_by_role("button", name=name, exact=True).click()
    page.locator(".panel select").select_option("loss:triplet")
    page.wait_for_url(re.compile(r"second=loss%3Atriplet|second=loss:triplet"))
    page.locator(".matrix").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile(r"anchor=1"))
    figures, url = page.locator(".figures").inner_text(), page.url
    for part in ("form=in", "temperature=0.3", "view=grad", "second=loss"):
        assert part in url
    visit(page, url)
    page.locator(".panel table").wait_for()
    assert page.locator(".figures").inner_text() == figures
    assert pressed(page) == ["grad", "group"]
    assert page.locator(".panel select").input_value() == "loss:triplet"
    assert "ε 0.2" in page.locator(".panel table").inner_text()
    page.get_by_role("link", name="Methods").click()
    page.get_by_role("heading", name="Methods").wait_for()
    page.get_by_role("link", name="Loss Lab").click()
    page.locator(".matrix:visible").wait_for()
    page.locator(".panel table:visible").wait_for()
    assert pressed(page) == ["grad", "group"]


def test_moved_points_and_every_control_of_the_circle_come_back(page: Any, address: str) -> None:
    more = "&margin=0&points=30&groups=3&mining=hard"
    page.goto(f"{address}/loss_lab?on=circle&loss=triplet{more}")
    note = page.locator(".hint").first
    note.get_by_text("step 0: loss").wait_for()
    for k in range(1, 4):
        page.get_by_role("button", name="Step", exact=True).click()
        note.get_by_text(f"step {k}: loss").wait_for()
    page.wait_for_url(re.compile(r"at=[A-Za-z0-9_-]{90}"))
    settled(page)  # with the places of the last step
    url, before = page.url, re.search(r"loss ([\d.]+), (.*)", note.inner_text())
    for part in ("mining=hard", "margin=0", "points=30", "groups=3"):
        assert part in url
    page.goto("about:blank")
    page.goto(url)
    note.get_by_text("step 0: loss").wait_for()
    again = re.search(r"loss ([\d.]+), (.*)", note.inner_text())
    assert before
    assert again
    assert float(again[1]) == pytest.approx(float(before[1]), abs=0.02)
    assert again[2].split(" The")[0] == before[2].split(" The")[0]


def test_the_csv_holds_what_the_page_says(page: Any, address: str) -> None:
    page.emulate_media(reduced_motion="reduce")  # figures do not glide
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=classes&temperature=0.2&anchor=0")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    with Path(got.value.path()).open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 32 * 32
    each = {r["anchor"]: r for r in rows}.values()  # a row of each anchor
    weight = sum(float(r["anchor_weight"]) for r in each)
    loss = sum(float(r["anchor_loss"]) * float(r["anchor_weight"]) for r in each) / weight
    effective = [float(r["anchor_effective_negatives"]) for r in each]
    own = [r for r in rows if r["anchor"] == rows[0]["anchor"]]
    pull = sum(abs(float(r["gradient"])) for r in own if r["relation"] == "positive")
    shown = [page.locator(f".figures .{n}").inner_text() for n in ("loss", "effective", "pull")]
    assert f"{loss:.3g}" == shown[0]
    assert float(shown[1].split()[0]) == pytest.approx(sum(effective) / 32, abs=0.5)
    assert float(shown[2]) == pytest.approx(pull, rel=5e-3)


def test_the_settings_open_from_the_loss_and_stay_open(page: Any, address: str) -> None:
    visit(page, f"{address}{LAB}&loss=nt_xent&pairing=views")
    page.get_by_role("button", name="NT-Xent").click()
    fields = page.locator("[data-testid=stSelectbox]")
    for name, option, chosen in (
        ("Positives are", "Images of one class", "pairing=classes"),
        ("Vectors from", "Encoder output (h)", "rows=h"),
        ("Loss", "SupCon", "loss=sup_con"),
    ):
        fields.filter(has_text=name).get_by_role("combobox").click()
        page.get_by_role("option", name=option).click()
        page.wait_for_url(re.compile(chosen))
        fields.filter(has_text=name).wait_for()  # it is still open


def test_each_view_of_pairs_is_one_click_from_the_star_and_another_loss_keeps_the_temperature(
    page: Any, address: str
) -> None:
    url = f"{address}{LAB}&loss=nt_xent&pairing=views&temperature=0.13".replace("on=matrix", "on=star")
    for name, key in (("Similarity", "score"), ("Positive or negative?", "mask"), ("Gradient", "grad")):
        page.goto(url)
        page.locator(".starry:visible").wait_for(timeout=SLOW)
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_url(re.compile(f"view={key}.*on=matrix"))
        assert pressed(page) == [key, "group"]
    page.get_by_role("radio", name="Star").click()
    page.locator(".starry:visible").wait_for()
    page.locator(".pushes button", has_text="Hard negatives").click()
    page.wait_for_url(re.compile("loss=hard_negative.*temperature=0.13"))
    page.get_by_role("slider", name=re.compile("^β")).wait_for()
    assert page.locator(".knob input[type=number]").first.input_value() == "0.13"
    drag_mouse(page)
    page.get_by_role("slider", name=re.compile("^β")).press("ArrowRight")
    released = [float(page.locator("input[type=number]:visible").nth(n).input_value()) for n in (0, 1)]
    page.get_by_role("button", name="Train with this").click()
    carried = page.get_by_text(re.compile(r"^Hard negatives .*temperature τ"))
    carried.wait_for(timeout=SLOW)
    found = re.search(r"temperature τ ([\d.]+).* beta ([\d.]+)", carried.inner_text())
    assert found
    assert [float(text) for text in found.groups()] == pytest.approx(released, rel=0.01)
    assert released[0] < 0.13
    assert released[1] != 1


def test_a_newcomer_finds_answers_on_the_page(page: Any, address: str) -> None:
    """What τ chooses, why less changes nothing, what a margin leaves alone, what training did to
    the pull, and whether SupCon's forms differ."""

    def figure(name: str) -> float:
        return float(page.locator(f".figures .{name}").inner_text().split()[0])

    def at(value: float) -> None:
        field = page.locator(".knob input[type=number]").first
        field.fill(str(value))
        field.press("Enter")
        page.wait_for_url(re.compile(rf"(temperature|margin)={value:g}(&|$)"))
        repainted(page)

    def told(panel: str) -> str:
        page.get_by_role("radio", name="Curves").click()
        page.locator(f".of-{panel}:visible").wait_for()
        repainted(page)
        return str(page.locator(f".of-{panel} .hint").inner_text())

    visit(page, f"{address}{LAB}&loss=nt_xent&pairing=views&anchor=0")
    at(0.05)
    assert figure("effective") < 10
    few = int(re.search(r"the hardest 5 get (\d+) %", told("grads")).group(1))
    at(1)
    assert figure("effective") > 25
    assert int(re.search(r"the hardest 5 get (\d+) %", told("grads")).group(1)) < few / 2
    assert "does not change which negatives matter" in told("curves")
    page.get_by_role("button", name="Pin as A").click()
    page.locator(".panel select").select_option("rows:random")
    page.locator(".panel tr", has_text="now, τ 1").wait_for(timeout=SLOW)
    pulls = page.locator(".panel tr", has_text="Gradient").locator("td").all_inner_texts()
    assert float(pulls[0]) < float(pulls[1])  # an untrained encoder's positives are still to pull
    visit(page, f"{address}{LAB}&loss=pair_contrastive&pairing=classes&normalize=yes&margin=0.5")
    left = int(re.search(r"The (\d+) beyond it are not moved", told("scores")).group(1))
    assert left > 100
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=classes&second=in")
    assert "not the same gradient" in page.locator(".inspector .panel .hint").inner_text()
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=views&second=in")
    assert "the same weight and the same gradient" in page.locator(".inspector .panel .hint").inner_text()


LOOK = "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e.parentElement).backgroundColor]"


def test_a_margin_that_is_off_is_under_more_and_segments_look_alike(page: Any, address: str) -> None:
    page.goto(f"{address}/loss_lab?on=circle&loss=nt_xent")
    margin, more = page.get_by_role("checkbox", name="m, margin for false negatives"), page.locator(".further-all")
    more.wait_for()
    assert margin.count() == 0  # a hidden control has no role
    more.click()
    margin.check()
    more.click()
    assert margin.is_checked()  # what is on stays in sight
    visit(page, f"{address}{LAB}&on=matrix")
    above = page.get_by_role("radio", name="Matrix").or_(page.get_by_role("button", name="Matrix", exact=True)).first
    assert page.locator(".below [data-key=weight]").evaluate(LOOK) == above.evaluate(LOOK)
