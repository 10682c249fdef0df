"""Methods: the tree leads to each, and what differs between a few is true of them."""

from collections.abc import Callable

import pytest
from opened_page import opened, page_on

from contrastive_core import methods
from contrastive_core.engine import catalog
from contrastive_lab import methods as page
from contrastive_lab.methods import BOTTOM, FILTERS, TOP, aspects, passes, places_of, tree_of


def test_aspects_are_those_of_the_methods() -> None:
    read = catalog.read()
    found = aspects(["simclr", "moco_v2", "sup_con"], read, "shapes")
    assert found["labels"] == ["not used", "not used", "needed"]
    assert found["loss"] == ["NT-Xent", "InfoNCE", "SupCon"]
    assert found["moves after a step"][0] == "nothing else"
    assert "enqueue: queue of older keys" in found["moves after a step"][1]
    assert "key encoder" not in found["carries gradient"][1]
    for name in methods.names():
        for data in ("shapes", "digits", "cifar10"):
            for values in aspects([name, "simclr"], read, data).values():
                assert len(values) == 2
                assert all(values)


def test_up_to_three_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("methods", monkeypatch)
    assert app.selectbox[0].value == "simclr"
    others = ["moco_v2", "sup_con"]
    for chosen in (others[:1], others, others[1:]):
        app.multiselect[0].set_value(chosen).run()
        assert not app.exception
        assert len(app.header[0].value.split(" · ")) == 1 + len(chosen)
        assert any("**compared**" in m.value for m in app.markdown)


def test_a_click_in_the_tree_reads_and_with_shift_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    clicks: list[Callable[[], None]] = []
    chosen: dict[str, object] = {}
    monkeypatch.setattr(page, "mount", lambda *_some, on_change, **_more: clicks.append(on_change))
    monkeypatch.setattr(page.query_params, "choose", chosen.__setitem__)
    for others, clicked, is_beside, found in (
        (["byol"], "clip", False, {"-method": "clip"}),
        (["byol"], "clip", True, {"methods-beside-simclr": ["byol", "clip"]}),
        (["byol"], "byol", True, {"methods-beside-simclr": []}),
        (
            ["byol", "clip", "nnclr"],
            "swav",
            True,
            {"methods-beside-simclr": ["clip", "nnclr", "swav"]},
        ),  # three at most
        (["byol"], "simclr", True, {}),
    ):
        chosen.clear()
        report = {"name": clicked, "isBeside": is_beside}
        monkeypatch.setattr(page, "reported_state", lambda _key, _state, report=report: report)
        page.draw_tree(catalog.read()["methods"], "simclr", others)
        clicks[-1]()
        assert chosen == found


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (["no negatives", "predictor"], {"byol", "simsiam"}),
        (["labels"], {"sup_con", "metric"}),
        (["captions"], {"clip"}),
        (["captions", "labels"], set()),
        (["momentum encoder"], {"byol", "moco_v1", "moco_v2", "moco_v3"}),
        (["large batch", "negatives"], {"clip", "inva_spread", "moco_v3", "simclr", "sup_con"}),
        (["labels", "predictor"], set()),
    ],
)
def test_methods_are_filtered_by_what_they_have(chosen: list[str], found: set[str]) -> None:
    cards = catalog.read()["methods"]
    assert set(chosen) <= set(FILTERS)
    assert {name for name, about in cards.items() if set(chosen) <= set(passes(about))} == found


def test_the_tree_tells_of_every_method_and_every_debt() -> None:
    cards = catalog.read()["methods"]
    tree = tree_of(cards, "byol", ["clip"], ["labels", "of no use"])
    hints = {method["name"]: method["hint"] for method in tree["methods"]}
    assert "MoCo v1 (momentum encoder)" in hints["byol"]
    assert "SimSiam" in hints["byol"].splitlines()[1]
    assert all(hints.values())  # none stands alone
    states = {
        state: {m["name"] for m in tree["methods"] if m["state"] == state} for state in ("chosen", "beside", "kin")
    }
    assert states["chosen"] == {"byol"}
    assert states["beside"] == {"clip"}
    assert states["kin"] == {"moco_v1", "simclr", "moco_v3", "nnclr", "simsiam"}
    assert all((line["state"] == "on") == ("byol" in line["ends"]) for line in tree["lines"])
    assert tree["has"] == ["labels"]


def test_no_two_methods_of_the_tree_lie_on_each_other() -> None:
    cards = catalog.read()["methods"]
    at = places_of(cards)
    for name, (x, y) in at.items():
        assert 0 < x < 100
        assert TOP <= y <= BOTTOM
        for other, (to_x, to_y) in at.items():
            assert name == other or x != to_x or abs(y - to_y) > 10, (name, other)
            assert cards[name]["year"] >= cards[other]["year"] or x < to_x


def test_what_a_method_builds_on_is_an_older_method() -> None:
    for name in methods.names():
        for other, what in (card := methods.get(name).card).builds_on:
            assert methods.get(other).card.year <= card.year, (name, other)
            assert what


def test_a_comparison_stands_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("methods", monkeypatch, method="simclr", beside="byol,vicreg")
    assert "SimCLR · BYOL · VICReg" in [header.value for header in app.header]
    assert app.query_params["beside"] in ("byol,vicreg", ["byol,vicreg"])
