"""Methods side by side: what differs is told, and is true of the methods."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from test_pages import opened

from contrastive_core import methods
from contrastive_core.engine import catalog
from contrastive_lab.methods import family, side_by_side
from contrastive_lab.methods.diagram import CHOSEN


def test_aspects_are_those_of_the_methods() -> None:
    read = catalog.read()
    found = side_by_side.aspects(["simclr", "moco_v2", "sup_con"], read, "shapes")
    assert found["labels"] == ["not used", "not used", "needed"]
    assert found["loss"] == ["NT-Xent", "InfoNCE", "SupCon"]
    assert found["moves after a step"][0] == "nothing else"
    assert "enqueue: queue of older keys" in found["moves after a step"][1]
    assert "key encoder" not in found["carries gradient"][1]
    for name in methods.names():
        for data in ("shapes", "digits", "cifar10"):
            for values in side_by_side.aspects([name, "simclr"], read, data).values():
                assert len(values) == 2
                assert all(values)


def test_up_to_three_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("methods", monkeypatch)
    first = app.segmented_control[0].value
    others = [n for n in ("simclr", "moco_v2", "sup_con") if n != first]
    for chosen in (others[:1], others[:2], others[1:2]):
        app.multiselect[0].set_value(chosen).run()
        assert not app.exception
        assert len(app.header[0].value.split(" · ")) == 1 + len(chosen)
        assert any("**compared**" in m.value for m in app.markdown)


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
def test_methods_are_filtered_by_what_they_have(
    chosen: list[str], found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side.query_params, "many_of", lambda *_, **__: chosen)
    assert set(side_by_side.fitting(catalog.read()["methods"])) == found


def test_the_family_tree_draws_every_method_and_every_debt() -> None:
    cards = catalog.read()["methods"]
    svg = family.family_svg(cards, {"byol"})
    assert svg.count("<rect") == len(cards)
    assert svg.count("<path") == sum(len(m["builds_on"]) for m in cards.values())
    assert svg.count(CHOSEN) == 1
    ElementTree.fromstring(svg)
    rows = {row["method"]: row for row in family.table_rows(cards)}
    byol = rows["[BYOL](?method=byol)"]
    assert "MoCo v1: momentum encoder" in byol["took"]
    assert "SimSiam" in byol["went into"]
    assert all(row["took"] or row["went into"] for row in rows.values())  # none stands alone


def test_what_a_method_builds_on_is_an_older_method() -> None:
    for name in methods.names():
        for other, what in (card := methods.get(name).card).builds_on:
            assert methods.get(other).card.year <= card.year, (name, other)
            assert what
