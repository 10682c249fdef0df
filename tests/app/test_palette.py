"""Colors of categories: the color-blind tell them apart too, on both papers, by simulation.

Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
deficiency" (2009), severity 1.0, on linear RGB; CIEDE2000 as Sharma, Wu and Dalal (2005) have it.
"""

import json
import re
import tomllib

import numpy as np
import pytest

from contrastive_core.base.storage import ROOT
from contrastive_lab.components.scatter import PALETTE, categories, shade

LEAST = 12.0  # ΔE between any two; the colors before had 1.1 for deuteranopia
ON_PAPER = 18.0  # between any and the page's background

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
    """CIEDE2000 of CIELAB colors (..., 3)."""
    (l1, a1, b1), (l2, a2, b2) = np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0)
    chroma7 = ((np.hypot(a1, b1) + np.hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * np.sqrt(chroma7 / (chroma7 + 25.0**7))
    c1, c2 = np.hypot(a1 * stretch, b1), np.hypot(a2 * stretch, b2)
    h1 = np.degrees(np.arctan2(b1, a1 * stretch)) % 360
    h2 = np.degrees(np.arctan2(b2, a2 * stretch)) % 360
    turn = np.where(c1 * c2 == 0, 0, (h2 - h1 + 180) % 360 - 180)
    d_l, d_c, d_h = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    light, chroma, hue = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360
    hue = np.where(c1 * c2 == 0, h1 + h2, hue)

    def cos(times: float, minus: float) -> np.ndarray:
        return np.cos(np.radians(times * hue - minus))

    t = 1 - 0.17 * cos(1, 30) + 0.24 * cos(2, 0) + 0.32 * cos(3, -6) - 0.20 * cos(4, 63)
    s_l = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    s_c, s_h = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    r_c = 2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    r_t = -np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))) * r_c
    d_l, d_c, d_h = d_l / s_l, d_c / s_c, d_h / s_h
    return np.sqrt(d_l**2 + d_c**2 + d_h**2 + r_t * d_c * d_h)  # type: ignore[no-any-return]


def test_the_formula_agrees_with_its_authors() -> None:
    for first, second, expected in (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ):
        assert difference(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-4)


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
    assert difference(seen[:, :-1], seen[:, 1:]).min() > 6  # the same color, used again
    _, _, used = categories(np.arange(10), [str(k) for k in range(10)], 10, PALETTE)
    assert len(set(used)) == 10
