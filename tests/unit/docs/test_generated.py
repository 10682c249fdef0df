"""Pages that are made from the code say what the code does."""

import re
import sys

import pytest
from cases import cases

from contrastive_core import losses
from contrastive_core.base.storage import ROOT, SHIPPED

sys.path.append(str(ROOT / "docs"))

import generate


@cases("name", losses.names())
def test_page_of_a_loss(name):
    """Code has no backslash of Markdown, and the symbols of a formula are explained."""
    page = generate.loss_page(name)
    prose = re.sub(r"(?s)\$\$.*?\$\$|```.*?```|<svg.*?</svg>", "", page)
    assert not [code for code in re.findall(r"`([^`\n]+)`", prose) if "\\" in code]
    assert name not in generate.SYMBOLS or "\nwhere $" in page


def test_pages_of_methods():
    """Defaults that differ in short runs stand beside each other, and captions are no labels."""
    assert re.search(r"\| `momentum` \| `0\.99` \| `0\.9` \|", generate.method_page("byol"))
    assert "default in short runs" not in generate.method_page("simclr")
    page = generate.method_page("clip")
    assert "needs captions, and no labels" in page
    assert "## Defaults on shapes" in page


def test_page_of_the_shipped_encoders():
    """One row for each, with the score that the app shows."""
    page = generate.encoders()
    rows = re.findall(r"(?m)^\| `([\w-]+)` \|", page)
    assert set(rows) == {path.name for path in SHIPPED.iterdir()}
    assert "| `vicreg-shapes` | [VICReg](methods/vicreg.md) | 30 | 88.5 [86.4, 90.3] |" in page


NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize("name", ["results", "choose/which_method", "choose/which_loss", "choose/which_score"])
def test_figures_of_a_page_stand_in_the_logs(name):
    """A page quotes what was measured. Links and code are no figures."""
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    assert len(text.split()) <= 2000
    prose = re.sub(r"(?ms)^```.*?^```|`[^`]*`|\]\([^)]*\)|^#.*?$", "", text)
    logs = "".join((ROOT / "benchmarks" / f"{log}.md").read_text("utf-8") for log in ("MEASURED", "RESULTS"))
    measured = set(NUMBER.findall(logs))
    assert not [number for number in NUMBER.findall(prose) if number.rstrip(",") not in measured]
