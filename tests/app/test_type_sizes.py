"""Five sizes of Source Sans in two weights on every page, in canvases too."""

import re
import tomllib
from pathlib import Path

from contrastive_core.base.storage import ROOT

SIZES = {12, 14, 16, 20, 28}
HIDDEN = 0  # words that an icon stands for
DISPLAY = "clamp(28px, 2.7vw, 40px)"  # the one sentence of the front page
WEIGHTS = {"400", "600", "900"}  # 900: arrows
SIZE = re.compile(r"(?:font-size:\s*|font:\s*(?:\d{3}\s+)?)([\d.]+)(px|rem)")
APP = ROOT / "contrastive_lab"


def pixels(number: str, unit: str) -> float:
    return float(number) * (16 if unit == "rem" else 1)


def styles() -> list[Path]:
    """The style sheets of the pages; a report is a document of its own."""
    found = [*ROOT.glob("pages/*.css"), *APP.rglob("*.css")]
    return [path for path in found if "report" not in path.parts]


def test_style_sheets_use_five_sizes_and_two_weights() -> None:
    assert len(styles()) > 10
    for path in styles():
        text = path.read_text("utf-8").replace(f"font-size: {DISPLAY}", "")
        assert {pixels(*size) for size in SIZE.findall(text)} <= SIZES | {HIDDEN}, path
        assert not re.findall(r"font-size: [\d.]+em|font-size: [a-z]+\(", text), path
        assert set(re.findall(r"font-weight: (\d+)", text)) <= WEIGHTS, path


def test_titles_have_the_same_sizes() -> None:
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    sizes = [*theme["headingFontSizes"], theme["metricValueFontSize"]]
    assert {pixels(size.removesuffix("rem"), "rem") for size in sizes} <= SIZES
    assert set(theme["headingFontWeights"]) == {600}


def test_canvases_write_in_source_sans() -> None:
    scripts = [*APP.joinpath("components").rglob("*.js")]
    fonts = [line for path in scripts for line in re.findall(r"font = ([`\"].*?px.*)", path.read_text("utf-8"))]
    assert len(fonts) > 5
    for font in fonts:
        assert "Source Sans" in font or "family" in font.lower(), font
