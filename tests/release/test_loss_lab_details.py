"""The Loss Lab in the app: odd addresses, files, queues and banks, matrices of dimensions."""

import csv
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab_page import LAB, drawn, visit
from patience import SLOW
from PIL import Image

from contrastive_core.base.storage import ROOT


@pytest.fixture
def address(filled_app: str) -> str:
    return filled_app


def test_an_address_of_nonsense_opens_the_page_as_at_first(page: Any, address: str) -> None:
    bad = "&loss=x&pairing=1&rows=2&batch=z&temperature=nan&anchor=9e9&denominator=5&view=a&panel=b"
    visit(page, f"{address}{LAB.replace('32', '65')}{bad}")
    assert page.locator("[data-testid=stException]").count() == 0
    assert "NaN" not in page.locator(".lab").inner_text()
    assert "loss=nt_xent" in page.url


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
    before = page.url  # which names the last file, if another test opened one
    page.get_by_role("button", name="Look at it").click(timeout=SLOW)
    page.wait_for_url(lambda url: url != before and "file=" in url, timeout=SLOW)
    drawn(page)
    figures = page.locator(".figures").inner_text()
    visit(page, page.url)
    assert page.locator(".figures").inner_text() == figures
    assert "(class " in figures


def test_a_queue_and_a_bank_stand_beside_the_queries(page: Any, address: str) -> None:
    for run, told in (("moco_v1", "48 of 512 keys"), ("inst_disc", "64 of 1,437 slots")):
        visit(page, f"{address}/loss_lab?run={run}-digits&on=matrix")
        page.get_by_text(told).wait_for()
        assert "16 anchors by 64 candidates" in page.locator(".matrix").get_attribute("aria-label")
        if run == "moco_v1":  # keys of other images in the batch
            page.locator("button[data-key=mask]").click()
            page.locator(".legend").get_by_text("not compared").wait_for()
    visit(page, f"{address}/loss_lab?run=simclr-shapes&rows=snapshot:24&pairing=classes&on=matrix&second=same")
    page.locator(".panel select").select_option("rows:snapshot:1")
    page.locator(".panel tr", has_text="now, τ").wait_for()


@pytest.mark.parametrize(
    ("loss", "kind", "rows"), [("vicreg", "covariance", 2 * 256**2), ("barlow_twins", "correlation", 256**2)]
)
def test_matrices_of_dimensions_are_saved_as_the_page_shows_them(
    page: Any, address: str, loss: str, kind: str, rows: int
) -> None:
    page.goto(f"{address}/loss_lab?run=vicreg-shapes&size=32&loss={loss}")
    page.get_by_role("rowheader", name="Loss of the batch", exact=True).wait_for(timeout=SLOW)
    page.get_by_role("button", name="Export").click()
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
    heading = page.get_by_role("heading", name="Loss Lab")
    heading.evaluate("e => { e.tabIndex = -1; e.focus(); }")  # from where Tab goes on
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
    knob = page.locator(".knob.aloft").bounding_box()
    assert (knob["y"] >= 48, knob["y"] + knob["height"] <= 96) == (True, True)  # in the toolbar of the page
