"""Buttons that save a Plotly figure as SVG or PDF in the browser, without a server or another program."""

import re

from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import pack


def draw_buttons(name: str, key: str) -> None:
    """Draw buttons for the figure of the same dialog. Args: name: of the file."""
    mount("figure_file", pack(name=re.sub(r"[^\w.-]+", "-", name).strip("-")), None, key)


def draw_map_buttons(key: str) -> None:
    """Draw buttons that save the map on the stage as PNG, SVG or PDF."""
    mount("figure_file", pack(name=""), None, key)
