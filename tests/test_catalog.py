"""The catalog: complete, plain, torch-free to read; the drawing: right, escaped, described."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from contrastive_core import losses, methods
from contrastive_core.engine import catalog
from contrastive_core.messages import decode
from contrastive_lab.methods import card
from contrastive_lab.methods.diagram import flow_svg, flow_text, in_the_dark

NAMES = methods.names()


@pytest.fixture(scope="module")
def described() -> dict:
    return json.loads(json.dumps(catalog.describe()))


def test_it_holds_every_entry_in_the_order_of_years(described: dict) -> None:
    assert set(described["methods"]) == set(methods.names())
    assert set(described["losses"]) == set(losses.names())
    for kind in ("methods", "losses"):
        years = [entry["year"] for entry in described[kind].values()]
        assert years == sorted(years)


def test_the_catalog_in_the_package_is_current(described: dict) -> None:
    """Else: python -m contrastive_core.engine.catalog"""
    held = json.loads(catalog.CARDS.read_text("utf-8"), object_hook=decode)
    assert held["sources"] == catalog.values()["sources"]
    assert held["catalog"] == described


def test_titles_are_known_before_it_is_made(described: dict) -> None:
    for kind in ("methods", "losses"):
        for name, entry in described[kind].items():
            assert catalog.title(kind, name) == entry["title"]
    for name in ("none_such", "../paths", ""):
        assert catalog.title("losses", name) == name


@pytest.mark.parametrize("name", NAMES)
def test_a_card_has_knobs_defaults_and_reasons(described: dict, name: str) -> None:
    card = described["methods"][name]
    assert catalog.knobs(card["knobs"]) == methods.knobs(name)
    for dataset in ("shapes", "digits", "cifar10"):
        assert all(entry["why"] for entry in card["defaults"][dataset].values())
        can_train = dataset == "shapes" or not card["needs_captions"]
        assert (card["problems"][dataset] is None) == can_train
    assert card["default_loss"] in described["losses"]


def test_it_is_read_without_torch_and_made_once() -> None:
    code = (
        "import sys; from contrastive_core.engine import catalog; c = catalog.read(); "
        "assert 'torch' not in sys.modules; assert catalog.is_ready(); print(len(c['methods']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(NAMES)
    assert catalog.is_ready()


@pytest.mark.parametrize("name", NAMES)
def test_the_flow_of_every_method_is_drawn(name: str) -> None:
    cls = methods.get(name)
    svg = flow_svg(cls.card.title, cls.card.flow, cls.card.compared, cls.card.default_loss, cls.card.updates)
    root = ElementTree.fromstring(svg)
    text = " ".join(t for t in root.itertext())
    for lane in cls.card.flow:
        for box in lane:
            assert set(box.rstrip("*").split()) <= set(text.split()), box
    assert cls.card.default_loss in text
    assert root.get("role") == "img"
    assert root.get("aria-label", "").startswith(cls.card.title)
    boxes = {b.rstrip("*") for lane in cls.card.flow for b in lane}
    assert all({a, b} <= boxes for a, b, _ in cls.card.updates)


@pytest.mark.parametrize("name", NAMES)
def test_a_flow_has_dark_boxes_on_a_dark_page(name: str) -> None:
    cls = methods.get(name)
    svg = flow_svg(cls.card.title, cls.card.flow, cls.card.compared, cls.card.default_loss, cls.card.updates)
    root = ElementTree.fromstring(in_the_dark(svg))
    for node in root.iter():
        fill = node.get("fill")
        if fill is not None:
            bright = sum(int(fill[k : k + 2], 16) for k in (1, 3, 5)) / 3
            assert (bright < 100) == node.tag.endswith("rect"), (node.tag, fill)
    assert "".join(root.itertext()) == "".join(ElementTree.fromstring(svg).itertext())


@pytest.mark.parametrize("name", NAMES)
def test_every_flow_fits_a_phone_when_it_runs_downwards(name: str) -> None:
    """358 pixels are what a page has on a screen of 390; a wide window has room for the other."""
    cls = methods.get(name)
    flow = (cls.card.title, cls.card.flow, cls.card.compared, cls.card.default_loss, cls.card.updates)
    upright = ElementTree.fromstring(flow_svg(*flow, upright=True))
    assert float(upright.get("width", 1e9)) <= 358
    boxes = [
        tuple(float(r.get(k, "nan")) for k in ("x", "y", "width", "height"))
        for r in upright.iter("{http://www.w3.org/2000/svg}rect")
    ]
    for k, (x, y, w, h) in enumerate(boxes):  # none lies on another
        for x2, y2, w2, h2 in boxes[:k]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    wide = ElementTree.fromstring(flow_svg(*flow))
    room = card.WIDE - 300 - 96  # without sidebar and margins
    assert float(wide.get("width", 1e9)) <= 1.15 * room  # it may shrink a little


def test_a_flow_cannot_bring_in_markup() -> None:
    evil = '<script>alert("x")</script>'
    svg = flow_svg(evil, ((evil, "b*"), (evil, evil)), evil, evil, ((evil, "b", evil),))
    assert "<script" not in svg
    ElementTree.fromstring(svg)


def test_boxes_of_one_name_above_each_other_are_one() -> None:
    svg = flow_svg("t", (("a", "e*", "x*"), ("a", "e*", "y*")), "c", "l")
    assert svg.count(">e</tspan>") == 1
    assert "Gradient flows through e, x, y" in flow_text("t", (("a", "e*", "x*", "y*"),), "c", "l")
