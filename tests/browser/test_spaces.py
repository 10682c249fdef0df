"""Explore and Compare with planted data: equal runs, a better one, its samples, 50,000 points."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from map_page import FIND as MAP
from patience import SLOW
from PIL import Image
from planted_spaces import POINTS, WRONG, Planted, planted

from contrastive_core.spaces.space import nearest_of

__all__ = ["planted"]


def test_the_better_run_is_named_with_an_interval_that_holds_the_truth_and_its_images(
    planted: Planted, page: Any
) -> None:
    page.goto(f"{planted.address}/compare?run=good&runs=good,worse")
    heading = page.get_by_role("heading", name="● wins by")
    heading.wait_for(timeout=SLOW)
    assert heading.inner_text() == f"● wins by {100 * WRONG / 360:.1f} points"
    below = page.get_by_text("95 % interval over samples, not seeds").first.inner_text()
    low, high = (float(v) for v in re.findall(r"-?\d+\.\d", below))
    assert 0 < low < 10 < high < 20
    page.get_by_role("button", name=f"Look at the {WRONG} disagreements").click()
    page.get_by_text(f"{WRONG} of 360 samples").wait_for(timeout=SLOW)
    listed = page.get_by_role("group", name="Label, predictions of A and B, id").locator("button")
    listed.nth(WRONG - 1).wait_for(timeout=SLOW)
    ids = sorted(text.split()[-1] for text in listed.all_inner_texts())
    assert tuple(ids) == planted.wrong
    # By key: below a gallery that has just come, a click may miss what moves.
    page.get_by_role("button", name="Select all of these on the maps").press("Enter")
    page.get_by_text(f"{WRONG} selected, on all pages").wait_for(timeout=SLOW)
    page.get_by_text("Overview", exact=True).click()
    page.get_by_text(f"{WRONG} of 360 selected").wait_for(timeout=SLOW)
    page.get_by_role("link", name="Explore").click()  # and it is the selection of every page
    page.get_by_role("heading", name=f"{WRONG} selected").wait_for(timeout=SLOW)


def test_an_image_of_the_strip_is_its_point_on_both_maps(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/compare?runs=good,worse&map=pca")
    image = page.locator(".map.line .gallery button").first
    image.wait_for(timeout=SLOW)
    page.wait_for_function(f"() => ({MAP})()?.xy", timeout=SLOW)
    image.hover()
    page.wait_for_function(f"() => ({MAP})().hover >= 0", timeout=SLOW)
    image.click()
    page.get_by_text("1 of 360 selected").wait_for(timeout=SLOW)
    page.get_by_role("button", name="1 selected ✕").click()
    page.get_by_text("PCA of 360 samples").wait_for(timeout=SLOW)


def test_a_box_over_50000_points_reaches_the_gallery(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/?vectors={planted.big}")
    page.get_by_text(f"{POINTS:,} points").first.wait_for(timeout=SLOW)
    page.get_by_role("button", name="box", exact=True).click()
    box = page.locator(".map .stage canvas").first.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=3)
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5, steps=3)
    page.mouse.up()
    page.get_by_role("heading", name=f"{POINTS:,} selected").wait_for(timeout=SLOW)
    page.locator(".map .gallery button").nth(100).wait_for(timeout=SLOW)


def test_a_selection_stays_when_the_map_becomes_another(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/explore?run=good")
    page.get_by_text("360 points").wait_for(timeout=SLOW)
    page.get_by_label("find a sample by id").fill("no such id")
    page.get_by_label("find a sample by id").press("Enter")
    page.get_by_text("no id contains no such id").wait_for(timeout=SLOW)
    page.get_by_label("find a sample by id").fill(planted.wrong[0])
    page.get_by_label("find a sample by id").press("Enter")
    page.get_by_role("button", name=f"{planted.wrong[0]} ✕").wait_for(timeout=SLOW)
    page.get_by_text("PCA", exact=True).click()
    page.get_by_label(re.compile("^PCA map of the rows of good")).wait_for(timeout=SLOW)
    page.get_by_text("1 of 360 selected").wait_for(timeout=SLOW)
    page.get_by_role("button", name="Export").click()
    with page.expect_download(timeout=SLOW) as download:
        page.get_by_role("button", name="PNG", exact=True).click(timeout=SLOW)
    assert download.value.suggested_filename == "pca-good-h-test.png"
    with Image.open(download.value.path(), formats=["PNG"]) as picture:
        assert picture.width > 1000
        assert len(picture.convert("RGB").quantize(64).getcolors() or []) > 10  # points in their colors


def upload(page: Any, path: Path) -> None:
    """Choose a file in the popover; returns once the server has it and the button below can be pressed."""
    with page.expect_response(lambda r: "upload_file" in r.url and r.request.method == "PUT", timeout=SLOW) as got:
        page.locator("input[type=file]").first.set_input_files(path)  # the second is for labels
    assert got.value.ok, got.value.status
    page.get_by_text(path.name).first.wait_for(timeout=SLOW)
    page.locator("button:enabled", has_text="Look at it").wait_for(timeout=SLOW)


def test_vectors_are_opened_scored_and_bad_ones_get_a_sentence(planted: Planted, page: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["id,class,note,a,b,c"]
    for i in range(90):
        values = np.eye(3)[i % 3] + 0.1 * rng.normal(size=3)
        numbers = ",".join(f"{v:.4f}" for v in values) if i else "nan,1,1"
        lines.append(f"row{i},{'xyz'[i % 3]},text {i},{numbers}")
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    (tmp_path / "bad.csv").write_text("id,class\n1,a\n2,b\n")
    page.goto(f"{planted.address}/explore?run=good")
    page.get_by_text("360 points").wait_for(timeout=SLOW)
    page.get_by_role("button", name="Open my embeddings").click()
    upload(page, tmp_path / "bad.csv")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_text("two or more columns of numbers").wait_for(timeout=SLOW)
    path = page.get_by_label("its path on this computer")
    path.fill("/nowhere/x.npy")
    path.press("Enter")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_text("There is no file /nowhere/x.npy").wait_for(timeout=SLOW)
    path.fill("")
    path.press("Enter")
    upload(page, tmp_path / "mine.csv")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("heading", name="mine.csv").wait_for(timeout=SLOW)
    page.get_by_text("1 with values that are not finite").wait_for(timeout=SLOW)
    page.get_by_text("89 points").wait_for(timeout=SLOW)
    # the run's own scores may be computed before these, by the same process
    page.get_by_text("a fixed fifth of each class is held out").wait_for(timeout=2 * SLOW)
    assert page.get_by_text("kNN accuracy").count()


def test_map_scores_and_selection_stand_on_the_first_screen(planted: Planted, page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{planted.address}/explore?run=good")
    page.get_by_text("360 points").wait_for(timeout=SLOW)
    page.wait_for_function(f"() => ({MAP})()?.laidOut", timeout=SLOW)
    rows, at = page.evaluate(f"() => {{ const l = ({MAP})().laidOut; return [l.rows, [...l.at]]; }}")
    assert len(rows) == 40
    box = page.locator(".map .stage").bounding_box()
    assert (box["y"], box["y"] + box["height"]) == (96, 900)
    assert box["width"] * box["height"] > 0.66 * 1440 * 900
    strip = page.locator(".scores").bounding_box()
    assert strip["x"] > box["x"] + box["width"]
    summary = page.locator(".scores summary").first
    summary.focus()
    page.keyboard.press("Enter")  # each score opens to how it is read
    page.get_by_text("Share of test samples that the most similar").wait_for(timeout=SLOW)
    first = next(k for k in range(40) if at[2 * k] is not None)
    page.mouse.click(box["x"] + at[2 * first], box["y"] + at[2 * first + 1])
    page.get_by_text("1 of 360 selected").wait_for(timeout=SLOW)  # an image is its point
    near = page.get_by_role("group", name="nearest samples").get_by_role("button").nth(10)
    near.wait_for(timeout=SLOW)
    side = near.bounding_box()
    assert side["x"] > box["x"] + box["width"]
    assert side["y"] + side["height"] <= 900
    assert page.locator(".map .stage").bounding_box() == box  # the map has not moved
    link = page.get_by_role("link", name="Open in Samples")
    assert f"sample={planted.good.ids[rows[first]].replace('/', '%2F')}" in link.get_attribute("href")


def test_a_clicked_point_is_tied_to_its_nearest_samples(planted: Planted, page: Any) -> None:
    rows = planted.good
    page.goto(f"{planted.address}/explore?run=good")
    page.wait_for_function(f"() => ({MAP})()?.laidOut", timeout=SLOW)
    page.get_by_label("find a sample by id").fill(rows.ids[7])
    page.get_by_label("find a sample by id").press("Enter")
    page.wait_for_function(
        f"() => ({MAP})().laidOut.rows[0] === 7 && ({MAP})().laidOut.rows.length === 12", timeout=SLOW
    )
    shown, lit = page.evaluate(
        f"() => {{ const m = ({MAP})(); return [m.laidOut.rows, [...m.lit.keys()].filter((i) => m.lit[i])]; }}"
    )
    near = nearest_of(rows, 7, 11)[0].tolist()
    assert shown == [7, *near]
    assert lit == sorted(shown)
    page.locator(".map canvas").first.focus()
    page.keyboard.press("Escape")
    page.wait_for_function(f"() => ({MAP})().laidOut.rows.length === 40", timeout=SLOW)
    page.get_by_role("heading", name="Is it a good encoder?").wait_for(timeout=SLOW)
