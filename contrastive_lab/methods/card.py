"""The card of one method: its idea and flow, its loss, its defaults, and what was measured."""

import base64
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.records.evaluation import Evaluation
from contrastive_lab import cache, format, guard, locale, query_params, state
from contrastive_lab.locale import N_, _
from contrastive_lab.methods.diagram import flow_svg, in_the_dark
from contrastive_lab.setting_names import shown_name, shown_value

STYLE = Path(__file__).with_name("card.css")
WIDE = 1400  # pixels of a window from which on flows are drawn wide (card.css)


def head(name: str, about: Mapping[str, Any]) -> None:
    """Title, idea and data flow, and the ways to train it and to open its loss."""
    st.header(f"{locale.text(about['title'])} ({about['year']})")
    paper = _("Paper")
    st.markdown(f"{locale.text(about['idea'])} [{paper}]({about['paper']})")
    drawing(name, locale.text(about["title"]))
    st.caption(_("Compared: {compared}.").format(compared=locale.text(about["compared"])))
    if family := _family(name):
        st.caption(family)
    buttons = st.container(horizontal=True)
    if buttons.button(_("Train it"), icon=":material/play_circle:", type="primary"):
        st.switch_page("pages/train.py", query_params={"method": name})
    if buttons.button(_("Open its loss in the Loss Lab"), icon=":material/tune:"):
        st.switch_page("pages/loss_lab.py", query_params={"loss": about["default_loss"]})


def _family(name: str) -> str:
    """From which methods this one took what, and which took from it, as links."""
    methods = cache.catalog()["methods"]

    def link(other: str, what: str) -> str:
        return f"[{locale.text(methods[other]['title'])}](?method={other}) ({locale.text(what)})"

    before = [link(other, what) for other, what in methods[name]["builds_on"]]
    after = [link(later, what) for later, m in methods.items() for other, what in m["builds_on"] if other == name]
    lines = [_("Builds on {methods}.").format(methods=", ".join(before))] if before else []
    lines += [_("Its ideas went into {methods}.").format(methods=", ".join(after))] if after else []
    return " ".join(lines)


def loss(about: Mapping[str, Any]) -> None:
    """Formula and summary of a loss."""
    st.subheader(_("Loss: {title}").format(title=locale.text(about["title"])))
    paper = _("Paper")
    st.caption(f"{about['year']} · [{paper}]({about['paper']})")
    st.latex(about["formula"])
    st.markdown(locale.text(about["summary"]))


def defaults(about: Mapping[str, Any]) -> None:
    """The settings for a data set, each with its reason."""
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


def choose_data(about: Mapping[str, Any]) -> str:
    return query_params.one_of(st.segmented_control, _("Data set"), about["defaults"], name="data", default="shapes")


def measured_by_paper(about: Mapping[str, Any]) -> None:
    st.subheader(_("Results of the paper"))
    st.markdown(locale.text(about["measured_by_paper"]))


def differences(about: Mapping[str, Any]) -> None:
    st.subheader(_("Where paper, code and notes differ"))
    st.markdown(locale.text(about["differences"]))


def measured(name: str) -> None:
    """Figures of the runs of this method; as wide as the page, or its columns would not fit."""
    st.subheader(_("Results of this project"))
    rows = []
    for run in state.all_runs():
        with guard.on_its_own(run.name):
            record = cache.accuracies(run) if run.config.get("method") == name else None
            if record is None:
                continue
            rows.append(
                {
                    "run": format.plain(run.name),
                    N_("kNN %"): made_of(record, "h", "knn"),
                    N_("linear %"): made_of(record, "h", "linear_probe"),
                    N_("untrained, kNN %"): made_of(record, "random", "knn"),
                    "epochs": format.plain(run.config.get("epochs")),
                }
            )
    if rows:
        table(rows, "measured")
        text = _(
            "Test images; encoder output (h), the default k. The untrained encoder is the same one with random weights."
        )
        st.caption(text)
    else:
        st.caption(_("No scored run of this method yet. Train one to see its scores here."))


def drawing(name: str, title: str) -> None:
    """The data flow; where the page is narrow it runs downwards instead of becoming too small."""
    alt, method = html.escape(_("Data flow of {title}").format(title=title)), cache.catalog()["methods"][name]
    lanes, updates = (tuple(map(tuple, method.get(part, ()))) for part in ("flow", "updates"))
    about = (method["title"], lanes, method["compared"], cache.loss_title(method["default_loss"]), updates)
    drawn = _style()
    for kind in ("wide", "upright"):
        svg = flow_svg(*about, kind == "upright")
        svg = in_the_dark(svg) if st.context.theme.type == "dark" else svg
        address = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
        drawn += f'<img class="flow {kind}" alt="{alt}" src="{address}">'
    st.html(drawn)


def _style(more: str = "") -> str:
    return f"<style>{STYLE.read_text('utf-8')}{more}</style>"


def made_of(record: Evaluation, source: str, name: str) -> str | None:
    """A share in per cent, with what it is made of where that is not all rows, exactly."""
    score = record.score(source, name)
    if score is None or score.value is None:
        return None
    text = f"{round(100 * score.value, 1):g}"
    return f"{text} ({format.plain(score.approximation)})" if score.approximation else text


def value_of(key: str, value: Any) -> str:
    """A setting's value as pages say it: a loss by its title."""
    return cache.loss_title(str(value)) if key == "loss" else shown_value(value)


def table(rows: list[dict[str, Any]], name: str) -> None:
    """Draw rows of texts in Markdown; `name` is the table's own among those of the page."""
    key, columns = f"table-{name}", [locale.text(column) for column in rows[0]]
    lines = [columns, ["---"] * len(columns)]
    lines += [["–" if v is None else locale.text(v).replace("|", r"\|") for v in r.values()] for r in rows]
    says = "\n".join(
        f".st-key-{key} td:nth-child({k}) {{ --column: {json.dumps(column, ensure_ascii=False)}; }}"
        for k, column in enumerate(columns, 1)
    )
    with st.container(key=key):
        st.html(f'<i class="frame"></i>{_style(says)}')  # see app.py
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))
