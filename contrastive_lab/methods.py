"""The Methods page: the card of a method with its idea, loss, defaults and measurements, or the differences of several;
the family tree, which is the page's navigation; and a method's data flow with images of a real batch."""

import base64
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.base.registry import USES, Catalog, MethodEntry
from contrastive_core.lab import lab_view
from contrastive_lab import cache, format, locale, query_params, stage, state
from contrastive_lab.components.shared.mount import mount, pack, reported_state, thumbnail_sheet
from contrastive_lab.locale import N_, _
from contrastive_lab.setting_names import flat, shown_name, shown_value

# --- the card --------------------------------------------------------------------------------------


MOST = 3  # methods beside one


def choose_method(methods: Mapping[str, MethodEntry]) -> str:
    """Draw the choice of the method and return it; a click in the tree chooses too."""
    titles = {name: f"{_title(about)} · {about['year']}" for name, about in methods.items()}
    return query_params.one_of(st.selectbox, _("Method"), titles, name="method", default="simclr", width=220)


def choose_others(name: str, methods: Mapping[str, MethodEntry]) -> list[str]:
    """Draw the choice of methods to compare with the chosen one; return them."""
    titles = {n: _title(about) for n, about in methods.items() if n != name}
    label, placeholder, key = _("Compare with"), _("one, two or three other methods"), _beside(name)
    box = st.multiselect
    return query_params.many_of(box, label, titles, name="beside", most=MOST, key=key, placeholder=placeholder)


def _beside(name: str) -> str:
    return f"methods-beside-{name}"


def inspect_one(name: str, catalog: Catalog) -> None:
    """Draw idea, relatives and loss of a method, and the next steps."""
    about, paper = catalog["methods"][name], _("Paper")
    st.header(f"{_title(about)} ({about['year']})")
    st.markdown(f"{locale.text(about['idea'])} [{paper}]({about['paper']})")
    for line in debts_of(name, catalog["methods"]):
        st.caption(line)
    loss = catalog["losses"][about["default_loss"]]
    st.subheader(_("Loss: {title}").format(title=locale.text(loss["title"])))
    st.latex(loss["formula"])
    st.markdown(f"{locale.text(loss['summary'])} [{paper}]({loss['paper']}) ({loss['year']})")
    _draw_next_steps(name, about)


def _draw_next_steps(name: str, about: MethodEntry) -> None:
    with st.container(key="methods-next", gap="small"):
        of_method = {"search": name, "data": "all"}
        st.page_link("pages/runs.py", label=_("Its runs"), icon=":material/table_rows:", query_params=of_method)
        if st.button(_("Open its loss in the Loss Lab"), icon=":material/tune:", width="stretch"):
            st.switch_page("pages/loss_lab.py", query_params={"loss": about["default_loss"]})
        label = _("Train {method}").format(method=_title(about))
        if st.button(label, icon=":material/play_circle:", type="primary", width="stretch"):
            st.switch_page("pages/train.py", query_params={"method": name})


def inspect_several(names: Sequence[str], catalog: Catalog) -> None:
    """Draw the differences of several methods by aspect, then their common values."""
    methods = catalog["methods"]
    titles = [_title(methods[n]) for n in names]
    st.header(" · ".join(titles))
    found = aspects(names, catalog, _choose_data(methods[names[0]]))
    for aspect, values in found.items():
        if len(set(values)) > 1:
            lines = [f"- {t}: {format.plain(value)}" for t, value in zip(titles, values, strict=True)]
            st.markdown("\n".join([f"**{locale.text(aspect)}**", *lines]))
    alike = [f"{locale.text(k)} – {v[0]}" for k, v in found.items() if len(set(v)) == 1 and v[0] != "–"]
    st.caption(_("The same for all: {alike}.").format(alike=format.plain("; ".join(alike))))
    _draw_next_steps(names[0], methods[names[0]])


def draw_details(about: MethodEntry) -> None:
    """Draw the defaults for a data set with their reasons, the paper's measurements, and differences from others."""
    st.subheader(_("Defaults, and why"))
    data = _choose_data(about)
    if problem := about["problems"].get(data):
        st.warning(locale.text(problem))
    columns = [locale.text(column) for column in ("setting", "value", "why")]
    rows = [(shown_name(k), _value_of(k, v["value"]), v["why"]) for k, v in about["defaults"][data].items()]
    lines = [["–" if cell is None else locale.text(cell).replace("|", r"\|") for cell in row] for row in rows]
    look = "\n".join(
        f".st-key-table-defaults td:nth-child({k}) {{ --column: {json.dumps(column, ensure_ascii=False)}; }}"
        for k, column in enumerate(columns, 1)
    )
    with st.container(key="table-defaults"):
        st.html(f'<i class="frame"></i><style>{look}</style>')  # see app.py
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *lines]))
    st.caption(_("The paper's own recipe: {paper_recipe}").format(paper_recipe=locale.text(about["paper_recipe"])))
    texts = {
        _("Results of the paper"): about["measured_by_paper"],
        _("Where paper, code and notes differ"): about["differences"],
    }
    for side, (title, text) in zip(st.columns(2), texts.items(), strict=True):
        side.subheader(title)
        side.markdown(locale.text(text))


def _choose_data(about: MethodEntry) -> str:
    return query_params.one_of(st.segmented_control, _("Data set"), about["defaults"], name="data", default="shapes")


def _value_of(key: str, value: Any) -> str:
    """Format a setting's value; a loss is shown by its title."""
    return cache.loss_title(str(value)) if key == "loss" else shown_value(value)


def _title(about: MethodEntry) -> str:
    return str(locale.text(about["title"]))


def aspects(names: Sequence[str], catalog: Catalog, data: str) -> dict[str, list[str]]:
    """Return the facts of each method by aspect: structure, then defaults on the data set; "–" for no setting."""
    methods = [catalog["methods"][n] for n in names]
    found: dict[str, list[str]] = {
        "compared": [locale.text(m["compared"]) for m in methods],
        "labels": [_("needed") if m["needs_labels"] else _("not used") for m in methods],
        N_("uses"): [", ".join(map(locale.text, m["uses"])) or "–" for m in methods],
        N_("carries gradient"): [
            ", ".join(dict.fromkeys(locale.text(b[:-1]) for lane in m["flow"] for b in lane if b.endswith("*")))
            for m in methods
        ],
        N_("moves after a step"): [_moves(m) for m in methods],
        N_("loss"): [locale.text(catalog["losses"][m["default_loss"]]["title"]) for m in methods],
    }
    defaults = [flat({k: entry["value"] for k, entry in m["defaults"][data].items()}) for m in methods]
    for key in dict.fromkeys(k for d in defaults for k in d):
        found[shown_name(key)] = [_value_of(key, d[key]) if d.get(key) else "–" for d in defaults]
    return found


def _moves(method: MethodEntry) -> str:
    """Describe the parts that change after a step, grouped by how they change."""
    by_how: dict[str, list[str]] = {}
    for _unused, to, how in method["updates"]:
        by_how.setdefault(locale.text(how), []).append(locale.text(to))
    steps = [f"{how}: {', '.join(those)}".removeprefix(": ") for how, those in by_how.items()]
    return "; ".join(steps) or _("nothing else")


# --- the family tree -------------------------------------------------------------------------------


LABELS, CAPTIONS, WITHOUT = N_("labels"), N_("captions"), N_("no negatives")
FILTERS = (LABELS, CAPTIONS, WITHOUT, *USES)
TOP, BOTTOM = 16.0, 80.0  # per cent of the picture's height between which methods stand; filters are below
BULGE = 0.62  # of a column's width: how far a line within a year swings to the right
TREE = "methods-family"  # the key of the component


def draw_tree(methods: Mapping[str, MethodEntry], chosen: str, others: Sequence[str]) -> None:
    """Draw the tree. A click chooses a method; with Shift it adds or removes it beside the current one."""

    def take_click() -> None:
        report = reported_state(TREE, "chosen") or {}
        clicked = report.get("name")
        if clicked and not report.get("isBeside"):
            query_params.choose(query_params.key_of("method"), str(clicked))
        elif clicked and clicked != chosen:
            left = [name for name in others if name != clicked]
            query_params.choose(_beside(chosen), left if clicked in others else [*left, str(clicked)][-MOST:])

    has = (query_params.requested("has") or "").split(",")
    blob = pack(**tree_of(methods, chosen, others, has))
    mount("family", blob, "chosen", TREE, first={}, on_change=take_click)


def tree_of(
    methods: Mapping[str, MethodEntry], chosen: str, others: Sequence[str], has: Sequence[str]
) -> dict[str, Any]:
    """Return the tree of all methods for the browser: each with its position in per cent of the picture, and a curve to
    each that builds on it. Args: others: methods compared with the chosen one; has: active filters."""
    at, years = places_of(methods), sorted({about["year"] for about in methods.values()})
    debts = [(old, name) for name, about in methods.items() for old, _what in about["builds_on"]]
    kin = {end for ends in debts if chosen in ends for end in ends}
    states = dict.fromkeys(kin, "kin") | dict.fromkeys(others, "beside") | {chosen: "chosen"}
    members = [
        {
            "name": name,
            "title": _title(about),
            "year": about["year"],
            "x": at[name][0],
            "y": at[name][1],
            "state": states.get(name, ""),
            "hint": "\n".join(debts_of(name, methods)),
            "has": passes(about),
        }
        for name, about in methods.items()
    ]
    width, lines = 100 / len(years), []
    for old, new in debts:  # from center to center; boxes cover the ends
        (x, y), (to_x, to_y) = at[old], at[new]
        far, near = (x + width / 2, to_x - width / 2) if x != to_x else (x + BULGE * width * 4 / 3,) * 2
        curve = f"M{x:.2f},{y:.2f} C{far:.2f},{y:.2f} {near:.2f},{to_y:.2f} {to_x:.2f},{to_y:.2f}"
        lines.append({"d": curve, "ends": (old, new), "state": "on" if chosen in (old, new) else ""})
    return {
        "title": _("Family tree of the methods"),
        "hint": _("Click to read, Shift-click to compare."),
        "methods": members,
        "lines": lines,
        "years": [{"year": year, "x": (column + 0.5) * width} for column, year in enumerate(years)],
        "filter_title": _("Highlight methods with"),
        "filters": {use: locale.text(use) for use in FILTERS},
        "has": [use for use in has if use in FILTERS],
    }


def passes(about: MethodEntry) -> list[str]:
    """Return the filters that a method passes."""
    kind = [LABELS] * about["needs_labels"] + [CAPTIONS] * about["needs_captions"]
    return [*about["uses"], *kind, *[WITHOUT] * (USES[0] not in about["uses"])]


def debts_of(name: str, methods: Mapping[str, MethodEntry]) -> list[str]:
    """List the sources of a method's ideas and the methods that took them, a line each."""
    took = [f"{_title(methods[old])} ({locale.text(what)})" for old, what in methods[name]["builds_on"]]
    gave = [_title(later) for later in methods.values() if any(old == name for old, _what in later["builds_on"])]
    lines = [_("Builds on {methods}.").format(methods=", ".join(took))] if took else []
    return lines + ([_("Its ideas went into {methods}.").format(methods=", ".join(gave))] if gave else [])


def places_of(methods: Mapping[str, MethodEntry]) -> dict[str, tuple[float, float]]:
    """Return each method's place in per cent of width and height. Each year has a column, ordered by the mean heights
    of the methods that its methods build on, for those of the same year by way of their ancestors."""
    by_year: dict[int, list[str]] = {}
    for name, about in methods.items():
        by_year.setdefault(about["year"], []).append(name)
    most = max(map(len, by_year.values()))
    rows: dict[str, float] = {}

    def wish(name: str) -> float:
        ancestors = [old for old, _what in methods[name]["builds_on"] if old in methods]
        return fmean([rows[old] if old in rows else wish(old) for old in ancestors] or [0.0])

    places: dict[str, tuple[float, float]] = {}
    step, center, width = (BOTTOM - TOP) / max(1, most - 1), (TOP + BOTTOM) / 2, 100 / len(by_year)
    for column, (_year, those) in enumerate(sorted(by_year.items())):
        wishes = {name: wish(name) for name in those}
        limit = (most - len(those)) / 2
        middle = min(limit, max(-limit, fmean(wishes.values())))
        rows |= {
            name: middle + k - (len(those) - 1) / 2 for k, name in enumerate(sorted(those, key=wishes.__getitem__))
        }
        places |= {name: ((column + 0.5) * width, center + step * rows[name]) for name in those}
    return places


# --- the data flow ---------------------------------------------------------------------------------


VIEWS, OF_CLASS, OTHERS = (54, 55), (56, 57), (2, 8, 18, 26, 34, 40, 50, 62)  # rows of the example's batch
IMAGE, SIBLING = -1, -2  # of the views, and another of its class
PICTURED = {"image": [IMAGE], "image, label": [IMAGE], "balanced batch": [IMAGE, SIBLING]}  # boxes, besides the views


def draw_flow(name: str) -> None:
    """Draw the data flow of a method below its name."""
    method = cache.catalog()["methods"][name]
    title, subtitle = html.escape(_title(method)), html.escape(_("How a batch flows through the method."))
    drawn = flow_of(method, cache.loss_title(method["default_loss"]), _flow_images())
    st.html(f'<div class="method"><h2>{title} <small>{subtitle}</small></h2>{drawn}</div>')


@st.cache_data(show_spinner=False)
def _flow_images() -> dict[int, str]:
    """Return images of the example's batch as data URLs by row, including those of its views; {} without the
    example."""
    found: dict[int, np.ndarray] = {}
    with stage.errors_shown():
        run = runs.load(state.DEFAULT_RUN)
        if (opened := lab_view.opening_view(run)) is not None:
            batch, images = opened
            found = {row: images[batch.row_thumbs[row]] for row in (*VIEWS, *OF_CLASS, *OTHERS)}
            data, rng = cache.dataset_of(run, "test"), np.random.default_rng(0)
            chosen, _others = lab_view.images_of_batch(data.labels, len(batch.names) // 2, rng)
            found |= {key: data.images[chosen[at[0] // 2]] for key, at in ((IMAGE, VIEWS), (SIBLING, OF_CLASS))}
    sheets = {row: thumbnail_sheet(np.asarray(image)[None]).picture for row, image in found.items()}
    return {row: f"data:image/png;base64,{base64.b64encode(picture).decode()}" for row, picture in sheets.items()}


def flow_of(method: MethodEntry, loss: str, images: Mapping[int, str] | None = None) -> str:
    """Return the data flow as HTML: a lane of boxes for each view, then the comparison, and the loss.

    A `*` after a name means that the arrow leaving the box carries gradient back. Boxes with the same name above each
    other are one box: the same weights, or the same memory. `updates` lists what changes after a step: (from, to, how).
    methods.css places the cells by lane and step, from left to right, or downwards on a narrow page."""
    lanes, updates = method["flow"], method.get("updates", [])
    moved, last = {to for _from, to, how in updates if how}, 1 + max(map(len, lanes))
    places: dict[tuple[str, int], list[int]] = {}  # lanes of a box, by its name and step
    cells = []

    def cell(kind: str, words: str, step: int, rows: Iterable[int], more: str = "") -> None:
        first, *others = rows
        place = f"--step:{step};--lane:{first};--span:{1 + len(others)}"
        cells.append(f'<span class="{kind}" style="{place}">{more}{html.escape(locale.text(words))}</span>')

    for row, lane in enumerate(lanes, 1):
        starts_alike = lane[0].rstrip("*") == lanes[0][0].rstrip("*")
        first = 1 if starts_alike else max(1, last - len(lane))  # else the lanes end together
        for step, box in enumerate(lane, first):
            places.setdefault((box.rstrip("*"), step), []).append(row)
            ahead = step if step - first < len(lane) - 1 else last - 1  # the last arrow stands before what is compared
            cell("gradient" if box.endswith("*") else "arrow", "→", 2 * ahead, [row])
    for (box, step), rows in places.items():
        shown = VIEWS[rows[0] - 1 : rows[0]] if box.startswith("view") else PICTURED.get(box, ())
        image = _tiles("view", shown, images)
        cell("box memory" if box in moved else "box", box, 2 * step - 1, rows, image)
    pulled = (*VIEWS, *(OF_CLASS if method.get("needs_labels") else ()))
    compared = _tiles("pull", pulled, images, _("pull"))
    if USES[0] in method.get("uses", ()):  # negatives
        compared += _tiles("push", OTHERS, images, _("push"))
    every = range(1, len(lanes) + 1)
    cell("box chosen", method["compared"], 2 * last - 1, every, compared)
    cell("gradient", "→", 2 * last, every)
    cell("box", loss, 2 * last + 1, every)
    moves = _(" After each step, {first} updates {second} ({how}).")
    words = [moves.format(first=locale.text(a), second=locale.text(b), how=locale.text(how)) for a, b, how in updates]
    text = html.escape("".join([_("Bold arrows carry gradient."), *words]))
    name = html.escape(_("Data flow of {title}").format(title=_title(method)), quote=True)
    return f'<div class="flow" role="group" aria-label="{name}">{"".join(cells)}</div><small>{text}</small>'


def _tiles(kind: str, rows: Iterable[int], images: Mapping[int, str] | None, words: str = "") -> str:
    drawn = "".join(f'<img src="{images[row]}" alt="">' for row in rows if images and row in images)
    return f'<span class="tiles {kind}">{drawn}<em>{html.escape(words)}</em></span>' if drawn else ""
