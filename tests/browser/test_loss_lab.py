"""The Loss Lab in the app: whatever is chosen stands in the address and comes back from it."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW, repainted
from PIL import Image

from contrastive_core.paths import ROOT

LAB = "/loss_lab?run=simclr-digits&on=batch&size=32"


@pytest.fixture
def address(shared_app: str) -> str:
    return shared_app


def visit(page: Any, url: str) -> None:
    page.goto(url)
    drawn(page)


def drawn(page: Any) -> None:
    """Until the page shows figures, which stand there before they have numbers."""
    page.locator(".matrix:visible").wait_for(timeout=SLOW)
    page.locator(".figures .loss").get_by_text(re.compile(r"\d")).wait_for()
    page.wait_for_timeout(300)


def pressed(page: Any) -> list[str]:
    return page.locator(".lab button[aria-pressed=true]").evaluate_all(
        "all => all.map(b => b.dataset.key ?? b.textContent)"
    )


def test_a_view_can_be_bookmarked(page: Any, address: str) -> None:
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=classes&form=in&temperature=0.3&anchor=0")
    for name in ("Gradient", "mark positives and negatives", "Two settings"):
        page.get_by_role("button", name=name, exact=True).click()
    page.locator(".panel select").select_option("loss:triplet")
    page.wait_for_url(re.compile(r"second=loss%3Atriplet|second=loss:triplet"))
    page.locator(".matrix").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile(r"anchor=1"))
    figures, url = page.locator(".figures").inner_text(), page.url
    for part in ("form=in", "temperature=0.3", "view=grad", "masks=yes", "panel=two"):
        assert part in url
    visit(page, url)
    page.locator(".panel table").wait_for()
    assert page.locator(".figures").inner_text() == figures
    assert pressed(page) == ["grad", "mark positives and negatives", "group", "two"]
    assert page.locator(".panel select").input_value() == "loss:triplet"
    assert "ε 0.2" in page.locator(".panel table").inner_text()
    page.get_by_role("link", name="Methods").click()
    page.get_by_role("heading", name="Methods").wait_for()
    page.get_by_role("link", name="Loss Lab").click()
    page.locator(".matrix:visible").wait_for()
    page.wait_for_url(re.compile(r"temperature=0.3.*panel=two"))
    assert pressed(page) == ["grad", "mark positives and negatives", "group", "two"]


def test_an_address_of_nonsense_opens_the_page_as_at_first(page: Any, address: str) -> None:
    bad = "&loss=x&pairing=1&rows=2&batch=z&temperature=nan&anchor=9e9&denominator=5&view=a&panel=b"
    visit(page, f"{address}{LAB.replace('32', '65')}{bad}")
    assert page.locator("[data-testid=stException]").count() == 0
    assert "NaN" not in page.locator(".lab").inner_text()
    assert "loss=nt_xent" in page.url
    assert "size=64" in page.url


def test_the_uploader_says_the_limit_that_holds(page: Any, address: str) -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    limit = settings["server"]["maxUploadSize"] * 2**20  # bytes
    page.goto(f"{address}{LAB}&loss=sup_con&pairing=classes&rows=file")
    page.get_by_role("button", name="Open my embeddings").click()
    shown = page.get_by_text(re.compile("per file")).first.inner_text()
    number, unit = re.findall(r"([\d.]+) ?([MG]B) per file", shown)[0]
    power = {"MB": 2, "GB": 3}[unit]  # of 1,024 or of 1,000, as this system counts
    assert any(float(number) * base**power == pytest.approx(limit, rel=0.01) for base in (1000, 1024))


def test_vectors_of_a_file_can_be_bookmarked(page: Any, address: str, tmp_path: Path) -> None:
    rng, labels = np.random.default_rng(0), np.arange(60) % 3
    rows = rng.standard_normal((3, 8))[labels] + 0.5 * rng.standard_normal((60, 8))
    np.savez(tmp_path / "mine.npz", features=rows.astype(np.float32), labels=labels)
    page.goto(f"{address}{LAB}&loss=sup_con&pairing=classes&rows=file")
    page.get_by_role("button", name="Open my embeddings").click()
    page.locator("input[type=file]").first.set_input_files(tmp_path / "mine.npz")
    page.get_by_role("button", name="Look at it").click(timeout=SLOW)
    page.wait_for_url(re.compile(r"file=[0-9a-f]{16}"), timeout=SLOW)
    drawn(page)
    figures = page.locator(".figures").inner_text()
    visit(page, page.url)
    assert page.locator(".figures").inner_text() == figures
    assert "(class " in figures


def test_the_circle_comes_back_from_the_address(page: Any, address: str) -> None:
    page.goto(f"{address}/loss_lab?on=circle&loss=triplet&margin=0.7&points=30&groups=3&scatter=2")
    page.get_by_role("button", name="Scatter again").click()
    page.wait_for_url(re.compile(r"scatter=3"))
    for part in ("loss=triplet", "margin=0.7", "points=30", "groups=3", "on=circle"):
        assert part in page.url
    assert page.locator(".knob input[type=number]").first.input_value() == "0.7"


def test_moved_points_and_every_control_of_the_circle_come_back(page: Any, address: str) -> None:
    more = "&margin=0&points=30&groups=3&mining=hard&speed=300"
    page.goto(f"{address}/loss_lab?on=circle&loss=triplet{more}")
    note = page.locator(".hint").first
    note.get_by_text("step 0: loss").wait_for()
    for k in range(1, 4):
        page.get_by_role("button", name="Step", exact=True).click()
        note.get_by_text(f"step {k}: loss").wait_for()
    page.wait_for_url(re.compile(r"at=[A-Za-z0-9_-]{90}"))
    page.get_by_label("step size").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"speed=30[1-9]"))
    url, before = page.url, re.search(r"loss ([\d.]+), (.*)", note.inner_text())
    for part in ("mining=hard", "margin=0", "points=30", "groups=3"):
        assert part in url
    page.goto("about:blank")
    page.goto(url)
    note.get_by_text("step 0: loss").wait_for()
    again = re.search(r"loss ([\d.]+), (.*)", note.inner_text())
    assert before
    assert again
    assert float(again[1]) == pytest.approx(float(before[1]), abs=0.002)
    assert again[2].split(" The")[0] == before[2].split(" The")[0]
    assert page.get_by_label("step size").input_value() == re.search(r"speed=(\d+)", url)[1]


def test_a_queue_and_a_bank_stand_beside_the_queries(page: Any, address: str) -> None:
    for run, told in (("moco_v1", "48 of 512 keys"), ("inst_disc", "64 of 1,437 slots")):
        visit(page, f"{address}/loss_lab?run={run}-digits")
        page.get_by_text(told).wait_for()
        assert "16 anchors by 64 candidates" in page.locator(".matrix").get_attribute("aria-label")
        if run == "moco_v1":  # keys of other images in the batch
            page.locator("button[data-key=mask]").click()
            page.locator(".legend").get_by_text("not compared").wait_for()
    visit(page, f"{address}/loss_lab?run=simclr-shapes&rows=snapshot:24&pairing=classes&panel=two")
    page.locator(".panel select").select_option("rows:snapshot:1")
    page.locator(".panel tr", has_text="first, τ").wait_for()


def test_the_csv_holds_what_the_page_says(page: Any, address: str) -> None:
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=classes&temperature=0.2&anchor=0")
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
    assert f"{loss:.3f}" == shown[0]
    assert float(shown[1].split()[0]) == pytest.approx(sum(effective) / 32, abs=0.5)
    assert float(shown[2]) == pytest.approx(pull, abs=5e-4)


@pytest.mark.parametrize(
    ("loss", "kind", "rows"), [("vicreg", "covariance", 2 * 256**2), ("barlow_twins", "correlation", 256**2)]
)
def test_matrices_of_dimensions_are_saved_as_the_page_shows_them(
    page: Any, address: str, loss: str, kind: str, rows: int
) -> None:
    page.goto(f"{address}/loss_lab?run=vicreg-shapes&on=batch&size=32&loss={loss}")
    page.get_by_role("rowheader", name="Loss of the batch", exact=True).wait_for(timeout=SLOW)
    with page.expect_download(timeout=SLOW) as got:
        page.get_by_role("button", name="CSV", exact=True).click()
    with Path(got.value.path()).open() as file:
        head, *cells = csv.reader(file)
    assert head == ["view", "dimension", "other_dimension", kind, "part_of_loss"]
    assert len(cells) == rows
    parts = sum(float(cell[4]) for cell in cells)
    shown = page.locator("table tr", has=page.get_by_role("rowheader")).evaluate_all(
        "rows => Object.fromEntries(rows.map(r => [r.cells[0].textContent, parseFloat(r.cells[2].textContent)]))"
    )
    of_cells = shown["Loss of the batch"] - shown.get("Invariance", 0)  # which belongs to rows, not to dimensions
    assert parts == pytest.approx(of_cells, rel=5e-3, abs=0.02)
    with page.expect_download() as got:
        page.get_by_role("button", name="PNG", exact=True).click()
    picture = Image.open(got.value.path(), formats=["PNG"])
    assert picture.width > picture.height > 200
    assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 20  # no empty sheet


def test_the_slider_is_at_most_eight_tabs_from_the_top(page: Any, address: str) -> None:
    visit(page, f"{address}{LAB}")
    assert page.title() == "Loss Lab · Contrastive Lab"
    page.get_by_role("heading", name="Loss Lab").click()  # from where Tab goes on
    types = []
    while "range" not in types and len(types) < 8:
        page.keyboard.press("Tab")
        types.append(
            page.evaluate(
                """() => { let a = document.activeElement;
            while (a?.shadowRoot?.activeElement) a = a.shadowRoot.activeElement;
            return a?.type ?? a?.tagName; }"""
            )
        )
    assert types[-1] == "range", types


def test_the_settings_unfold_from_the_line_that_says_them(page: Any, address: str) -> None:
    """One element: closed it says what is chosen, and it stays open while one chooses."""
    visit(page, f"{address}{LAB}&loss=nt_xent&pairing=views")
    line = page.locator("[data-testid=stExpander] summary")
    line.get_by_text("NT-Xent · views of one image · after the head (z) · 2 views of 16").wait_for()
    line.click()
    fields = page.locator("[data-testid=stSelectbox]")
    for name, option, said in (
        ("Positives are", "Images of one class", "NT-Xent · images of one class"),
        ("Vectors from", "Encoder output (h)", "images of one class · encoder output (h)"),
    ):
        fields.filter(has_text=name).get_by_role("combobox").click()
        page.get_by_role("option", name=option).click()
        line.get_by_text(said).wait_for()
        fields.filter(has_text=name).wait_for()  # it is still open


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

    def told(name: str) -> str:
        page.get_by_role("button", name=name, exact=True).click()
        repainted(page)
        return str(page.locator(".panel .hint").inner_text())

    visit(page, f"{address}{LAB}&loss=nt_xent&pairing=views&anchor=0")
    at(0.05)
    assert figure("effective") < 10
    few = int(re.search(r"the hardest 5 get (\d+) %", told("Gradients")).group(1))
    at(1)
    assert figure("effective") > 25
    assert int(re.search(r"the hardest 5 get (\d+) %", told("Gradients")).group(1)) < few / 2
    assert "does not change which negatives matter" in told("Sweep τ")
    told("Two settings")
    page.locator(".panel select").select_option("rows:random")
    page.locator(".panel tr", has_text="first, τ 1").wait_for(timeout=SLOW)
    pulls = page.locator(".panel tr", has_text="Gradient").locator("td").all_inner_texts()
    assert float(pulls[0]) < float(pulls[1])  # an untrained encoder's positives are still to pull
    visit(page, f"{address}{LAB}&loss=pair_contrastive&pairing=classes&normalize=yes&margin=0.5")
    left = int(re.search(r"The (\d+) beyond it are not moved", told("Margin")).group(1))
    assert left > 100
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=classes&panel=two&second=in")
    assert "not the same gradient" in page.locator(".panel .hint").inner_text()
    visit(page, f"{address}{LAB}&loss=sup_con&pairing=views&panel=two&second=in")
    assert "the same weight and the same gradient" in page.locator(".panel .hint").inner_text()
