"""Sliders of a running training: its learning rate and numeric knobs of its loss; and its branches."""

import contextlib
import math
from collections.abc import Iterable
from typing import Any, Literal

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.registry import Knob
from contrastive_core.engine import calls, catalog, queue
from contrastive_core.runs import changes as live_changes
from contrastive_core.runs.changes import Live
from contrastive_core.runs.run import Run
from contrastive_lab import cache, format, guard
from contrastive_lab.locale import _
from contrastive_lab.setting_names import sign

REFUSED = "live-refused"  # of the session: the run that did not take a change, and why
SPAN = 100.0  # of a logarithmic slider: from the first value up, and down
IN_A_DECADE = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)


def live_of(run: Run) -> dict[str, Live]:
    """Return the settings of a run that can be changed during training; {} before the catalog is ready."""
    config = run.config
    knobs = _knobs("losses", str(config.get("loss"))), _knobs("methods", str(config.get("method")))
    return live_changes.live_settings(config, *knobs)


@st.cache_resource(max_entries=40, show_spinner=False)
def _knobs(kind: Literal["methods", "losses"], name: str) -> dict[str, Knob]:
    return catalog.knobs(cache.catalog()[kind].get(name, {}).get("knobs", {}))


def sliders(run: Run) -> None:
    """Draw a slider for each setting, at the last requested value. A change from elsewhere replaces the slider; after a
    change by the user it stays and keeps the focus."""
    taken = {change["id"] for change in run.logged_changes()}
    asked = [*run.changes(), *(one for one in run.requests() if one["id"] not in taken)]
    for name, setting in live_of(run).items():
        values = [setting.start, *(one["to"] for one in asked if one["name"] == name)]
        key, value, label = f"live-{run.name}-{name}", values[-1], sign(name)
        last: list[float] = st.session_state.setdefault(key, [0, value])  # how many sliders so far, and its value
        if last[1] != value:
            last[:] = last[0] + 1, value
        about: dict[str, Any] = {"key": f"{key}-{last[0]}", "on_change": _send, "args": (run, name, key)}
        if setting.knob.help:
            about["help"] = _(setting.knob.help)
        if setting.knob.log:
            st.select_slider(label, stops(setting, values), value, format_func=_short, **about)
        else:
            kind = int if isinstance(setting.knob.default, int) else float
            low, high = kind(setting.knob.low or 0), kind(setting.knob.high or 1)
            step = 1 if kind is int else (high - low) / 200
            st.slider(label, low, high, kind(value), step=step, format=None if kind is int else "%.4g", **about)


def _short(value: float) -> str:
    return f"{value:.4g}"


def stops(setting: Live, values: Iterable[float]) -> list[float]:
    """Return values of a logarithmic slider around the initial one, ten per decade, and all earlier values."""
    start, (low, high) = setting.start or setting.knob.default, (setting.knob.low or 0.0, setting.knob.high or math.inf)
    low, high = max(low, start / SPAN), min(high, start * SPAN)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = (float(f"{part}e{decade}") for decade in decades for part in IN_A_DECADE)
    shown = {_short(one): one for one in [*(one for one in every if low <= one <= high), *values]}
    return sorted(shown.values())


def _send(run: Run, name: str, key: str) -> None:
    """Request the value of a slider that the user moved; a browser also sends values of sliders that were only
    drawn."""
    number, before = st.session_state[key]
    if (value := st.session_state[f"{key}-{number}"]) == before:
        return
    st.session_state.pop(REFUSED, None)
    try:
        live_changes.request(run, live_of(run), {name: value})
        st.session_state[key][1] = value
    except (ValueError, OSError) as error:
        st.session_state[REFUSED] = (run.name, str(error))


def not_taken(run: Run) -> None:
    """Draw changes that were refused, or came too late."""
    name, why = st.session_state.get(REFUSED, ("", ""))
    if name == run.name:
        st.error(format.plain(why))
    logged = {change["id"] for change in run.logged_changes()}
    late = [one for one in run.requests() if one["id"] not in logged]
    if late and run.status()["status"] in ("done", "stopped", "failed"):
        told = ", ".join(f"{sign(one['name'])} {one['to']:.4g}" for one in late)
        text = _("The run ended before this change was applied: {changes}")
        st.info(format.plain(text.format(changes=told)))


def branch_form(run: Run) -> str:
    """Draw a form for branches of a run from a saved epoch; return the first one's name once they have started."""
    names: list[str] = []
    with st.expander(_("Branch here")), st.form(f"branch-{run.name}", border=False):
        st.caption(_("Each line continues from a saved epoch as a separate run. Compare opens when all have ended."))
        kept = [0, *reversed(live_changes.saved_epochs(run))]  # a list shows no None
        help = _("At most eight states are kept, spread over the training.")
        epoch = st.selectbox(_("From"), kept, format_func=_from, key=f"branch-epoch-{run.name}", help=help)
        example = "loss.temperature=0.05\nloss.temperature=0.5, lr=0.001"
        text = st.text_area(_("Other values, one branch per line"), placeholder=example)
        pressed = st.form_submit_button(_("Start the branches"), icon=":material/fork_right:")
        with guard.errors_kept(f"branch-{run.name}", text, pressed):
            if pressed:
                lines = [line.split(",") for line in text.splitlines() if line.strip()]
                every = [live_changes.settings_of(line) for line in lines]
                names = [made.name for made in calls.branch(run, epoch or None, *every)]
                for name in names:
                    queue.resume(name)
    return names[0] if names else ""


def _from(epoch: int) -> str:
    return _("epoch {epoch}").format(epoch=epoch) if epoch else _("the newest state")


def branches_at_work(branches: Iterable[str]) -> None:
    """Draw the names of the branches that have not ended."""
    if started := [name for name in branches if queue.progress_of(name)]:
        text = _("Started: {names}. Choose one at the top to follow it.")
        st.info(format.plain(text.format(names=", ".join(started))))


def family(run: Run) -> list[str]:
    """Return the names of a run, or of the run that it branched off, and of all its branches."""
    origins = {one.name: one.manifest.get("branch", {}).get("run") for one in runs.list_runs()}
    first = run.name if run.name in origins.values() else str(origins.get(run.name) or run.name)
    return [first, *sorted(name for name, origin in origins.items() if origin == first)]


def done(names: Iterable[str]) -> list[str]:
    """Return the names of the runs that have finished."""
    found = []
    for name in names:
        with contextlib.suppress(ValueError, OSError):  # deleted since
            found += [name] if runs.load(name).status()["status"] == "done" else []
    return found
