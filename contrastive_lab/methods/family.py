"""The family tree of the methods: years from left to right, and a line from each method to those that took from it."""

import base64
import html
from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from contrastive_lab import locale, query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.methods import card
from contrastive_lab.methods.diagram import BOX, CHOSEN, INK, PLAIN, in_the_dark

WIDTH, HEIGHT, GAP, SPACE, TOP, EDGE = 104, 30, 46, 12, 26, 8  # pixels: boxes, and what is between them
STYLE = ".family { overflow-x: auto; } .family img { width: 100%; min-width: 900px; max-width: 1300px; }"


def show(methods: Mapping[str, Any], chosen: Iterable[str]) -> None:
    """The tree on demand, with who took what from whom as a table; `chosen` methods stand out."""
    if not query_params.switch(st.toggle, _("Family tree"), name="family"):
        return
    svg = family_svg(methods, set(chosen))
    svg = in_the_dark(svg) if st.context.theme.type == "dark" else svg
    address = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    alt = html.escape(_("Family tree of the methods; the table below says the same in words"))
    st.html(f'<style>{STYLE}</style><div class="family"><img alt="{alt}" src="{address}"></div>')
    card.table(table_rows(methods), "family")


def table_rows(methods: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each method: its year, what it took from whom, and which methods took from it."""
    rows = []
    for name, about in methods.items():
        took = [f"{_title(methods[old])}: {locale.text(what)}" for old, what in about["builds_on"]]
        gave = [_title(m) for m in methods.values() if any(old == name for old, _what in m["builds_on"])]
        row: dict[str, Any] = {N_("method"): f"[{_title(about)}](?method={name})", N_("year"): str(about["year"])}
        rows.append(row | {N_("took"): "; ".join(took) or None, N_("went into"): ", ".join(gave) or None})
    return rows


def family_svg(methods: Mapping[str, Any], chosen: set[str]) -> str:
    """The tree as an SVG. `methods`: their cards by name, in the order of their years."""
    years = sorted({about["year"] for about in methods.values()})
    places: dict[str, tuple[float, float]] = {}  # left, top
    for column, year in enumerate(years):
        those = [name for name, about in methods.items() if about["year"] == year]
        for row, name in enumerate(those):
            places[name] = (EDGE + column * (WIDTH + GAP), TOP + row * (HEIGHT + SPACE))
    height = max(y for _x, y in places.values()) + HEIGHT + EDGE
    width = 2 * EDGE + len(years) * (WIDTH + GAP) - GAP + GAP // 2
    drawn = [_text(EDGE + i * (WIDTH + GAP) + WIDTH / 2, TOP - 10, str(year)) for i, year in enumerate(years)]
    for name, about in methods.items():
        drawn += [_line(places[old], places[name], {old, name} & chosen) for old, _what in about["builds_on"]]
    drawn += [_box(*places[name], _title(about), name in chosen) for name, about in methods.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="13">{"".join(drawn)}</svg>'
    )


def _title(about: Mapping[str, Any]) -> str:
    return str(locale.text(about["title"]))


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="{INK}">{html.escape(text)}</text>'


def _box(x: float, y: float, title: str, is_chosen: bool) -> str:
    fill = CHOSEN if is_chosen else BOX
    box = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{fill}" stroke="{PLAIN}"/>'
    return box + _text(x + WIDTH / 2, y + HEIGHT / 2 + 4.5, title)


def _line(old: tuple[float, float], new: tuple[float, float], stands_out: object) -> str:
    """A curve from a method to one that took from it; within a year it bulges to the right."""
    x, y = old[0] + WIDTH, old[1] + HEIGHT / 2
    if old[0] == new[0]:
        end, far = (new[0] + WIDTH, new[1] + HEIGHT / 2), (x + GAP / 2, x + GAP / 2)
    else:
        end = (new[0], new[1] + HEIGHT / 2)
        far = (x + GAP / 2, end[0] - GAP / 2)
    color, thick = (INK, 2) if stands_out else (PLAIN, 1.2)
    return (
        f'<path d="M{x},{y} C{far[0]},{y} {far[1]},{end[1]} {end[0]},{end[1]}" fill="none" stroke="{color}" '
        f'stroke-width="{thick}"/>'
    )
