"""The front page: one sentence, three entry points, a moving circle and the recent runs."""

from dataclasses import dataclass, field, replace

import streamlit as st

from contrastive_core.engine import catalog, training
from contrastive_core.records import runs
from contrastive_core.records.advice import is_trial
from contrastive_core.records.run import Run
from contrastive_lab import format, guard, locale, state
from contrastive_lab.components.circle import CircleStart, CircleView, draw_circle
from contrastive_lab.locale import N_, _, message
from contrastive_lab.loss_lab import lesson_panel
from contrastive_lab.loss_lab.lessons import LESSONS
from contrastive_lab.samples.example import NAME as EXAMPLE


@dataclass(frozen=True)
class Door:
    """A way in: a card whose title leads to a page. `more` and `more_address`: a second link on it."""

    title: str
    text: str
    page: str
    address: dict[str, str]
    icon: str
    more: str = ""
    more_address: dict[str, str] = field(default_factory=dict)


SUSPECTS = N_(
    "Review suspects one by one, next to images of the class they resemble. Keep, relabel or drop each with a key."
)
DOORS = (
    Door(
        N_("Learn in ten short lessons"),
        N_("Drag τ and watch which images are pushed away, and how hard. Opens on lesson {number}: {title}."),
        "loss_lab",
        {"lesson": "1"},
        ":material/tune:",
        N_("See why temperature matters (lesson 3)"),
        {"lesson": "3"},
    ),
    Door(
        N_("Train on my images"),
        N_(
            "Choose a folder, check its images and train an encoder on them. Or let the adviser find the method and "
            "the temperature."
        ),
        "train",
        {"data": "folder"},
        ":material/play_circle:",
    ),
    Door(
        N_("Find wrong labels"),
        message("{suspects} It opens on an example with thirteen labels changed on purpose.", suspects=SUSPECTS),
        "samples",
        {"example": "wrong-labels"},
        ":material/image_search:",
    ),
)
KERNEL = {"family": "softmax", "knob": "temperature", "temperature": 0.2, "denominator": "all", "aggregate": "out"}
KERNEL |= {"scale": "none", "base": None, "sign": 1}  # NT-Xent's, known without torch; tests/lab/test_home.py holds it
LATEST = 3


def doors() -> None:
    """Show the introduction and the entry points."""
    st.title("Contrastive Lab")
    text = _(
        "**Contrastive learning trains an encoder by comparison: two views of one image are pulled together, all "
        "others are pushed apart.** See what each loss does with every pair, train encoders on your own images, and "
        "evaluate them."
    )
    st.markdown(text)
    for door in (_lessons_door(DOORS[0]), *DOORS[1:-1], _labels_door(DOORS[-1])):
        with st.container(border=True, key=f"door-{door.page}"):
            title = f"**{locale.text(door.title)}**"
            st.page_link(f"pages/{door.page}.py", label=title, icon=door.icon, query_params=door.address)
            st.caption(format.plain(locale.text(door.text)))
            if door.more:
                st.page_link(f"pages/{door.page}.py", label=locale.text(door.more), query_params=door.more_address)


def _lessons_door(door: Door) -> Door:
    """To the first lesson that is not done."""
    number = lesson_panel.next_lesson()
    text = message(door.text, number=number, title=LESSONS[number - 1].title)
    return replace(door, text=text, address={"lesson": str(number)})


def _labels_door(example: Door) -> Door:
    """The newest run of one's own that has labels; the example where there is none."""
    mine = next((run for run in _own_runs() if run.weights.exists() and run.manifest.get("classes")), None)
    if mine is None:
        return example
    text = message("{suspects} It opens on your run {name}.", suspects=SUSPECTS, name=mine.name)
    more = N_("See an example with thirteen wrong labels")
    return replace(example, text=text, address={"run": mine.name}, more=more, more_address=example.address)


def _own_runs() -> list[Run]:
    """The user's runs, the newest first, without an adviser's tries and the example."""
    return [run for run in runs.list_runs() if not run.shipped and not is_trial(run.name) and run.name != EXAMPLE]


def circle() -> None:
    """Points that move by themselves."""
    draw_circle(CircleView(KERNEL, "dot", start=CircleStart(groups=3, speed=350), bare=True), "home-circle")
    text = _(
        "Points that follow the gradient of NT-Xent: equal shapes attract, different shapes repel. Drag a point away "
        "and watch it return."
    )
    st.caption(text)
    st.page_link("pages/loss_lab.py", label=_("Play with it"), query_params={"on": "circle"})


def last_at_work() -> None:
    """One's own runs, the newest first; or that there are examples."""
    st.header(_("Recent runs"))
    mine = _own_runs()
    for run in mine[:LATEST]:
        with guard.on_its_own(run.name):
            _line(run)
    if not mine:
        st.markdown(_("No runs yet. The app includes trained examples:"))
        row = st.container(horizontal=True)
        for name in (state.DEFAULT_RUN, "sup_con-digits", "moco_v2-shapes"):
            label, icon = _("{name} · example").format(name=name), ":material/scatter_plot:"
            row.page_link("pages/explore.py", label=label, icon=icon, query_params={"run": name})


def _line(run: Run) -> None:
    status = str(training.status_of(run)["status"])
    row = st.container(horizontal=True, vertical_alignment="center")
    at_work = status in ("running", "starting", "queued")
    where, address = ("train", {"watch": run.name}) if at_work else ("explore", {"run": run.name})
    row.page_link(f"pages/{where}.py", label=format.plain(run.name), query_params=address)
    made = str(run.manifest.get("created", ""))[:16].replace("T", " ")
    about = ", ".join(filter(None, [catalog.title("methods", str(run.config.get("method") or "")), made, status]))
    row.caption(format.plain(about))
