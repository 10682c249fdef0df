"""The catalog: complete, plain, torch-free to read; the drawing: right, escaped, described."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from cases import cases

from contrastive_core import losses, methods
from contrastive_core.base.registry import Catalog
from contrastive_core.engine import catalog
from contrastive_lab.methods import PICTURED, SIBLING, flow_of

NAMES = methods.names()


@pytest.fixture(scope="module")
def described() -> Catalog:
    return catalog.stored() or catalog.make()


def test_it_is_complete_and_made_once_for_every_process(
    described: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, registry in (("methods", methods), ("losses", losses)):
        entries = described[kind]
        assert set(entries) == set(registry.names())
        years = [entry["year"] for entry in entries.values()]
        assert years == sorted(years)
        assert all(catalog.title(kind, name) == entry["title"] for name, entry in entries.items())
    assert all("\n" not in entry["formula"] for entry in described["losses"].values())
    assert all(catalog.title("losses", name) == name for name in ("none_such", "../paths", ""))
    code = "import sys; from contrastive_core.engine import catalog; catalog.read(); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    monkeypatch.setattr(catalog, "CARDS", tmp_path / "build" / "cards.json")
    assert catalog.stored() is None
    assert catalog.make() == described
    assert catalog.read() == described
    (tmp_path / "file").write_text("no folder: nothing can be written below it")
    monkeypatch.setattr(catalog, "CARDS", tmp_path / "file" / "cards.json")
    assert catalog.stored() is None
    assert catalog.make() == catalog.stored() == described  # in the user's own folder
    monkeypatch.setattr(catalog, "sources", lambda: "edited")
    assert catalog.stored() is None


@cases("name", NAMES)
def test_a_card_has_knobs_defaults_and_reasons(described: Catalog, name: str) -> None:
    card = described["methods"][name]
    assert catalog.knobs(card["knobs"]) == methods.knobs(name)
    for dataset in ("shapes", "digits", "cifar10"):
        assert all(entry["why"] for entry in card["defaults"][dataset].values())
        can_train = dataset == "shapes" or not card["needs_captions"]
        assert (card["problems"][dataset] is None) == can_train
    assert card["default_loss"] in described["losses"]


@cases("name", NAMES)
def test_the_flow_of_every_method_is_drawn(described: Catalog, name: str) -> None:
    about = described["methods"][name]
    root = ElementTree.fromstring(f"<div>{flow_of(about, 'its loss')}</div>")
    cells = list(root.iter("span"))
    boxes = [node.text for node in cells if "box" in node.get("class", "")]
    assert set(boxes) == {b.rstrip("*") for lane in about["flow"] for b in lane} | {about["compared"], "its loss"}
    assert len({node.get("style") for node in cells}) == len(cells)  # none lies on another
    assert {b for a, b, _ in about["updates"]} | {a for a, _, _ in about["updates"]} <= set(boxes)
    assert all(how in "".join(root.itertext()) for *_, how in about["updates"])
    drawn = flow_of(about, "its loss", dict.fromkeys(range(SIBLING, 64), "data:,"))
    assert all(f"<em></em></span>{box}</span>" in drawn for box in boxes if box in PICTURED)


def test_a_flow_cannot_bring_in_markup() -> None:
    evil = '<script>alert("x")</script>'
    about = {"title": evil, "flow": [[evil, "b*"], [evil, evil]], "compared": evil, "updates": [[evil, "b", evil]]}
    assert "<script" not in flow_of(about, evil)


def test_boxes_of_one_name_above_each_other_are_one() -> None:
    drawn = flow_of({"title": "t", "flow": [["a", "e*", "x*"], ["a", "e*", "y*"]], "compared": "c"}, "l")
    assert drawn.count(">e</span>") == 1
    assert "--lane:1;--span:2" in drawn
