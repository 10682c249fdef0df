"""Texts of rows in a browser: duels decided on by keys, long texts that unfold, and texts from right to left."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_checks import settled
from patience import SLOW

from contrastive_core.base.storage import ROOT
from contrastive_core.engine import answers
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined
from contrastive_lab import home

LONG = "Rinse the copper kettle. " * 60
QUERIES = ("How to clean a copper kettle?", "איך מנקים קומקום נחושת?", "如何清洗铜水壶？", "كيف أنظف الغلاية")
DOCUMENTS = (LONG, "מנקים קומקום עם מים. " * 40, "清洗铜水壶时用温水和柠檬" * 40, "x" * 400)
MARKED = {"copper", "kettle", "מנקים", "קומקום", "清洗铜水壶"}
# The direction of each text, whether it is wider than its place, its height in lines, and the marked words.
TEXTS = """(texts) => texts.map((p) => {
  const style = getComputedStyle(p);
  return { start: p.textContent.slice(0, 12), direction: style.direction, align: style.textAlign,
    isWide: p.scrollWidth > p.clientWidth + 1 || p.getBoundingClientRect().right > innerWidth,
    lines: p.clientHeight / parseFloat(style.lineHeight),
    marked: [...p.querySelectorAll("mark")].map((mark) => mark.textContent) };
})"""


@pytest.fixture(scope="module")
def app(serve: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of duels between the example's models, of duels between texts, and of their pairs."""
    folder = tmp_path_factory.mktemp("texts")
    homes = {"CONTRASTIVE_LAB_HOME": f"{folder}/home", "CONTRASTIVE_LAB_RUNS": f"{folder}/runs"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in homes.items():
            patch.setenv(name, value)
        runs = home.make_questions()["runs"]
        own = [loaded_vectors.PREFIX + key for key in (texts_by(0, folder), texts_by(1, folder))]
        request = request_of(own[0], "train", pairs=True)
        answers.make("tower_pairs", {"space": request.embedding.values})
    address = serve(ROOT / "app.py", environment=homes)
    return {
        "compare": f"{address}/compare?runs={','.join(own)}",
        "example": f"{address}/compare?runs={runs}&view=Duels",
        "duels": f"{address}/compare?runs={','.join(own)}&view=Duels",
        "samples": f"{address}/samples?on={own[0]}",
        "lab": f"{address}/loss_lab?rows=file&file={own[0].removeprefix(loaded_vectors.PREFIX)}&on=matrix&size=16",
    }


def texts_by(model: int, home: Path) -> str:
    """Queries and documents by a model that finds the first document, or the second, and so on."""
    x = np.eye(len(QUERIES), dtype=np.float32)
    sides = [
        EmbeddingSet(part, columns={"text": np.array(said)})
        for part, said in ((np.roll(x, model, 0), QUERIES), (x, DOCUMENTS))
    ]
    sides[1].columns["negative_of"] = np.array(["1", "2", "3", "0"])
    return loaded_vectors.save_vectors(joined(*sides, ("query", "document")), f"model {model}.npz")


def test_a_duel_is_decided_on_by_keys_and_undone(app: dict[str, str], page: Any) -> None:
    page.goto(app["example"])
    decided, verdict = page.get_by_text(re.compile(r"^\d+ decisions?\. ")), page.get_by_text("95 % CI over")
    page.get_by_text("Still open: judge more queries.").wait_for(timeout=SLOW)
    assert decided.inner_text().startswith("0 decisions.")
    said = []
    for number, key in enumerate(("ArrowLeft", "b", "n", "ArrowRight"), 1):
        settled(page)  # before, no button hears a key
        query = page.locator(".st-key-duel .said p").first.inner_text()
        page.keyboard.press(key)
        page.get_by_text(re.compile(f"^{number} decisions?\\. ")).wait_for(timeout=SLOW)
        page.wait_for_function(
            "(query) => document.querySelector('.st-key-duel .said p')?.textContent !== query", arg=query, timeout=SLOW
        )
        if number > 1:
            said.append(verdict.inner_text())
    assert len({*said}) == len(said)  # the interval changes with each
    settled(page)
    page.keyboard.press("u")
    page.get_by_text(re.compile(r"^3 decisions\. ")).wait_for(timeout=SLOW)
    settled(page)
    assert page.locator(".st-key-duel .said p").first.inner_text() == query
    assert verdict.inner_text() == said[-2]
    page.reload()
    page.get_by_text(re.compile(r"^3 decisions\. ")).wait_for(timeout=SLOW)


def test_arrow_keys_decide_after_a_click_on_the_view(app: dict[str, str], page: Any) -> None:
    page.goto(app["compare"])
    page.get_by_role("radio", name="Duels").click()
    for number, key in enumerate(("ArrowLeft", "ArrowRight"), 1):
        page.locator(".st-key-duel .said p").nth(2).wait_for(timeout=SLOW)
        settled(page)
        page.keyboard.press(key)
        page.get_by_text(re.compile(f"^{number} decisions?\\. ")).wait_for(timeout=SLOW)
    for number in (1, 0):
        settled(page)
        page.keyboard.press("u")
        page.get_by_text(re.compile(f"^{number} decisions?\\. ")).wait_for(timeout=SLOW)


@pytest.mark.parametrize("width", [1280, 390])
def test_texts_have_their_direction_fold_and_are_marked(app: dict[str, str], page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(app["duels"])
    page.get_by_text("Still open: judge more queries.").wait_for(timeout=SLOW)
    found = dict[str, dict[str, Any]]()
    for number in range(len(QUERIES)):
        page.locator(".st-key-duel .said p").nth(2).wait_for(timeout=SLOW)
        settled(page)
        seen = page.locator(".st-key-duel .said p").evaluate_all(TEXTS)
        found |= {one["start"]: one for one in seen[:1]} | {one["start"]: one for one in seen[1:] if one["marked"]}
        assert not [one for one in seen if one["isWide"]]
        assert all(one["lines"] < 7 for one in seen if one["start"] != "x" * 12)
        page.keyboard.press("b")
        page.get_by_text(re.compile(f"^{number + 1} decisions?\\. ")).wait_for(timeout=SLOW)
    for query, document in zip(QUERIES[:3], DOCUMENTS, strict=False):
        of_both = [found[query[:12]], found[document[:12]]]
        assert {one["direction"] for one in of_both} == {"rtl" if "מ" in query else "ltr"}
        assert {one["align"] for one in of_both} == {"start"}
        assert {*of_both[1]["marked"]} <= MARKED
    for number in range(len(QUERIES) - 1, -1, -1):
        settled(page)
        page.keyboard.press("u")
        page.get_by_text(re.compile(f"^{number} decisions?\\. ")).wait_for(timeout=SLOW)


def test_a_long_text_unfolds_by_key_and_stays_open(app: dict[str, str], page: Any) -> None:
    page.goto(app["samples"])
    page.locator(".bench .near .said").first.wait_for(timeout=SLOW)
    assert page.locator(".bench .near mark").all_inner_texts() == ["copper", "kettle"]
    text, control = page.locator(".bench .suspect .said p"), page.locator(".bench .suspect summary")
    folded = text.evaluate("(p) => p.clientHeight")
    assert control.inner_text() == "Show all"
    control.focus()
    page.keyboard.press("Enter")
    control.filter(has_text="Show less").wait_for(timeout=SLOW)
    assert text.evaluate("(p) => p.clientHeight") > 2 * folded
    page.keyboard.press("g")  # the grid and back: the desk is drawn again
    page.keyboard.press("g")
    assert control.inner_text() == "Show less"
    seen = page.locator(".bench .said p").evaluate_all(TEXTS)
    assert not [one for one in seen if one["isWide"]]


def test_given_negatives_are_marked_and_a_mouse_reaches_every_knob(app: dict[str, str], page: Any) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(app["lab"] + "&temperature=0.05")
    page.get_by_text("scale 20", exact=True).wait_for(timeout=SLOW)
    assert page.get_by_text("scale 20", exact=True).bounding_box()["y"] < 150
    settled(page)
    hint = page.locator(".lab .told .hint")
    bars = page.locator(".lab canvas.bars")
    said, before = set[str](), hint.inner_text()
    for row in range(4):
        bars.hover(position={"x": 20, "y": 22 * row + 11})
        hint.filter(has_not_text=before).wait_for(timeout=SLOW)
        before = hint.inner_text()
        said |= {words for words in hint.inner_text().split(" · ") if words in ("given for this query", "in the batch")}
    assert said == {"given for this query", "in the batch"}
    assert "●: given for this query" in page.locator(".lab .barside .hint").inner_text()
    more = page.locator(".lab .further-all")
    more.click()
    assert more.get_attribute("aria-expanded") == "true"
    page.locator(".lab .further").get_by_text("margin").first.wait_for(timeout=SLOW)
