"""Knobs check what they are given, and a registry finds one class per file."""

import importlib
import sys

import pytest

from contrastive_core.base.errors import UnknownName
from contrastive_core.base.registry import Knob, Registry


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


@pytest.fixture
def colors(tmp_path, monkeypatch):
    """A package with two entries and a private module, as a newcomer would lay it."""
    package = tmp_path / "colors"
    package.mkdir()
    (package / "__init__.py").write_text("class Color: ...\n")
    for key, depth in (("red", 0.5), ("blue", 0.2)):
        (package / f"{key}.py").write_text(
            "from dataclasses import dataclass\n"
            "from colors import Color\n"
            "from contrastive_core.base.registry import knob\n"
            f"@dataclass(frozen=True)\nclass {key.title()}(Color):\n"
            f"    depth: float = knob({depth}, 0, 1)\n"
        )
    (package / "_shared.py").write_text("raise AssertionError('private modules stay closed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("colors")
    yield Registry("colors", module.Color, "color")
    for name in [n for n in sys.modules if n.split(".")[0] == "colors"]:
        del sys.modules[name]


def test_registry_discovers_creates_and_checks(colors: Registry) -> None:
    assert colors.names() == ["blue", "red"]
    assert colors.knobs("red")["depth"].default == 0.5
    assert colors.create("blue", depth="0.3").depth == 0.3
    with pytest.raises(ValueError, match="at most 1"):
        colors.create("red", depth=2)


def test_unknown_names_list_the_known_ones(colors: Registry) -> None:
    with pytest.raises(UnknownName, match="unknown color 'rde'; known: blue, red"):
        colors.create("rde")
    with pytest.raises(ValueError, match="no setting 'dpeth'; it has: depth"):
        colors.create("red", dpeth=0.5)
