"""Running, queued and failed work, shown in a popover of the top bar and refreshed each second while a run is
active."""

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from contrastive_core.advice.plan import is_trial
from contrastive_core.engine import activity as activities
from contrastive_core.engine.activity import Activity, AtWork, Failed, Waits
from contrastive_lab import format, locale
from contrastive_lab.locale import _
from contrastive_lab.train.watch import watch_next

T = TypeVar("T", AtWork, Waits, Failed)
SHOWN = 3  # of each kind
LONGEST = 160  # characters of a reason
IDLE = "ticks without activity"


def strip() -> None:
    """Draw the activity popover. Called after the page, so that it includes work that the page has just started."""
    now = _now()
    st.session_state[IDLE] = 0
    if now:  # one function for both, so that no click is lost as one follows the other
        st.fragment(_strip, run_every=1.0 if now.is_live else None)(now.is_live)


def _strip(is_live: bool) -> None:
    """Redraw every second while a run is active; afterwards redraw the page once to stop the refresh."""
    now = _now()
    _draw(now)
    st.session_state[IDLE] = 0 if now.is_live else st.session_state.get(IDLE, 0) + 1
    if is_live and st.session_state[IDLE] > 1:
        st.rerun()


def _now() -> Activity:
    """Return the current activity without the trials of an adviser; the adviser itself is included."""

    def own(entries: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(entry for entry in entries if not is_trial(entry.run))

    now = activities.activity()
    return Activity(own(now.at_work), own(now.waiting), own(now.failed))


def _draw(now: Activity) -> None:
    if not now:
        return
    kinds: list[tuple[tuple[Any, ...], Callable[[Any], None], str]] = [
        (now.at_work, _at_work, _("running")),
        (now.waiting, _waits, _("waiting")),
        (now.failed, _failed, _("failed")),
    ]
    counts = " · ".join(f"{len(entries)} {what}" for entries, _draw_one, what in kinds if entries)
    with st.popover(counts, key="activity-pill", width="content"), st.container(gap="xsmall", key="activity"):
        for entries, draw, _what in kinds:
            for entry in entries[:SHOWN]:
                draw(entry)
            if (more := len(entries) - SHOWN) > 0:
                st.caption(_("{count} more on the Runs page").format(count=more))
        if len(now.failed) > 1:
            label = _("Dismiss all {failed}").format(failed=len(now.failed))
            st.button(label, "dismiss-all", on_click=_dismiss, args=(now.failed,))


def _at_work(work: AtWork) -> None:
    share, left = work.progress.fraction, work.seconds_left
    parts = [locale.text(work.progress.stage), f"{100 * share:.0f} %" if share is not None else ""]
    parts.append(_("{left} left").format(left=format.duration(left)) if left is not None else "")
    text = format.plain(" · ".join(filter(None, parts)))
    if work.run:
        _link(work.run, work.run, ":material/play_circle:")
    else:
        text = f"{format.plain(work.label)}: {text}"
    st.progress(share or 0.0, text)


def _waits(waits: Waits) -> None:
    state = _("waiting: {ahead} runs ahead").format(ahead=waits.ahead)
    if waits.why or waits.ahead < 2:
        state = _("held") if waits.why else _("waiting: 1 run ahead") if waits.ahead else _("waiting")
    _link(waits.run, f"{waits.run} · {state}", ":material/schedule:")
    if waits.why:
        st.caption(format.plain(waits.why))


def _failed(failed: Failed) -> None:
    why = locale.text(failed.why)
    why = why if len(why) <= LONGEST else f"{why[:LONGEST]}…"
    st.error(format.plain(f"{locale.text(failed.label)}: {why}"))
    with st.container(horizontal=True):
        if failed.run:
            _link(failed.run, _("Look"), ":material/visibility:", key=f"look-{failed.key}")
        st.button(_("Dismiss"), key=f"dismiss-{failed.key}", on_click=_dismiss, args=((failed,),))


def _link(run: str, label: str, icon: str, key: str = "") -> None:
    """Draw a button that opens the run on the Train page, even if that page is already shown."""
    if st.button(format.plain(label), key=key or f"strip-{run}", icon=icon, type="tertiary"):
        watch_next(run)
        st.switch_page("pages/train.py")


def _dismiss(failures: tuple[Failed, ...]) -> None:
    for failure in failures:
        activities.dismiss(failure)
