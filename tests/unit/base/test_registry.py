"""Knobs check what they are given, and a registry names what it knows."""

import pytest

from contrastive_core import losses
from contrastive_core.base.errors import UnknownName
from contrastive_core.base.registry import Knob


def test_knob_checks_range_type_and_choice() -> None:
    assert Knob(0.5, 0.001, 100).check("temperature", "0.2") == 0.2
    assert Knob(3, 1, 9).check("k", 4.0) == 4
    assert Knob(True).check("detach", "off") is False
    assert Knob("out", choices=("out", "in")).check("form", "in") == "in"
    assert Knob(None, 0.001, 100).check("base", None) is None
    for entry, value in [
        (Knob(0.5, 0.001, 100), 0),
        (Knob(0.5, 0.001, 100), "nan"),
        (Knob(0.5, 0.001, 100), "warm"),
        (Knob(3, 1, 9), 3.5),
        (Knob(3, 1, 9), 10),
        (Knob(True), "maybe"),
        (Knob("out", choices=("out", "in")), "both"),
    ]:
        with pytest.raises(ValueError, match="must be"):
            entry.check("it", value)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown loss 'tripelt'; known: .*triplet"):
        losses.create("tripelt")
    with pytest.raises(ValueError, match=r"no setting 'margn'; it has: .*margin"):
        losses.create("triplet", margn=0.5)
    with pytest.raises(ValueError, match="at most"):
        losses.create("nt_xent", temperature=1e9)
