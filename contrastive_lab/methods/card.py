"""The card of one method: its idea and flow, its loss, its defaults, and what was measured."""

from __future__ import annotations

import base64
import html
from typing import Any

import streamlit as st

from contrastive_core.evaluation.record import Evaluation
from contrastive_lab import cache, format, guard, query_params, state, words
from contrastive_lab.methods.diagram import in_the_dark
from contrastive_lab.methods.table import table
from contrastive_lab.setting_names import shown_name, shown_value

__all__ = [
    "choose_data",
    "defaults",
    "differences",
    "head",
    "loss",
    "measured",
    "measured_by_paper",
]

WIDE = 1400  # pixels of a window, with the sidebar open, into which every flow fits, or nearly
SWITCHED = f"""<style>
.flow {{ max-width: 100%; }}
.flow.wide {{ display: none; }}
@media (min-width: {WIDE}px) {{
  .flow.wide {{ display: inline; }}
  .flow.upright {{ display: none; }}
}}
</style>"""  # not <picture>, of which Streamlit drops a source that is no address


def head(name: str, about: dict[str, Any]) -> None:
    """Title, idea and data flow, and the ways to train it and to open its loss."""
    st.header(f"{about['title']} ({about['year']})")
    st.markdown(f"{about['idea']} [Paper]({about['paper']})")
    drawing(name, about["title"])
    st.caption(f"Compared: {about['compared']}.")
    buttons = st.container(horizontal=True)
    if buttons.button("Train it", icon=":material/play_circle:", type="primary"):
        st.switch_page("pages/train.py", query_params={"method": name})
    if buttons.button("Open its loss in the Loss Lab", icon=":material/tune:"):
        st.switch_page("pages/loss_lab.py", query_params={"loss": about["default_loss"]})


def loss(about: dict[str, Any]) -> None:
    """Formula and summary of a loss."""
    st.subheader(f"Loss: {about['title']}")
    st.caption(f"{about['year']} · [paper]({about['paper']})")
    st.latex(about["formula"])
    st.markdown(about["summary"])


def defaults(about: dict[str, Any]) -> None:
    """The settings for a data set, each with its reason."""
    st.subheader("Defaults, and why")
    data = choose_data(about)
    rows = [
        {"setting": shown_name(k), "value": value_of(k, v["value"]), "why": v["why"]}
        for k, v in about["defaults"][data].items()
    ]
    if problem := about["problems"].get(data):
        st.warning(problem)
    table(rows, "defaults")
    st.caption(f"The paper's own recipe: {about['paper_recipe']}")


def choose_data(about: dict[str, Any]) -> str:
    """The data set whose defaults are shown."""
    return query_params.one_of(
        st.segmented_control, "Data set", about["defaults"], name="data", default="shapes"
    )


def measured_by_paper(about: dict[str, Any]) -> None:
    st.subheader("What the paper measured")
    st.markdown(about["measured_by_paper"])


def differences(about: dict[str, Any]) -> None:
    st.subheader("Where paper, code and notes differ")
    st.markdown(about["differences"])


def measured(name: str) -> None:
    """Figures of the runs of this method; as wide as the page, or its columns would not fit."""
    st.subheader("What this project measured")
    rows = []
    for run in state.all_runs():
        with guard.on_its_own(run.name):
            record = cache.accuracies(run) if run.config.get("method") == name else None
            if record is None:
                continue
            rows.append(
                {
                    "run": format.plain(run.name),
                    "kNN %": made_of(record, "h", "knn"),
                    "linear %": made_of(record, "h", "linear_probe"),
                    "untrained, kNN %": made_of(record, "random", "knn"),
                    "epochs": format.plain(run.config.get("epochs")),
                }
            )
    if rows:
        table(rows, "measured")
        st.caption("Test images; encoder output (h), the default k. The untrained encoder is the "
                   "same one with random weights.")  # fmt: skip
    else:
        st.caption("No scored run of this method here yet: train one, and its figures appear.")


def drawing(name: str, title: str) -> None:
    """The data flow; where the page is narrow it runs downwards instead of becoming too small."""
    language, alt = words.language(), html.escape(f"Data flow of {title}")
    drawn = {
        kind: f'<img class="flow {kind}" alt="{alt}" '
        f'src="{_address(cache.flow(name, kind == "upright", language))}">'
        for kind in ("wide", "upright")
    }
    st.html(SWITCHED + "".join(drawn.values()))


def _address(svg: str) -> str:
    if st.context.theme.type == "dark":
        svg = in_the_dark(svg)
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def share(record: Evaluation, source: str, name: str) -> float | None:
    value = record.value(source, name)
    return None if value is None else round(100 * value, 1)


def made_of(record: Evaluation, source: str, name: str) -> str | None:
    """A share in per cent, with what it is made of where that is not all rows, exactly."""
    score, value = record.score(source, name), share(record, source, name)
    if score is None or not score.approximation:
        return None if value is None else f"{value:g}"
    return f"{value:g} ({format.plain(score.approximation)})"


def value_of(key: str, value: Any) -> str:
    """A setting's value as pages say it: a loss by its title."""
    return cache.loss_title(str(value)) if key == "loss" else shown_value(value)
