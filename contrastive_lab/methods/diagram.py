"""A method's data flow as an SVG: views → encoders → head → memory → comparison → loss.

A flow is a row of boxes for each lane, from left to right; a `*` after a name says that the arrow
that leaves the box carries gradient back. Boxes of one name above each other are one box: the same
weights, or the same memory. `updates` are what moves after a step: (from, to, how). The colors
stand on light and dark pages alike.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape

__all__ = ["flow_svg", "flow_text"]

Lanes = tuple[tuple[str, ...], ...]
Updates = tuple[tuple[str, str, str], ...]

WIDTH, GAP, HEIGHT, SPACE, EDGE = 98, 34, 50, 26, 12  # pixels: boxes, and what is between them
COMPARE = 170
BOX, MEMORY, CHOSEN, INK = "#e8edf4", "#fde9c8", "#dbeafe", "#1f2937"
GRADIENT, PLAIN = "#d9480f", "#7c8797"


@dataclass(frozen=True)
class _Box:
    text: str
    x: float
    y: float
    width: float
    height: float
    fill: str = BOX

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def center(self) -> float:
        return self.y + self.height / 2


def flow_svg(title: str, lanes: Lanes, compared: str, loss: str, updates: Updates = ()) -> str:
    """The drawing as one SVG element, text escaped, with its description for screen readers."""
    boxes, arrows = _lanes(lanes, {to for _, to, how in updates if how})
    columns = max(_start(lanes, i) + len(lane) for i, lane in enumerate(lanes))
    height = _y(len(lanes)) - SPACE
    across = EDGE + columns * (WIDTH + GAP)
    compare = _Box(compared, across, EDGE, COMPARE, height - EDGE, CHOSEN)
    end = _Box(loss, across + COMPARE + GAP, compare.center - HEIGHT / 2, WIDTH + 20, HEIGHT)
    total, tall = end.x + end.width + EDGE, compare.y + compare.height + EDGE
    parts = [_arrow(x, y, compare.x if to is None else to, y, g) for x, y, to, g in arrows]
    parts.append(_arrow(compare.x + COMPARE, compare.center, end.x, end.center, True))
    parts += [_update(boxes, *update) for update in updates]
    parts += [_draw_box(box) for box in [*boxes, compare, end]]
    parts.append(_legend(tall + 6, bool(updates)))
    text = escape(flow_text(title, lanes, compared, loss, updates), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {tall + 24:.0f}" '
        f'width="100%" style="max-width:{total:.0f}px" role="img" aria-label="{text}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def flow_text(title: str, lanes: Lanes, compared: str, loss: str, updates: Updates = ()) -> str:
    """The drawing in words."""
    ways = "; ".join(" → ".join(name.rstrip("*") for name in lane) for lane in lanes)
    moved = "".join(f" After the step {a} moves {b} ({how})." for a, b, how in updates)
    learned = dict.fromkeys(n.rstrip("*") for lane in lanes for n in lane if n.endswith("*"))
    gradient = f" Gradient flows through {', '.join(learned)}." if learned else ""
    return f"{title}: {ways}. Compared: {compared}. Loss: {loss}.{gradient}{moved}"


# --- layout ------------------------------------------------------------------------------------


def _y(lane: int) -> float:
    return EDGE + lane * (HEIGHT + SPACE)


def _start(lanes: Lanes, i: int) -> int:
    """A lane begins on the left, unless its first box is not how the lane above begins: then it
    ends where the first one ends."""
    if i == 0 or lanes[i][0].rstrip("*") == lanes[0][0].rstrip("*"):
        return 0
    return max(0, len(lanes[0]) - len(lanes[i]))


def _lanes(
    lanes: Lanes, memories: set[str]
) -> tuple[list[_Box], list[tuple[float, float, float | None, bool]]]:
    """Boxes, and arrows (from x, y, to x or None for the comparison, with gradient)."""
    spans: dict[tuple[str, int], list[int]] = {}
    arrows: list[tuple[float, float, float | None, bool]] = []
    for i, lane in enumerate(lanes):
        first = _start(lanes, i)
        for k, name in enumerate(lane):
            plain, column = name.rstrip("*"), first + k
            spans.setdefault((plain, column), []).append(i)
            x = EDGE + column * (WIDTH + GAP) + WIDTH
            to = x + GAP if k + 1 < len(lane) else None
            arrows.append((x, _y(i) + HEIGHT / 2, to, name.endswith("*")))
    boxes = []
    for (name, column), rows in spans.items():
        top, bottom = _y(rows[0]), _y(rows[-1]) + HEIGHT
        fill = MEMORY if name in memories else BOX
        boxes.append(_Box(name, EDGE + column * (WIDTH + GAP), top, WIDTH, bottom - top, fill))
    return boxes, arrows


# --- drawing -----------------------------------------------------------------------------------


def _draw_box(box: _Box) -> str:
    lines = textwrap.wrap(box.text, max(8, int(box.width / 6.4))) or [""]
    top = box.center - 7.5 * (len(lines) - 1)
    spans = "".join(
        f'<tspan x="{box.middle:.1f}" y="{top + 15 * i:.1f}">{escape(line)}</tspan>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6" fill="{box.fill}" stroke="{PLAIN}"/>'
        f'<text text-anchor="middle" dominant-baseline="central" fill="{INK}">{spans}</text>'
    )


def _arrow(x: float, y: float, to_x: float, to_y: float, gradient: bool) -> str:
    color, width = (GRADIENT, 2.5) if gradient else (PLAIN, 1.5)
    tip = f"{to_x:.1f},{to_y:.1f} {to_x - 8:.1f},{to_y - 4:.1f} {to_x - 8:.1f},{to_y + 4:.1f}"
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x - 7:.1f}" y2="{to_y:.1f}" '
        f'stroke="{color}" stroke-width="{width}"/><polygon points="{tip}" fill="{color}"/>'
    )


def _update(boxes: list[_Box], source: str, target: str, how: str) -> str:
    """A dashed arrow downwards from one box to another, with its name beside it."""
    by_text = {box.text: box for box in boxes}
    a, b = by_text[source], by_text[target]
    x, y, to_x, to_y = a.middle, a.y + a.height, b.middle, b.y
    tip = f"{to_x:.1f},{to_y:.1f} {to_x - 4:.1f},{to_y - 7:.1f} {to_x + 4:.1f},{to_y - 7:.1f}"
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y - 6:.1f}" stroke="{PLAIN}" '
        f'stroke-width="1.5" stroke-dasharray="4 3"/><polygon points="{tip}" fill="{PLAIN}"/>'
        f'<text x="{max(x, to_x) + 6:.1f}" y="{(y + to_y) / 2:.1f}" dominant-baseline="central" '
        f'font-size="11" fill="{PLAIN}">{escape(how)}</text>'
    )


def _legend(y: float, updates: bool) -> str:
    entries = [("carries gradient", GRADIENT, ""), ("no gradient", PLAIN, "")]
    if updates:
        entries.append(("moves after the step", PLAIN, ' stroke-dasharray="4 3"'))
    return "".join(
        f'<line x1="{EDGE + 150 * i}" y1="{y}" x2="{EDGE + 26 + 150 * i}" y2="{y}" '
        f'stroke="{color}" stroke-width="2"{dash}/><text x="{EDGE + 32 + 150 * i}" y="{y}" '
        f'dominant-baseline="central" font-size="11" fill="{PLAIN}">{text}</text>'
        for i, (text, color, dash) in enumerate(entries)
    )
