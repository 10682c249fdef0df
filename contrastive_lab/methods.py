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
from contrastive_core.base.cards import USES, Catalog, LossEntry, MethodEntry
from contrastive_core.lab import lab_view
from contrastive_lab import cache, format, guard, locale, query_params, state
from contrastive_lab.components.family import FamilyLine, FamilyMember, FamilyTree
from contrastive_lab.components.shared.transport import thumbnail_sheet
from contrastive_lab.locale import N_, _
from contrastive_lab.setting_names import flat, shown_name, shown_value

# --- the card --------------------------------------------------------------------------------------


FIRST, MOST = "simclr", 3  # the method that is shown at first; methods beside one


def choose_method(methods: Mapping[str, MethodEntry]) -> str:
    """Draw the choice of the method and return it; a click in the tree chooses too."""

    def title(name: str) -> str:
        return f"{locale.text(methods[name]['title'])} · {methods[name]['year']}"

    return query_params.one_of(
        st.selectbox, _("Method"), methods, name="method", default=FIRST, format_func=title, width=220
    )


def choose_others(name: str, methods: Mapping[str, MethodEntry]) -> list[str]:
    """Draw the choice of methods to compare with the chosen one; return them."""
    titles = {n: locale.text(about["title"]) for n, about in methods.items() if n != name}
    label, placeholder = _("Compare with"), _("one, two or three other methods")
    look: dict[str, Any] = {"placeholder": placeholder, "format_func": titles.get}
    return query_params.many_of(st.multiselect, label, titles, name="beside", most=MOST, key=_beside(name), **look)


def _beside(name: str) -> str:
    return f"methods-beside-{name}"


def take_click(current: str, others: Sequence[str], clicked: str, is_beside: bool) -> None:
    """Choose the clicked method, or add it to the comparison; a second click removes it."""
    if not is_beside:
        query_params.choose(query_params.key_of("method"), clicked)
    elif clicked != current:
        left = [name for name in others if name != clicked]
        query_params.choose(_beside(current), left if clicked in others else [*left, clicked][-MOST:])


def inspect_one(name: str, catalog: Catalog) -> None:
    """Draw idea, relatives and loss of a method, and the next steps."""
    about = catalog["methods"][name]
    st.header(f"{locale.text(about['title'])} ({about['year']})")
    paper = _("Paper")
    st.markdown(f"{locale.text(about['idea'])} [{paper}]({about['paper']})")
    for line in debts_of(name, catalog["methods"]):
        st.caption(line)
    draw_loss(catalog["losses"][about["default_loss"]])
    draw_next_steps(name, about)


def draw_next_steps(name: str, about: MethodEntry) -> None:
    with st.container(key="methods-next", gap="small"):
        of_method = {"search": f"method:{name}", "data": "all"}
        st.page_link("pages/runs.py", label=_("Its runs"), icon=":material/table_rows:", query_params=of_method)
        if st.button(_("Open its loss in the Loss Lab"), icon=":material/tune:", width="stretch"):
            st.switch_page("pages/loss_lab.py", query_params={"loss": about["default_loss"]})
        label = _("Train {method}").format(method=locale.text(about["title"]))
        if st.button(label, icon=":material/play_circle:", type="primary", width="stretch"):
            st.switch_page("pages/train.py", query_params={"method": name})


def inspect_several(names: Sequence[str], catalog: Catalog) -> None:
    """Draw the differences of several methods by aspect, then their common values."""
    methods = catalog["methods"]
    titles = [locale.text(methods[n]["title"]) for n in names]
    st.header(" · ".join(titles))
    found = aspects(names, catalog, choose_data(methods[names[0]]))
    for aspect, values in found.items():
        if len(set(values)) > 1:
            lines = [f"- {t}: {format.plain(value)}" for t, value in zip(titles, values, strict=True)]
            st.markdown("\n".join([f"**{locale.text(aspect)}**", *lines]))
    alike = [f"{locale.text(k)} – {v[0]}" for k, v in found.items() if len(set(v)) == 1 and v[0] != "–"]
    st.caption(_("The same for all: {alike}.").format(alike=format.plain("; ".join(alike))))
    draw_next_steps(names[0], methods[names[0]])


def draw_loss(about: LossEntry) -> None:
    """Draw the formula and summary of a loss."""
    st.subheader(_("Loss: {title}").format(title=locale.text(about["title"])))
    st.latex(about["formula"])
    paper = _("Paper")
    st.markdown(f"{locale.text(about['summary'])} [{paper}]({about['paper']}) ({about['year']})")


def draw_details(about: MethodEntry) -> None:
    """Draw the details: defaults, the paper's measurements, and differences from others."""
    draw_defaults(about)
    left, right = st.columns(2)
    with left:
        st.subheader(_("Results of the paper"))
        st.markdown(locale.text(about["measured_by_paper"]))
    with right:
        st.subheader(_("Where paper, code and notes differ"))
        st.markdown(locale.text(about["differences"]))


def draw_defaults(about: MethodEntry) -> None:
    """Draw the settings for a data set, each with its reason."""
    st.subheader(_("Defaults, and why"))
    data = choose_data(about)
    rows = [
        {"setting": shown_name(k), "value": value_of(k, v["value"]), "why": v["why"]}
        for k, v in about["defaults"][data].items()
    ]
    if problem := about["problems"].get(data):
        st.warning(locale.text(problem))
    draw_texts(rows, "defaults")
    st.caption(_("The paper's own recipe: {paper_recipe}").format(paper_recipe=locale.text(about["paper_recipe"])))


def choose_data(about: MethodEntry) -> str:
    return query_params.one_of(st.segmented_control, _("Data set"), about["defaults"], name="data", default="shapes")


def value_of(key: str, value: Any) -> str:
    """Format a setting's value; a loss is shown by its title."""
    return cache.loss_title(str(value)) if key == "loss" else shown_value(value)


def draw_texts(rows: Sequence[Mapping[str, str | None]], name: str) -> None:
    """Draw rows of Markdown texts; `name` identifies the table on the page."""
    key, columns = f"table-{name}", [locale.text(column) for column in rows[0]]
    lines = [columns, ["---"] * len(columns)]
    lines += [["–" if v is None else locale.text(v).replace("|", r"\|") for v in r.values()] for r in rows]
    says = "\n".join(
        f".st-key-{key} td:nth-child({k}) {{ --column: {json.dumps(column, ensure_ascii=False)}; }}"
        for k, column in enumerate(columns, 1)
    )
    with st.container(key=key):
        st.html(f'<i class="frame"></i><style>{says}</style>')  # see app.py
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


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
        found[shown_name(key)] = [value_of(key, d[key]) if d.get(key) else "–" for d in defaults]
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

Cards = Mapping[str, MethodEntry]


def tree_of(methods: Cards, chosen: str, others: Sequence[str], has: Sequence[str]) -> FamilyTree:
    """Return the tree of all methods. Args: others: methods compared with the chosen one; has: active filters."""
    at, years = places_of(methods), sorted({about["year"] for about in methods.values()})
    debts = [(old, name) for name, about in methods.items() for old, _what in about["builds_on"]]
    kin = {end for ends in debts if chosen in ends for end in ends}
    states = dict.fromkeys(kin, "kin") | dict.fromkeys(others, "beside") | {chosen: "chosen"}
    members = [
        FamilyMember(
            name=name,
            title=_title(about),
            year=about["year"],
            x=at[name][0],
            y=at[name][1],
            state=states.get(name, ""),
            hint="\n".join(debts_of(name, methods)),
            has=passes(about),
        )
        for name, about in methods.items()
    ]
    width = 100 / len(years)
    return FamilyTree(
        title=_("Family tree of the methods"),
        hint=_("Click to read, Shift-click to compare."),
        methods=members,
        lines=[_line(ends, at, width, "on" if chosen in ends else "") for ends in debts],
        years=[{"year": year, "x": (column + 0.5) * width} for column, year in enumerate(years)],
        filter_title=_("Highlight methods with"),
        filters={use: locale.text(use) for use in FILTERS},
        has=[use for use in has if use in FILTERS],
    )


def passes(about: MethodEntry) -> list[str]:
    """Return the filters that a method passes."""
    kind = [LABELS] * about["needs_labels"] + [CAPTIONS] * about["needs_captions"]
    return [*about["uses"], *kind, *[WITHOUT] * (USES[0] not in about["uses"])]


def debts_of(name: str, methods: Cards) -> list[str]:
    """List the sources of a method's ideas and the methods that took them, a line each."""
    took = [f"{_title(methods[old])} ({locale.text(what)})" for old, what in methods[name]["builds_on"]]
    gave = [_title(later) for later in methods.values() if any(old == name for old, _what in later["builds_on"])]
    lines = [_("Builds on {methods}.").format(methods=", ".join(took))] if took else []
    return lines + ([_("Its ideas went into {methods}.").format(methods=", ".join(gave))] if gave else [])


def places_of(methods: Cards) -> dict[str, tuple[float, float]]:
    """Return each method's position in per cent of width and height. Each year has a column, ordered by the heights of
    the methods that its methods build on."""
    by_year: dict[int, list[str]] = {}
    for name, about in methods.items():
        by_year.setdefault(about["year"], []).append(name)
    most = max(map(len, by_year.values()))
    rows: dict[str, float] = {}
    for _year, those in sorted(by_year.items()):
        wish = {name: _wish(name, methods, rows) for name in those}
        limit = (most - len(those)) / 2
        middle = min(limit, max(-limit, fmean(wish.values())))
        for place, name in enumerate(sorted(those, key=wish.__getitem__)):
            rows[name] = middle + place - (len(those) - 1) / 2
    step = (BOTTOM - TOP) / max(1, most - 1)
    columns = {name: column for column, (_year, those) in enumerate(sorted(by_year.items())) for name in those}
    center, width = (TOP + BOTTOM) / 2, 100 / len(by_year)
    return {name: ((columns[name] + 0.5) * width, center + step * row) for name, row in rows.items()}


def _wish(name: str, methods: Cards, rows: Mapping[str, float]) -> float:
    """Return the mean row of the methods that a method builds on, by way of their ancestors for the same year; 0
    without any."""
    wishes = [
        rows[old] if methods[old]["year"] < methods[name]["year"] else _wish(old, methods, rows)
        for old, _what in methods[name]["builds_on"]
        if old in methods
    ]
    return fmean(wishes) if wishes else 0.0


def _line(ends: tuple[str, str], at: Mapping[str, tuple[float, float]], width: float, state: str) -> FamilyLine:
    """Return a curve from the center of a method to that of one that builds on it; boxes cover its ends."""
    (x, y), (to_x, to_y) = at[ends[0]], at[ends[1]]
    if x == to_x:
        far = near = x + BULGE * width * 4 / 3
    else:
        far, near = x + width / 2, to_x - width / 2
    return FamilyLine(f"M{x:.2f},{y:.2f} C{far:.2f},{y:.2f} {near:.2f},{to_y:.2f} {to_x:.2f},{to_y:.2f}", ends, state)


def _title(about: MethodEntry) -> str:
    return str(locale.text(about["title"]))


# --- the data flow ---------------------------------------------------------------------------------


VIEWS, OF_CLASS, OTHERS = (54, 55), (56, 57), (2, 8, 18, 26, 34, 40, 50, 62)  # rows of the example's batch
IMAGE, SIBLING = -1, -2  # of the views, and another of its class
PICTURED = {"image": [IMAGE], "image, label": [IMAGE], "balanced batch": [IMAGE, SIBLING]}  # boxes, besides the views


def draw_flow(name: str) -> None:
    """Draw the data flow of a method below its name."""
    method = cache.catalog()["methods"][name]
    title, subtitle = html.escape(locale.text(method["title"])), html.escape(_("How a batch flows through the method."))
    drawn = flow_of(method, cache.loss_title(method["default_loss"]), flow_images())
    st.html(f'<div class="method"><h2>{title} <small>{subtitle}</small></h2>{drawn}</div>')


@st.cache_data(show_spinner=False)
def flow_images() -> dict[int, str]:
    """Return images of the example's batch as data URLs by row, including those of its views; {} without the
    example."""
    found: dict[int, str] = {}
    with guard.errors_shown():
        run = runs.load(state.DEFAULT_RUN)
        if (opened := lab_view.opening_view(run, "nt_xent")) is None:
            return found
        batch, images = opened
        found = {row: _address(images[batch.row_thumbs[row]]) for row in (*VIEWS, *OF_CLASS, *OTHERS)}
        data, rng = cache.dataset_of(run, "test"), np.random.default_rng(0)
        chosen, _others = lab_view.images_of_batch(data.labels, len(batch.names) // 2, rng)
        for key, views in ((IMAGE, VIEWS), (SIBLING, OF_CLASS)):
            found[key] = _address(np.asarray(data.images[chosen[views[0] // 2]]))
    return found


def _address(image: np.ndarray) -> str:
    return f"data:image/png;base64,{base64.b64encode(thumbnail_sheet(image[None]).picture).decode()}"


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
    every = range(1, len(lanes) + 1)
    cell("box chosen", method["compared"], 2 * last - 1, every, _compared(method, images))
    cell("gradient", "→", 2 * last, every)
    cell("box", loss, 2 * last + 1, every)
    moves = _(" After each step, {first} updates {second} ({how}).")
    words = [moves.format(first=locale.text(a), second=locale.text(b), how=locale.text(how)) for a, b, how in updates]
    words.insert(0, _("Bold arrows carry gradient."))
    name = html.escape(_("Data flow of {title}").format(title=locale.text(method["title"])), quote=True)
    return (
        f'<div class="flow" role="group" aria-label="{name}">{"".join(cells)}</div>'
        f"<small>{html.escape(''.join(words))}</small>"
    )


def _compared(method: MethodEntry, images: Mapping[int, str] | None) -> str:
    """Draw the images that attract each other, and those that are pushed apart if the method has negatives."""
    pulled = (*VIEWS, *(OF_CLASS if method.get("needs_labels") else ()))
    drawn = _tiles("pull", pulled, images, _("pull"))
    return drawn + (_tiles("push", OTHERS, images, _("push")) if USES[0] in method.get("uses", ()) else "")


def _tiles(kind: str, rows: Iterable[int], images: Mapping[int, str] | None, words: str = "") -> str:
    drawn = "".join(f'<img src="{images[row]}" alt="">' for row in rows if images and row in images)
    return f'<span class="tiles {kind}">{drawn}<em>{html.escape(words)}</em></span>' if drawn else ""
