"""The look: colors of categories that the color-blind tell apart on both papers, and five sizes of Source Sans.

The simulation is that of Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
deficiency" (2009), severity 1.0, on linear RGB."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.base.storage import ROOT
from contrastive_lab.components.scatter import PALETTE, categories, shade

LEAST = 15.0  # ΔE between any two
ON_PAPER = 28.0  # between any and the page's background

VISION = {
    "trichromacy": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)  # of linear sRGB, D65
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colors: list[str]) -> np.ndarray:
    """Linear RGB (n, 3) of "#RRGGBB"."""
    rgb = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in colors]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB (n, 3) of linear RGB."""
    xyz = np.clip(rgb, 0, 1) @ TO_XYZ.T / WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """ΔE of CIELAB colors (..., 3), as CIE has had it since 1976."""
    return np.linalg.norm(first - second, axis=-1)


def papers() -> list[str]:
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    return [theme["light"]["backgroundColor"], theme["dark"]["backgroundColor"]]


@pytest.mark.parametrize("vision", VISION)
def test_categories_are_told_apart(vision: str) -> None:
    seen = lab(np.clip(linear([*PALETTE, *papers()]) @ VISION[vision].T, 0, 1))
    each = difference(seen[:, None], seen[None]) + np.diag(np.full(len(seen), np.inf))
    n = len(PALETTE)
    assert n == 8
    assert each[:n, :n].min() > LEAST
    assert each[:n, n:].min() > ON_PAPER


def test_there_is_one_palette() -> None:
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    assert tuple(theme["chartCategoricalColors"]) == PALETTE
    canvas = (ROOT / "contrastive_lab" / "components" / "shared" / "canvas.js").read_text()
    (listed,) = re.findall(r"export const PALETTE = (\[[^\]]*\])", canvas)
    assert tuple(json.loads(listed)) == PALETTE


def test_more_categories_than_colors_differ_in_shape_and_shade() -> None:
    points = (ROOT / "contrastive_lab" / "components" / "scatter" / "points.js").read_text()
    (colors,) = re.findall(r"const COLORS = (\d+)", points)
    assert int(colors) == len(PALETTE)
    assert points.count("clip:") >= 4
    seen = lab(linear([shade(color, turn) for color in PALETTE for turn in range(4)])).reshape(len(PALETTE), 4, 3)
    assert difference(seen[:, :-1], seen[:, 1:]).min() > 12  # the same color, used again
    _, _, used = categories(np.arange(10), [str(k) for k in range(10)], 10, PALETTE)
    assert len(set(used)) == 10


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
