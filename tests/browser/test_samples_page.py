"""Ten wrong labels are planted, found, marked from the keyboard, and trained without."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW

from contrastive_core.data import datasets, overrides
from contrastive_core.paths import ROOT, SHIPPED
from contrastive_core.storage import records

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
    manifest = records.read_json(run / "run.json")
    manifest["name"] = "planted"
    manifest["config"]["relabel"] = str(home / "flips.csv")
    records.write_json(run / "run.json", manifest)
    return home / "runs", set(names)


@pytest.fixture(scope="module")
def app(serve: Callable[..., str], planted: tuple[Path, set[str]]) -> str:
    return serve(ROOT / "app.py", environment={"CONTRASTIVE_LAB_RUNS": str(planted[0])})


def next_sample(page: Any, seen: list[str]) -> str:
    """The sample at hand, once it is another than those before; its caption follows its heading."""
    caption = page.get_by_text(re.compile(r"digits/\d+ · labeled"))
    if seen:
        caption = caption.filter(has_not_text=re.compile("|".join(seen)))
    caption.wait_for(timeout=SLOW)
    return str(re.search(r"(digits/\d+) · labeled", caption.inner_text())[1])


def test_planted_flips_are_found_marked_and_trained_without(
    app: str, page: Any, planted: tuple[Path, set[str]]
) -> None:
    home, flips = planted
    page.goto(f"{app}/samples?run=planted")
    page.get_by_role("group", name="samples of the list").wait_for(timeout=2 * SLOW)
    found = []
    for place in range(1, LOOKED_AT + 1):
        page.get_by_role("heading", name=re.compile(rf"^{place} of \d+")).wait_for(timeout=SLOW)
        sample = next_sample(page, found)
        found.append(sample)
        page.keyboard.press("2" if sample in flips else "j")
    assert len(flips & set(found)) >= FOUND
    dropped = flips & set(found)
    page.get_by_text(f"0 keep, 0 relabel, {len(dropped)} drop").wait_for(timeout=SLOW)

    page.get_by_label("Epochs").fill("2")
    page.get_by_label("Epochs").press("Enter")
    page.get_by_role("button", name=f"Retrain with {len(dropped)} change").click()
    page.get_by_text(re.compile("planted-cleaned-1: done")).wait_for(timeout=2 * SLOW)
    config = json.loads((home / "planted-cleaned-1" / "run.json").read_text())["config"]
    assert set(overrides.read_ids(config["exclude"])) == dropped
    assert set(overrides.read_labels(config["relabel"])) == flips - dropped
    assert config["epochs"] == 2

    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="Compare").wait_for(timeout=SLOW)
    verdict = page.get_by_role("heading", name=re.compile("planted.*points|no difference", re.I))
    verdict.wait_for(timeout=2 * SLOW)
    assert page.locator("[data-testid=stException]").count() == 0


def test_a_sample_has_an_address_and_its_loss_answers_the_knob(app: str, page: Any) -> None:
    page.goto(f"{app}/samples?run=planted&sample=digits%2F0003&view=Why+this+loss&list=loss")
    rank = page.locator(".lab .rank")
    rank.wait_for(timeout=2 * SLOW)
    page.get_by_text(re.compile("digits/0003 · rank")).wait_for(timeout=SLOW)
    told = re.search(r"loss [\d.]+, rank (\d+)", page.locator("body").inner_text())
    assert abs(int(rank.inner_text().split(" of ")[0]) - int(told[1])) <= 1  # float32 in between
    seen = [rank.inner_text(), page.locator(".lab .effective").inner_text()]
    slider = page.locator(".lab input[type=range]")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("PageDown")
    parts = (rank, page.locator(".lab .effective"))
    for part, before in zip(parts, seen, strict=True):
        part.filter(has_not_text=re.compile(f"^{re.escape(before)}$")).wait_for(timeout=SLOW)
    now = [part.inner_text() for part in parts]
    effective = [float(text.split(" of ")[0]) for text in (seen[1], now[1])]
    assert effective[1] < effective[0]  # a lower τ: fewer negatives matter
    page.get_by_role("button", name="as trained").click()
    rank.filter(has_text=re.compile(f"^{re.escape(seen[0])}$")).wait_for(timeout=SLOW)
