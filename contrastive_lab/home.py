"""The front page: one sentence, three doors, a circle that moves, what was last at work."""

from __future__ import annotations

import streamlit as st

from contrastive_core.engine import catalog, training
from contrastive_core.records import runs
from contrastive_core.records.advice import is_trial
from contrastive_core.records.run import Run
from contrastive_lab import format, guard, locale, state
from contrastive_lab.components.circle import CircleStart, draw_circle
from contrastive_lab.locale import N_, _
from contrastive_lab.samples.example import NAME as EXAMPLE

__all__ = ["DOORS", "KERNEL", "circle", "doors", "last_at_work"]

DOORS: tuple[tuple[str, str, str, dict[str, str], str], ...] = (
    (
        N_("See why temperature matters"),
        N_("Six short lessons, each done by hand: drag τ and watch who is pushed away and how hard."),
        "loss_lab",
        {"lesson": "3"},
        ":material/tune:",
    ),
    (
        N_("Train on my images"),
        N_(
            "Choose a folder, look at what it holds, and train an encoder on it; or let the "
            "adviser find the method and the temperature."
        ),
        "train",
        {"data": "folder"},
        ":material/play_circle:",
    ),
    (
        N_("Find wrong labels"),
        N_(
            "Suspects one by one, each beside images of the class it looks like: keep, relabel "
            "or drop it by a key. It opens on an example with thirteen labels changed on purpose."
        ),
        "samples",
        {"example": "wrong-labels"},
        ":material/image_search:",
    ),
)
KERNEL = {
    "family": "softmax",
    "knob": "temperature",
    "temperature": 0.2,
    "denominator": "all",
    "aggregate": "out",
    "scale": "none",
    "base": None,
    "sign": 1,
}  # of NT-Xent, known without torch; tests/lab/test_home.py holds it to the loss
LATEST = 3


def doors() -> None:
    """What this is, and the ways in."""
    st.title("Contrastive Lab")
    st.markdown(
        _(
            "**Contrastive learning teaches an encoder by comparison: two views of one image are "
            "pulled together, all others are pushed apart.** Here you see what each loss does "
            "with every pair, train encoders on your own images, and judge what they have "
            "learned."
        )
    )
    for title, text, page, address, icon in DOORS:
        with st.container(border=True):
            st.page_link(f"pages/{page}.py", label=f"**{locale.text(title)}**", icon=icon, query_params=address)
            st.caption(locale.text(text))


def circle() -> None:
    """Points that move by themselves."""
    draw_circle(KERNEL, "dot", start=CircleStart(groups=3, speed=350), bare=True, key="home-circle")
    st.caption(
        _(
            "Points that follow the gradient of NT-Xent: one shape attracts itself and repels "
            "the others. Drag one away and see it come back."
        )
    )
    st.page_link("pages/loss_lab.py", label=_("Play with it"), query_params={"on": "circle"})


def last_at_work() -> None:
    """One's own runs, the newest first; or that there are examples."""
    st.header(_("Last at work"))
    mine = [run for run in runs.list_runs() if not run.shipped and not is_trial(run.name) and run.name != EXAMPLE]
    for run in mine[:LATEST]:
        with guard.on_its_own(run.name):
            _line(run)
    if not mine:
        st.markdown(_("Nothing yet. The lab comes with trained examples to look at:"))
        row = st.container(horizontal=True)
        for name in (state.DEFAULT_RUN, "sup_con-digits", "moco_v2-shapes"):
            row.page_link(
                "pages/explore.py",
                label=_("{name} · example").format(name=name),
                icon=":material/scatter_plot:",
                query_params={"run": name},
            )


def _line(run: Run) -> None:
    status = str(training.status_of(run)["status"])
    row = st.container(horizontal=True, vertical_alignment="center")
    at_work = status in ("running", "starting", "queued")
    where, address = ("train", {"watch": run.name}) if at_work else ("explore", {"run": run.name})
    row.page_link(f"pages/{where}.py", label=format.plain(run.name), query_params=address)
    made = str(run.manifest.get("created", ""))[:16].replace("T", " ")
    about = ", ".join(filter(None, [catalog.title("methods", str(run.config.get("method") or "")), made, status]))
    row.caption(format.plain(about))
