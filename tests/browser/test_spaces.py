"""Explore and Compare with planted data: equal runs, a better one, its samples, 50,000 points."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW, repainted
from test_scatter import FIND as MAP

from contrastive_core.data import datasets
from contrastive_core.engine import answers, results
from contrastive_core.evaluation import evaluate
from contrastive_core.paths import ROOT
from contrastive_core.records import embedding_ref, loaded_vectors, runs
from contrastive_core.records.embedding_ref import cached, path_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import Evaluation, write_evaluation
from contrastive_core.storage import atomic, json_files

WRONG = 36  # of 360 test images, in the run that is planted as the worse: 10 points
POINTS = 50_000


@dataclass(frozen=True)
class Planted:
    address: str
    wrong: tuple[str, ...]  # ids of the images that the worse run gets wrong
    big: str  # key of the 50,000 vectors


@pytest.fixture(scope="module")
def planted(serve: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Planted:
    home = tmp_path_factory.mktemp("planted")
    homes = {"CONTRASTIVE_LAB_HOME": f"{home}/home", "CONTRASTIVE_LAB_RUNS": f"{home}/runs"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in homes.items():
            patch.setenv(name, value)
        wrong = plant_runs()
        big = plant_points()
    return Planted(serve(ROOT / "app.py", environment=homes), wrong, big)


def plant_runs() -> tuple[str, ...]:
    """Runs good, same and worse on digits: `worse` has WRONG test images among another class."""
    sets = {split: datasets.load("digits", split) for split in ("train", "test")}
    moved = np.random.default_rng(1).permutation(len(sets["test"].labels))[:WRONG]
    for name in ("good", "same", "worse"):
        run = runs.create(name, runs.load("simclr-digits").config)
        run.set_status("done")
        atomic.write_bytes(run.weights, name.encode())
        for split, found in sets.items():
            labels = np.asarray(found.labels, np.int64)
            where = labels.copy()
            if name == "worse" and split == "test":
                where[moved] = (where[moved] + 1) % 10
            x = np.eye(10, 12)[where] + 0.05 * np.random.default_rng(0).normal(size=(len(labels), 12))
            for which in "hz":
                rows = EmbeddingSet(x.astype(np.float32), labels, tuple(found.ids), split, which, tuple(found.classes))
                path = path_of(run, split, which)
                path.parent.mkdir(parents=True, exist_ok=True)
                json_files.write_npz(path, **rows.arrays())
        plant_pages(run)
    return tuple(sorted(str(sets["test"].ids[i]) for i in moved))


def plant_pages(run: runs.Run) -> None:
    """What the pages wait for: scores and maps."""
    sets = {w: cached(run, "test", w) for w in "hz"}
    train = cached(run, "train", "h")
    assert train is not None
    scores = evaluate.evaluate_sets(["knn", "uniformity", "rankme"], train, sets["h"])
    both = {"h": scores, "z": scores}
    write_evaluation(run, Evaluation(run.name, "test", run.weights_hash(), both, 0, len(train)))
    for which, rows in sets.items():
        for kind in ("pca", "umap"):
            made = results.Result({"settings": {"kind": kind}, "quality": {}}, {"xy": rows.features[:, :2]})
            values = {"space": embedding_ref.of_run(run, "test", which).values, "kind": kind}
            results.write("map", answers.with_defaults(values), made)


def plant_points() -> str:
    """50,000 vectors with pictures whose map and scores are there already."""
    rng = np.random.default_rng(0)
    labels = np.arange(POINTS) % 5
    xy = np.eye(5, 4)[labels] * 6 + rng.normal(size=(POINTS, 4))
    pictures = np.broadcast_to((labels * 50).astype(np.uint8)[:, None, None, None], (POINTS, 1, 4, 4))
    rows = EmbeddingSet(xy.astype(np.float32), labels.astype(np.int64))
    key = loaded_vectors.save_vectors(rows, "many.npz", np.array(pictures))
    space = {"space": embedding_ref.of_vectors(key).values}
    score = {"title": "RankMe", "reading": "planted", "value": 4.0, "unit": "", "extras": {}}
    scores = {"scores": {"own": {"rankme": score}}, "how": "", "n": POINTS}
    results.write("scores", space, results.Result(scores))
    umap = {"kind": "umap", "seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine"}
    made = results.Result({"settings": umap, "quality": {}}, {"xy": rows.features[:, :2]})
    results.write("map", {**space, **umap}, made)
    return key


def test_identical_runs_give_no_difference(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/compare?runs=good,same")
    said = "These two runs show no significant difference in kNN accuracy: "
    page.get_by_role("heading", name=said).wait_for(timeout=SLOW)
    page.get_by_text("How alike", exact=True).click()
    page.get_by_text("Linear CKA (debiased)").wait_for(timeout=SLOW)


def test_the_better_run_is_named_with_an_interval_that_holds_the_truth_and_its_images(
    planted: Planted, page: Any
) -> None:
    page.goto(f"{planted.address}/compare?run=good&runs=good,worse")
    heading = page.get_by_role("heading", name="good is better than worse")
    heading.wait_for(timeout=SLOW)
    found = [float(v) for v in re.findall(r"-?\d+\.\d", heading.inner_text())]
    value, low, high = found
    assert value == 10.0 == 100 * WRONG / 360
    assert 0 < low < 10 < high < 20
    page.get_by_text("Where they disagree", exact=True).click()
    page.get_by_text(f"{WRONG} of 360 samples").wait_for(timeout=SLOW)
    listed = page.locator(".gallery button")
    listed.nth(WRONG - 1).wait_for(timeout=SLOW)
    ids = sorted(text.split()[-1] for text in listed.all_inner_texts())
    assert tuple(ids) == planted.wrong
    # By key: below a gallery that has just come, a click may miss what moves.
    page.get_by_role("button", name="Select all of these on the maps").press("Enter")
    page.get_by_text(f"{WRONG} selected, on all pages").wait_for(timeout=SLOW)
    page.get_by_text("Maps", exact=True).click()
    page.get_by_text(f"{WRONG} of 360 selected").wait_for(timeout=SLOW)
    page.get_by_role("link", name="Explore").click()  # and it is the selection of every page
    page.get_by_role("heading", name=f"{WRONG} selected").wait_for(timeout=SLOW)


def test_a_slider_moves_every_map_onto_the_first(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/compare?runs=worse,good")
    canvas = page.locator(".map .stage canvas").first
    canvas.wait_for(timeout=SLOW)
    page.get_by_text("360 points").wait_for(timeout=SLOW)
    before = canvas.screenshot()
    slider = page.get_by_label("from the maps as they are to all as worse")
    slider.focus()
    slider.press("End")
    for _ in range(SLOW // 100):
        if canvas.screenshot() != before:
            return
        page.wait_for_timeout(100)
    pytest.fail("the map did not move")


def test_umap_maps_stand_side_by_side(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/compare?runs=worse,good&map=umap")
    page.get_by_label(re.compile("^UMAP maps side by side")).wait_for(timeout=SLOW)


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
    page.get_by_role("heading", name=planted.wrong[0]).wait_for(timeout=SLOW)
    page.get_by_text("PCA", exact=True).click()
    page.get_by_label(re.compile("^PCA map of the rows of good")).wait_for(timeout=SLOW)
    page.get_by_text("1 of 360 selected").wait_for(timeout=SLOW)
    with page.expect_download(timeout=SLOW) as download:
        page.get_by_role("button", name="PNG", exact=True).click()
    assert download.value.suggested_filename == "pca-good-h-test.png"


def test_vectors_are_opened_scored_and_bad_ones_get_a_sentence(planted: Planted, page: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = ["id,class,note,a,b,c"]
    for i in range(90):
        values = np.eye(3)[i % 3] + 0.1 * rng.normal(size=3)
        numbers = ",".join(f"{v:.4f}" for v in values) if i else "nan,1,1"
        lines.append(f"row{i},{'xyz'[i % 3]},text {i},{numbers}")
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    (tmp_path / "bad.csv").write_text("id,class\n1,a\n2,b\n")
    page.goto(f"{planted.address}/?run=good")
    page.get_by_role("button", name="Open my embeddings").click()
    files = page.locator("input[type=file]").first  # the second is for labels
    files.set_input_files(tmp_path / "bad.csv")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_text("no columns of numbers").wait_for(timeout=SLOW)
    path = page.get_by_label("its path on this computer")
    path.fill("/nowhere/x.npy")
    path.press("Enter")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_text("There is no file /nowhere/x.npy").wait_for(timeout=SLOW)
    path.fill("")
    path.press("Enter")
    with page.expect_response(lambda r: "upload_file" in r.url, timeout=SLOW):  # it has arrived
        files.set_input_files(tmp_path / "mine.csv")
    page.get_by_text("mine.csv").first.wait_for(timeout=SLOW)
    page.wait_for_timeout(500)  # and the page has told the server
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("heading", name="mine.csv").wait_for(timeout=SLOW)
    page.get_by_text("1 with values that are not finite").wait_for(timeout=SLOW)
    page.get_by_text("89 points").wait_for(timeout=SLOW)
    page.get_by_text("kNN accuracy").first.wait_for(timeout=2 * SLOW)
    page.get_by_text("a fixed fifth of each class is judged").wait_for(timeout=SLOW)


def test_map_scores_and_selection_stand_on_the_first_screen(planted: Planted, page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{planted.address}/explore?run=good")
    page.get_by_text("360 points").wait_for(timeout=SLOW)
    page.wait_for_function(f"() => ({MAP})()?.laidOut", timeout=SLOW)
    rows, at = page.evaluate(f"() => {{ const l = ({MAP})().laidOut; return [l.rows, [...l.at]]; }}")
    assert len(rows) == 40
    box = page.locator(".map .stage").bounding_box()
    assert box["y"] + box["height"] <= 900
    strip = page.locator(".scores").bounding_box()
    assert strip["x"] > box["x"] + box["width"]
    shown = [k for k in range(40) if at[2 * k] is not None]
    page.mouse.click(box["x"] + at[2 * shown[0]], box["y"] + at[2 * shown[0] + 1])
    page.get_by_text("1 of 360 selected").wait_for(timeout=SLOW)  # an image is its point
    near = page.locator('.gallery:not([aria-label="images in view"]) button').nth(11)
    near.wait_for(timeout=SLOW)
    side = near.bounding_box()
    assert side["x"] > box["x"] + box["width"]
    assert side["y"] + side["height"] <= 900
    summary = page.locator(".scores summary").first
    summary.focus()
    page.keyboard.press("Enter")  # each score opens to how it is read
    page.get_by_text("Share of test samples that the most similar").wait_for(timeout=SLOW)


def test_images_leave_the_map_when_it_is_zoomed(planted: Planted, page: Any) -> None:
    page.goto(f"{planted.address}/explore?run=good")
    page.wait_for_function(f"() => ({MAP})()?.laidOut", timeout=SLOW)
    over = page.locator(".map canvas.over")
    painted = """c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data
      .some((v) => v > 0)"""
    assert over.evaluate(painted)
    page.locator(".map .stage canvas").first.focus()
    for _ in range(3):
        page.keyboard.press("+")
    repainted(page)
    assert not over.evaluate(painted)
    page.get_by_role("button", name="whole map").click()
    repainted(page)
    assert over.evaluate(painted)
    page.get_by_role("button", name="images", exact=True).click()
    repainted(page)
    assert not over.evaluate(painted)
