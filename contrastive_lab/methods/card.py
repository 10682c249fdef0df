"""The card of a method: its idea, loss, defaults and measurements; or the differences of several methods."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_core.base.cards import Catalog, LossEntry, MethodEntry
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.methods import family
from contrastive_lab.setting_names import flat, shown_name, shown_value

FIRST, MOST = "simclr", 3  # the method that is shown at first; methods beside one


def choose(methods: Mapping[str, MethodEntry]) -> str:
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


def inspect(name: str, catalog: Catalog) -> None:
    """Draw idea, relatives and loss of a method, and the next steps."""
    about = catalog["methods"][name]
    st.header(f"{locale.text(about['title'])} ({about['year']})")
    paper = _("Paper")
    st.markdown(f"{locale.text(about['idea'])} [{paper}]({about['paper']})")
    for line in family.debts_of(name, catalog["methods"]):
        st.caption(line)
    loss(catalog["losses"][about["default_loss"]])
    next_steps(name, about)


def next_steps(name: str, about: MethodEntry) -> None:
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
    next_steps(names[0], methods[names[0]])


def loss(about: LossEntry) -> None:
    """Draw the formula and summary of a loss."""
    st.subheader(_("Loss: {title}").format(title=locale.text(about["title"])))
    st.latex(about["formula"])
    paper = _("Paper")
    st.markdown(f"{locale.text(about['summary'])} [{paper}]({about['paper']}) ({about['year']})")


def details(about: MethodEntry) -> None:
    """Draw the details: defaults, the paper's measurements, and differences from others."""
    defaults(about)
    left, right = st.columns(2)
    with left:
        st.subheader(_("Results of the paper"))
        st.markdown(locale.text(about["measured_by_paper"]))
    with right:
        st.subheader(_("Where paper, code and notes differ"))
        st.markdown(locale.text(about["differences"]))


def defaults(about: MethodEntry) -> None:
    """Draw the settings for a data set, each with its reason."""
    st.subheader(_("Defaults, and why"))
    data = choose_data(about)
    rows = [
        {"setting": shown_name(k), "value": value_of(k, v["value"]), "why": v["why"]}
        for k, v in about["defaults"][data].items()
    ]
    if problem := about["problems"].get(data):
        st.warning(locale.text(problem))
    table(rows, "defaults")
    st.caption(_("The paper's own recipe: {paper_recipe}").format(paper_recipe=locale.text(about["paper_recipe"])))


def choose_data(about: MethodEntry) -> str:
    return query_params.one_of(st.segmented_control, _("Data set"), about["defaults"], name="data", default="shapes")


def value_of(key: str, value: Any) -> str:
    """Format a setting's value; a loss is shown by its title."""
    return cache.loss_title(str(value)) if key == "loss" else shown_value(value)


def table(rows: list[dict[str, Any]], name: str) -> None:
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
