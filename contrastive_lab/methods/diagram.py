"""A method's data flow as an SVG: views → encoders → head → memory → comparison → loss.

A flow is a row of boxes for each lane, from left to right; a `*` after a name says that the arrow
that leaves the box carries gradient back. Boxes of one name above each other are one box: the same
weights, or the same memory. `updates` are what moves after a step: (from, to, how)."""

import textwrap
import unicodedata
from dataclasses import dataclass
from html import escape

from contrastive_lab.locale import _, text

Lanes = tuple[tuple[str, ...], ...]
Updates = tuple[tuple[str, str, str], ...]
Point = tuple[float, float]

WIDTH, GAP, HEIGHT, SPACE, EDGE = 98, 34, 50, 26, 12  # pixels: boxes, and what is between them
COMPARE = 170
NARROW, CLOSE, DOWN = 94, 20, 26  # upright: a box's width, and what is between lanes and boxes
BOX, MEMORY, CHOSEN, INK = "#e8edf4", "#fde9c8", "#dbeafe", "#1f2937"
GRADIENT, PLAIN, DASH = "#d9480f", "#7c8797", "4 3"
STRONG, WEAK = (GRADIENT, 2.5), (PLAIN, 1.5)  # lines: color and width
DARK = {BOX: "#27313f", MEMORY: "#4a3a16", CHOSEN: "#1e3a5c", INK: "#f1f5f9", GRADIENT: "#f0713a", PLAIN: "#9aa5b4"}


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


@dataclass(frozen=True)
class _Way:
    """Which way a flow runs: to the right with lanes below each other, or down; places are (along, across) it."""

    upright: bool

    @property
    def length(self) -> float:
        return HEIGHT if self.upright else WIDTH

    @property
    def breadth(self) -> float:
        return NARROW if self.upright else HEIGHT

    def along(self, column: int) -> float:
        return EDGE + column * (HEIGHT + DOWN if self.upright else WIDTH + GAP)

    def across(self, lane: int) -> float:
        return EDGE + lane * (NARROW + CLOSE if self.upright else HEIGHT + SPACE)

    def point(self, along: float, across: float) -> tuple[float, float]:
        return (across, along) if self.upright else (along, across)

    def box(self, text: str, at: tuple[float, float], size: tuple[float, float], fill: str = BOX) -> _Box:
        return _Box(text, *self.point(*at), *self.point(*size), fill)


def flow_svg(title: str, lanes: Lanes, compared: str, loss: str, updates: Updates = (), upright: bool = False) -> str:
    """The drawing as one SVG element with a description for screen readers; upright below 360 pixels wide."""
    way = _Way(upright)
    boxes, arrows = _lanes(way, lanes, {to for _unused, to, how in updates if how})
    columns = max(_start(lanes, i) + len(lane) for i, lane in enumerate(lanes))
    gap, most = (DOWN, COMPARE) if upright else (GAP, 0)
    at, broad = way.along(columns), way.across(len(lanes) - 1) + way.breadth - EDGE
    broad = max(broad, most)
    length = HEIGHT if upright else COMPARE
    compare = way.box(compared, (at, EDGE), (length, broad), CHOSEN)
    end_breadth = min(broad, NARROW + 40) if upright else HEIGHT
    end_at = (at + length + gap, EDGE + broad / 2 - end_breadth / 2)
    end = way.box(loss, end_at, (way.length + (0 if upright else 20), end_breadth))
    by_text = {box.text: box for box in boxes}
    boxes += [compare, end]
    total = max(max(b.x + b.width for b in boxes) + EDGE, 190 if upright else 0)  # the legend's
    tall = max(b.y + b.height for b in boxes) + EDGE
    arrows.append((at + length, EDGE + broad / 2, at + length + gap, True))
    parts = [
        _arrow(way.point(a, c), way.point(at if to is None else to, c), *(STRONG if gradient else WEAK), upright)
        for a, c, to, gradient in arrows
    ]
    parts += [_update(upright, by_text[a], by_text[b], text(how)) for a, b, how in updates]
    parts += map(_draw_box, boxes)
    legend, more = _legend(tall + 6, bool(updates), upright)
    described = escape(flow_text(title, lanes, compared, loss, updates), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {tall + more:.0f}" '
        f'width="{total:.0f}" height="{tall + more:.0f}" role="img" aria-label="{described}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}{legend}</svg>'
    )


def in_the_dark(svg: str) -> str:
    """A drawing of flow_svg in the colors of the dark theme."""
    for light, dark in DARK.items():
        svg = svg.replace(f'"{light}"', f'"{dark}"')
    return svg


def flow_text(title: str, lanes: Lanes, compared: str, loss: str, updates: Updates = ()) -> str:
    """The drawing in words."""
    ways = "; ".join(" → ".join(text(name.rstrip("*")) for name in lane) for lane in lanes)
    moved = "".join(
        _(" After the step {first} moves {second} ({how}).").format(first=text(a), second=text(b), how=text(how))
        for a, b, how in updates
    )
    learned = dict.fromkeys(n.rstrip("*") for lane in lanes for n in lane if n.endswith("*"))
    gradient = _(" Gradient flows through {learned}.").format(learned=", ".join(map(text, learned))) if learned else ""
    return _("{title}: {ways}. Compared: {compared}. Loss: {loss}.{gradient}{moved}").format(
        title=title, ways=ways, compared=text(compared), loss=text(loss), gradient=gradient, moved=moved
    )


# --- layout ------------------------------------------------------------------------------------


def _start(lanes: Lanes, i: int) -> int:
    """The column where a lane begins: the first if it begins as the first lane, else so that both end together."""
    if i == 0 or lanes[i][0].rstrip("*") == lanes[0][0].rstrip("*"):
        return 0
    return max(0, len(lanes[0]) - len(lanes[i]))


def _lanes(
    way: _Way, lanes: Lanes, memories: set[str]
) -> tuple[list[_Box], list[tuple[float, float, float | None, bool]]]:
    """Boxes, and arrows (from along and across, to along or None for the comparison, with gradient)."""
    spans: dict[tuple[str, int], list[int]] = {}
    arrows: list[tuple[float, float, float | None, bool]] = []
    for i, lane in enumerate(lanes):
        first = _start(lanes, i)
        for k, name in enumerate(lane):
            plain, column = name.rstrip("*"), first + k
            spans.setdefault((plain, column), []).append(i)
            to = way.along(column + 1) if k + 1 < len(lane) else None
            end, middle = way.along(column) + way.length, way.across(i) + way.breadth / 2
            arrows.append((end, middle, to, name.endswith("*")))
    boxes = []
    for (name, column), rows in spans.items():
        start, end = way.across(rows[0]), way.across(rows[-1]) + way.breadth
        fill = MEMORY if name in memories else BOX
        boxes.append(way.box(name, (way.along(column), start), (way.length, end - start), fill))
    return boxes, arrows


# --- drawing -----------------------------------------------------------------------------------


def _draw_box(box: _Box) -> str:
    lines = _wrapped(text(box.text), max(8, int(box.width / 6.4)))
    top = box.center - 7.5 * (len(lines) - 1)
    spans = "".join(
        f'<tspan x="{box.middle:.1f}" y="{top + 15 * i:.1f}">{escape(line)}</tspan>' for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6" fill="{box.fill}" stroke="{PLAIN}"/>'
        f'<text text-anchor="middle" dominant-baseline="central" fill="{INK}">{spans}</text>'
    )


def _wrapped(text: str, most: int) -> list[str]:
    """A text as lines of at most so many letters; a wide one counts two, and a line may end behind it."""
    if not any(unicodedata.east_asian_width(c) in "WF" for c in text):
        return textwrap.wrap(text, most) or [""]
    lines, used = [""], 0
    for c in text:
        width = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if used + width > most and c not in "，。；：、）":
            lines, used = [*lines, ""], 0
        lines[-1], used = lines[-1] + c, used + width
    return [line.strip() for line in lines]


def _arrow(start: Point, end: Point, color: str, width: float, down: bool, dash: str = "") -> str:
    """A line whose tip points to the right, or down."""
    (x, y), (to_x, to_y) = start, end
    if down:
        tip = f"{to_x:.1f},{to_y:.1f} {to_x - 4:.1f},{to_y - 8:.1f} {to_x + 4:.1f},{to_y - 8:.1f}"
        to_y -= 7
    else:
        tip = f"{to_x:.1f},{to_y:.1f} {to_x - 8:.1f},{to_y - 4:.1f} {to_x - 8:.1f},{to_y + 4:.1f}"
        to_x -= 7
    return _line((x, y), (to_x, to_y), color, width, dash) + f'<polygon points="{tip}" fill="{color}"/>'


def _line(start: Point, end: Point, color: str, width: float, dash: str) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{color}" stroke-width="{width}"{dashed}/>'
    )


def _note(x: float, y: float, words: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" dominant-baseline="central" text-anchor="{anchor}" '
        f'font-size="11" fill="{PLAIN}">{escape(words)}</text>'
    )


def _update(upright: bool, a: _Box, b: _Box, how: str) -> str:
    """A dashed arrow from one box to another in the next lane, with its name beside it."""
    if upright:
        start, end = (a.x + a.width, a.center), (b.x, b.center)
        below = max(a.y + a.height, b.y + min(b.height, HEIGHT)) + 12
        note = _note((start[0] + end[0]) / 2, below, how, "middle")
    else:
        start, end = (a.middle, a.y + a.height), (b.middle, b.y)
        note = _note(max(start[0], end[0]) + 6, (start[1] + end[1]) / 2, how)
    return _arrow(start, end, PLAIN, 1.5, not upright, DASH) + note


def _legend(y: float, updates: bool, upright: bool) -> tuple[str, float]:
    """What the arrows mean, and the height that it takes."""
    entries = [(_("carries gradient"), GRADIENT, ""), (_("no gradient"), PLAIN, "")]
    entries += [(_("moves after the step"), PLAIN, DASH)] * updates
    lines = []
    for i, (label, color, dash) in enumerate(entries):
        x, at = (EDGE, y + 16 * i) if upright else (EDGE + 150 * i, y)
        lines += [_line((x, at), (x + 26, at), color, 2, dash), _note(x + 32, at, label)]
    return "".join(lines), 24 + (16 * (len(entries) - 1) if upright else 0)
