"""Ten wrong labels are planted, found, decided on by keys and by touch, and trained without."""

import csv
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE, SLOW, settled_box

from contrastive_core.base import json_files
from contrastive_core.base.storage import ROOT, SHIPPED
from contrastive_core.data import datasets, overrides

FLIPS, LOOKED_AT, FOUND = 10, 15, 8


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A home of runs with one of digits that was trained with ten wrong labels; and their ids."""
    home = tmp_path_factory.mktemp("planted")
    digits, rng = datasets.load("digits", "train"), np.random.default_rng(0)
    rows = rng.choice(len(digits), FLIPS, replace=False)
    wrong = (digits.labels[rows] + rng.integers(1, 10, FLIPS)) % 10
    names = [digits.ids[i] for i in rows]
    with (home / "flips.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "label"])
        table.writerows(zip(names, (digits.classes[c] for c in wrong), strict=True))
    run = home / "runs" / "planted"
    shutil.copytree(SHIPPED / "simclr-digits", run)
    manifest = json_files.read_json(run / "run.json")
    manifest["name"] = "planted"
    manifest["config"]["relabel"] = str(home / "flips.csv")
    json_files.write_json(run / "run.json", manifest)
    return home / "runs", set(names)


@pytest.fixture(scope="module")
def app(serve: Callable[..., str], planted: tuple[Path, set[str]]) -> str:
    return serve(
        ROOT / "app.py",
        environment={"CONTRASTIVE_LAB_RUNS": str(planted[0]), "CONTRASTIVE_LAB_HOME": str(planted[0].parent / "home")},
    )


def decided(home: Path, split: str = "train") -> list[dict[str, Any]]:
    """The lines of what was decided on the digits of a split, in order."""
    return json_files.read_lines(home / "decisions" / "digits" / f"{split}.jsonl")


def until(page: Any, done: Callable[[], bool]) -> None:
    """Until the server has done what it was told."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def test_the_suspect_is_the_largest_picture_with_evidence_for_both_classes(app: str, page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{app}/samples?run=planted&split=train")
    bench = page.locator(".bench")
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    box = bench.locator(".suspect canvas").bounding_box()
    assert (round(box["width"]), round(box["height"])) == (496, 496)
    given, other = (bench.locator(f".class{kind} strong").inner_text() for kind in (":not(.other)", ".other"))
    titles = bench.locator(".near h3").all_inner_texts()
    assert [title.split(" labeled ")[1] for title in titles[:2]] == [other, given]
    assert bench.locator(".whats .first").inner_text().startswith(f"→ {other}")
    assert not bench.locator(".ways").is_visible()  # keys and the film do it
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= innerWidth")


def test_planted_flips_are_found_decided_on_by_keys_and_trained_without(
    app: str, page: Any, planted: tuple[Path, set[str]]
) -> None:
    runs_home, flips = planted
    home = runs_home.parent / "home"
    before = len(decided(home))  # of a first try, where this is the second
    fresh = f"planted-cleaned-{1 + len(list(runs_home.glob('planted-cleaned-*')))}"
    page.goto(f"{app}/samples?run=planted&split=train&every=yes")
    bench = page.locator(".bench")
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    found: list[str] = []
    first = int(bench.locator("h2").inner_text().split(" ")[0])  # 1; of a second try the first that is undecided
    for place in range(first, LOOKED_AT + first):  # no waiting for the server between two presses
        assert bench.locator("h2").inner_text().startswith(f"{place} of ")
        sample = bench.locator(".name").inner_text()
        assert sample not in found
        found.append(sample)
        page.keyboard.press("d" if sample in flips else "ArrowRight")
    assert len(flips & set(found)) >= FOUND
    dropped = flips & set(found)
    page.get_by_text(f"{len(dropped)} of 1,437 decided").wait_for(timeout=SLOW)
    until(page, lambda: len(decided(home)) >= before + len(dropped))
    assert [line["id"] for line in decided(home)[before:]] == [i for i in found if i in flips]

    page.get_by_role("button", name="Save labels").click()
    page.get_by_text(f"0 kept, 0 relabeled, {len(dropped)} dropped").wait_for(timeout=SLOW)
    page.get_by_label("Epochs").fill("1")
    page.get_by_label("Epochs").press("Enter")
    page.get_by_role("button", name=f"Retrain with {len(dropped)} change").click()
    page.get_by_text(re.compile(f"{fresh}: done")).wait_for(timeout=2 * SLOW)
    config = json.loads((runs_home / fresh / "run.json").read_text())["config"]
    assert set(overrides.read_ids(config["exclude"])) == dropped
    assert set(overrides.read_labels(config["relabel"])) == flips - dropped
    assert config["epochs"] == 1

    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="Compare").wait_for(timeout=SLOW)
    verdict = page.get_by_role("heading", name=re.compile("wins by|no significant difference", re.I))
    verdict.wait_for(timeout=2 * SLOW)
    assert page.locator("[data-testid=stException]").count() == 0


def test_three_quick_presses_are_three_decisions_and_undo_takes_back_the_last(
    app: str, page: Any, planted: tuple[Path, set[str]]
) -> None:
    home = planted[0].parent / "home"
    before = len(decided(home))
    page.goto(f"{app}/samples?run=planted&split=train&list=outlier")
    bench = page.locator(".bench")
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    ids, first = [], int(bench.locator("h2").inner_text().split(" ")[0])  # that is undecided
    for key in ("k", "7", "d"):
        ids.append(bench.locator(".name").inner_text())
        page.locator("body").press(key)
    assert bench.locator("h2").inner_text().startswith(f"{first + 3} of ")  # at once
    assert bench.locator(".film kbd").all_inner_texts()[first - 1 : first + 2] == ["K", "R", "D"]
    until(page, lambda: len(decided(home)) >= before + 3)
    lines = decided(home)[before:]
    assert [(line["id"], line["what"]) for line in lines] == [(ids[0], "keep"), (ids[1], "relabel"), (ids[2], "drop")]
    assert lines[1]["label"] == "7"
    page.keyboard.press("u")
    assert bench.locator(".name").inner_text() == ids[2]
    assert bench.locator(".status").inner_text() == "Undone (1): dropped. Now: undecided"
    until(page, lambda: len(decided(home)) == before + 4)
    assert decided(home)[-1]["undo"] == lines[2]["event"]
    page.keyboard.press("ArrowLeft")
    assert bench.locator(".status").inner_text() == "relabeled as 7"
    page.reload()
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    page.get_by_text(" decided", exact=False).first.wait_for(timeout=SLOW)
    picker = page.locator(".st-key-toolbar input[role=combobox]").first
    picker.focus()
    page.keyboard.press("7")  # what a field is given decides nothing
    page.keyboard.press("Escape")
    until(page, lambda: page.evaluate("document.activeElement === document.body"))
    bench.locator(".film button").nth(first - 1).click()
    before = len(decided(home))
    page.keyboard.press("d")  # on a decided sample the first press asks
    bench.get_by_text("Already decided: kept. Press again to change it: dropped").wait_for()
    assert bench.locator(".name").inner_text() == ids[0]
    page.keyboard.press("d")
    until(page, lambda: len(decided(home)) == before + 1)
    assert (decided(home)[-1]["id"], decided(home)[-1]["what"]) == (ids[0], "drop")


def test_a_grid_of_thirty_decides_on_one_or_on_a_selection_with_one_undo(
    app: str, page: Any, planted: tuple[Path, set[str]]
) -> None:
    home = planted[0].parent / "home"
    page.goto(f"{app}/samples?run=planted&split=train&list=outlier")
    bench = page.locator(".bench")
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    page.keyboard.press("g")
    frames = bench.locator(".film button:visible")
    assert frames.count() == 30
    before = len(decided(home))
    frames.nth(20).click()
    page.keyboard.press("Shift+ArrowRight")
    bench.get_by_text("2 selected").wait_for()
    frames.nth(25).click(modifiers=["Control"])
    bench.get_by_text("3 selected").wait_for()
    page.keyboard.press("d")
    until(page, lambda: len(decided(home)) == before + 3)
    assert len({line["event"] for line in decided(home)[before:]}) == 1
    assert bench.locator("h2").inner_text() == "27 of 1,437"
    page.keyboard.press("u")
    bench.get_by_text("Undone (3): dropped. Now: undecided").wait_for()
    until(page, lambda: len(decided(home)) == before + 4)
    page.keyboard.press("PageDown")
    assert bench.locator("h2").inner_text() == "51 of 1,437"
    assert frames.count() == 30
    page.keyboard.press("g")
    assert bench.locator(".suspect canvas").is_visible()


def test_a_reload_opens_on_the_sample_at_hand_before_the_address_names_it(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run=planted&split=train&list=outlier")
    bench = page.locator(".bench")
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    place, sample = bench.locator("h2").inner_text(), bench.locator(".name").inner_text()
    assert sample not in page.url
    page.reload()
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    assert (bench.locator("h2").inner_text(), bench.locator(".name").inner_text()) == (place, sample)
    until(page, lambda: sample.replace("/", "%2F") in page.url)


def test_no_decision_is_passed_while_the_server_does_not_answer(
    app: str, page: Any, planted: tuple[Path, set[str]]
) -> None:
    home, sockets = planted[0].parent / "home", []

    def connect(socket: Any) -> None:
        sockets.append(socket)
        socket.connect_to_server()

    page.route_web_socket(re.compile("_stcore/stream"), connect)
    page.goto(f"{app}/samples?run=planted&split=train&list=outlier")
    bench = page.locator(".bench")
    bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
    before, first = len(decided(home)), bench.locator(".name").inner_text()
    page.route("**/_stcore/**", lambda route: route.abort())
    sockets[-1].close()
    for _ in range(3):
        page.locator("body").press("k")
    bench.get_by_text("The app does not answer: start it again. Decisions not saved yet: 3").wait_for(timeout=SLOW)
    page.locator("body").press("k")
    assert bench.locator(".name").inner_text() == first
    page.get_by_text("The app's own server does not answer.").wait_for(timeout=SLOW)
    page.unroute("**/_stcore/**")
    until(page, lambda: len(decided(home)) == before + 3)


def test_the_film_leads_to_any_sample_of_the_queue_and_a_key_shows_all_keys(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run=planted&split=train&list=outlier")
    bench = page.locator(".bench")
    bench.locator(".film canvas").nth(5).wait_for(timeout=2 * SLOW)
    bench.locator(".film button").nth(5).click()
    assert bench.locator("h2").inner_text() == "6 of 1,437"
    frame = bench.locator(".film button[aria-current=true]")
    assert frame.get_attribute("aria-label") == f"6. {bench.locator('.name').inner_text()}"
    page.keyboard.press("ArrowRight")
    assert bench.locator("h2").inner_text() == "7 of 1,437"
    page.keyboard.press("?")
    keys = bench.get_by_role("dialog", name="All keys")
    assert keys.locator("kbd").all_inner_texts() == ["K", "R", "D", "0 – 9", "← →", "U", "G", "A", "⇧ ← →", "?"]
    page.keyboard.press("k")  # closes the keys, and decides nothing
    keys.wait_for(state="hidden")
    assert bench.locator("h2").inner_text() == "7 of 1,437"


def test_a_phone_shows_pictures_and_buttons_together_and_decides_by_touch(
    app: str, browser: Any, planted: tuple[Path, set[str]]
) -> None:
    home = planted[0].parent / "home"
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    context.set_default_timeout(SLOW)
    page = context.new_page()
    bench = page.locator(".bench")
    for name in ("mislabeled", "outlier"):  # with a histogram and without
        page.goto(f"{app}/samples?run=planted&split=train&list={name}")
        bench.locator(".near figure").first.wait_for(timeout=2 * SLOW)
        page.wait_for_timeout(500)
        boxes = [bench.locator(part).bounding_box() for part in (".suspect", ".near", ".whats")]
        assert all(b["y"] >= 0 and b["y"] + b["height"] <= 844 for b in boxes), boxes
        assert all(b["x"] >= 0 and b["x"] + b["width"] <= 390 for b in boxes)
    before, ids = len(decided(home)), []
    for name in ("Keep", "Drop", "Keep"):
        ids.append(bench.locator(".name").inner_text())
        bench.get_by_role("button", name=name).tap()
    until(page, lambda: len(decided(home)) >= before + 3)
    assert [line["id"] for line in decided(home)[before:]] == ids
    context.close()


def test_no_press_is_lost_on_the_cut_off(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run=planted&split=train")
    slider = page.get_by_role("slider", name="Cut-off")
    slider.wait_for(timeout=2 * SLOW)
    for presses, pause in ((25, 80), (50, 0), (7, 400)):  # the last: an answer comes between
        slider.press("Home")
        for _ in range(presses):
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(pause)
        assert int(slider.input_value()) == presses
        page.wait_for_url(re.compile(rf"cut={presses / 50:g}(\.0)?(&|$)"), timeout=SLOW)
        assert int(slider.input_value()) == presses


def test_the_cut_off_is_moved_on_its_histogram(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run=planted&split=train")
    place = page.locator(".bench h2")
    place.wait_for(timeout=2 * SLOW)
    slider, seen = page.get_by_role("slider", name="Cut-off"), set()
    for press in ("Home", "PageUp", "End"):
        slider.press(press)
        count = page.locator(".cutoff .count").inner_text()
        seen.add(count)
        number = int(count.split(" ")[0].replace(",", ""))
        place.filter(has_text=re.compile(rf" of {number or 1437:,}$")).wait_for(timeout=SLOW)
    assert len(seen) == 3
    box = settled_box(page, page.locator(".cutoff .field"))
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
    page.locator(".cutoff .count").filter(has_text=re.compile(r"suspicion > 0\.2[2-8]\b")).wait_for(timeout=SLOW)
    page.wait_for_url(re.compile(r"cut=0\.2"), timeout=SLOW)


def test_a_sample_has_an_address_and_its_loss_answers_the_knob(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run=planted&split=train&sample=digits%2F0003&view=Why+this+loss&list=loss")
    effective = page.locator(".lab .effective")
    effective.wait_for(timeout=2 * SLOW)
    page.get_by_text(re.compile("digits/0003 · loss [\\d.]+, rank \\d+")).wait_for(timeout=SLOW)
    before = effective.inner_text()
    slider = page.locator(".lab input[type=range]")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("PageDown")
    effective.filter(has_not_text=re.compile(f"^{re.escape(before)}$")).wait_for(timeout=SLOW)
    assert float(effective.inner_text().split(" of ")[0]) < float(before.split(" of ")[0])  # a lower τ
    page.get_by_role("button", name="as trained").click()
    effective.filter(has_text=re.compile(f"^{re.escape(before)}$")).wait_for(timeout=SLOW)
