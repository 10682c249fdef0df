"""A few methods side by side: when they came, how their data flow, where they differ."""

import html
from collections.abc import Mapping
from typing import Any

import streamlit as st

from contrastive_core.records.cards import USES
from contrastive_lab import format, locale, query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.methods import card
from contrastive_lab.setting_names import flat, shown_name

MOST = 3  # methods beside the first
LABELS, CAPTIONS, WITHOUT = N_("labels"), N_("captions"), N_("no negatives")


def fitting(methods: Mapping[str, Any]) -> list[str]:
    """The methods that have all that is asked for, in the order of their years."""
    options = {use: locale.text(use) for use in (LABELS, CAPTIONS, WITHOUT, *USES)}
    chosen = query_params.many_of(
        st.pills, _("Has"), options, name="has", selection_mode="multi", format_func=options.get
    )

    found = []
    for name, about in methods.items():
        kind = [LABELS] * about["needs_labels"] + [CAPTIONS] * about["needs_captions"]
        kind += [WITHOUT] * (USES[0] not in about["uses"])
        if {*about["uses"], *kind} >= set(chosen):
            found.append(name)
    return found


def choose_others(name: str, methods: Mapping[str, Any]) -> list[str]:
    """Methods to set beside the chosen one."""
    titles = {n: locale.text(about["title"]) for n, about in methods.items() if n != name}
    label, placeholder, key = _("Compare with"), _("one, two or three other methods"), f"methods-beside-{name}"
    look: dict[str, Any] = {"placeholder": placeholder, "format_func": titles.get}
    return query_params.many_of(st.multiselect, label, titles, name="beside", most=MOST, key=key, **look)


def show(names: list[str], catalog: Mapping[str, Any]) -> None:
    """Time line, drawings and a table of aspects; what differs stands out."""
    methods = catalog["methods"]
    titles = [locale.text(methods[n]["title"]) for n in names]
    st.header(" · ".join(titles))
    st.html(_time_line(names, methods))
    for name in names:
        about = methods[name]
        title = locale.text(about["title"])
        st.markdown(f"**{title}** ({about['year']})  \n{locale.text(about['idea'])}")
        card.drawing(name, title)
    found = aspects(names, catalog, card.choose_data(methods[names[0]]))
    different = {k: v for k, v in found.items() if len(set(v)) > 1}
    rows = [
        {"": f"**{locale.text(aspect)}**", **dict(zip(titles, map(format.plain, values), strict=True))}
        for aspect, values in different.items()
    ]
    card.table(rows, "aspects")
    if alike := [
        f"{locale.text(k)} – {locale.text(v[0])}" for k, v in found.items() if k not in different and v[0] != "–"
    ]:
        st.caption(_("What is alike: {alike}.").format(alike=format.plain("; ".join(alike))))


def aspects(names: list[str], catalog: Mapping[str, Any], data: str) -> dict[str, list[str]]:
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
        found[shown_name(key)] = [card.value_of(key, d[key]) if d.get(key) else "–" for d in defaults]
    return found


def _moves(method: Mapping[str, Any]) -> str:
    """What moves, by how it does."""
    by_how: dict[str, list[str]] = {}
    for _unused, to, how in method["updates"]:
        by_how.setdefault(locale.text(how), []).append(locale.text(to))
    steps = [f"{how}: {', '.join(those)}".removeprefix(": ") for how, those in by_how.items()]
    return "; ".join(steps) or _("nothing else")


def _time_line(names: list[str], methods: Mapping[str, Any]) -> str:
    """All methods under their years; the chosen ones are marked."""
    by_year: dict[int, list[str]] = {}
    for name, about in methods.items():
        by_year.setdefault(about["year"], []).append(name)
    columns = []
    for year, those in sorted(by_year.items()):
        titles = {n: f"<span>{html.escape(locale.text(methods[n]['title']))}</span>" for n in those}
        marked = "<br>".join(f"<b>● {t}</b>" if n in names else f"○ {t}" for n, t in titles.items())
        columns.append(f'<div style="border-top:2px solid currentcolor;padding:4px 9px 4px 0">{year}<br>{marked}</div>')
    name = html.escape(_("time line of the methods"))
    return (
        '<div style="display:flex;flex-wrap:wrap;font-size:14px" role="group" '
        f'aria-label="{name}">{"".join(columns)}</div>'
    )
