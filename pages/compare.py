"""Compare: two to eight spaces of the same samples, and one verdict."""

from __future__ import annotations

import streamlit as st

from contrastive_core.spaces.space import Space
from contrastive_lab import cache, home, query_params, stage, state
from contrastive_lab.compare import disagreements, overview, score_tables, similarity, space_picker, towers, verdict
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.figures import draw_map_buttons
from contrastive_lab.locale import N_, _
from contrastive_lab.report import button

VIEWS = (N_("Overview"), N_("Disagreements"), N_("Similarity"), N_("Tables"))
CURVES = N_("Plot by setting")
RARE = (towers.DUELS, CURVES, towers.THRESHOLD)  # reached from the last control of the toolbar


def page() -> None:
    st.title(_("Compare"))
    home.show_questions()
    ready = space_picker.ready()
    with stage.toolbar():
        names, layer = space_picker.choose(ready)
        samples, spaces, reason, unread = None, [], "", ""
        if len(names) > 1:
            with stage.on_its_own(_("Candidates")):
                spaces = space_picker.spaces(names, layer)
                reason = space_picker.comparable(spaces)
                unread = space_picker.choose_judgments(spaces)
                samples = None if reason or unread else _samples(spaces)
            view = _tools(names, spaces, layer, samples) if spaces and not reason else ""
    if len(names) < 2:
        overview.without_pair(names)
    elif reason:
        overview.without_common(reason, names, ready)
    elif unread:
        overview.empty(_("No relevance judgments"), unread)
    elif view == CURVES:
        with stage.below():
            score_tables.curves(ready, layer, names)
    elif view == towers.THRESHOLD:
        with stage.below():
            towers.show_threshold(spaces)
    elif view == towers.DUELS:
        if all(cache.embedding(space) is not None for space in spaces[:2]):
            towers.show_duels(spaces)
        else:
            verdict.known(spaces, waits=True)
    elif view == "Overview" or samples is None:
        overview.show(spaces, samples)
    else:
        with stage.on_its_own(_("Candidates"), stage.UNREADABLE):
            show(view, spaces, samples)


def _samples(spaces: list[Space]) -> ComparedSamples | None:
    """Return the samples by the chosen accuracy; None if no accuracy is known."""
    comparison = verdict.known(spaces)
    if comparison is None:
        return None
    accuracies = [*comparison.correct]
    metric = query_params.current("by", accuracies, accuracies[0]) if accuracies else ""
    return ComparedSamples(spaces, comparison, metric)


def _tools(names: list[str], spaces: list[Space], layer: str, samples: ComparedSamples | None) -> str:
    """Draw the right side of the toolbar: the views, the report, and rare controls; return the view."""
    st.space("stretch")
    asked = query_params.current("view", [*VIEWS, *RARE], VIEWS[0])
    are_towers = space_picker.are_towers(spaces)
    views = list(dict.fromkeys([*VIEWS, *([towers.DUELS] if are_towers else []), asked]))
    title = _("Disagreements {n}").format(n=f"{samples.one_right:,}") if samples and samples.metric else ""
    view = query_params.one_of(
        st.segmented_control,
        _("Show"),
        views,
        name="view",
        label_visibility="collapsed",
        width="content",
        format_func=lambda one: title if title and one == "Disagreements" else _(one),
    )
    with st.popover(_("Export")):
        if view == VIEWS[0]:
            draw_map_buttons("compare-map-file")
        button.offer(names, "test", layer, str(space_picker.judgments() or ""))
    with stage.more():
        overview.choose_map(spaces, samples)
        if samples is not None and len(samples.comparison.correct) > 1:
            query_params.one_of(st.segmented_control, _("By"), samples.comparison.titles, name="by")
        st.button(_("Swap A and B"), on_click=space_picker.put_at, args=(0, names[1], names), type="tertiary")
        st.button(_("Plot by setting"), on_click=overview.open_view, args=(CURVES,), type="tertiary")
        if are_towers:
            key = towers.THRESHOLD
            st.button(_("Match threshold"), on_click=overview.open_view, args=(key,), type="tertiary")
        else:  # of images with labels, where the scores decide
            st.button(_(towers.DUELS), on_click=overview.open_view, args=(towers.DUELS,), type="tertiary")
    return view


def show(view: str, spaces: list[Space], samples: ComparedSamples) -> None:
    """Draw the chosen view; all views here need a comparison."""
    if view == "Disagreements":
        disagreements.disagree(samples)
        return
    with stage.below():
        if view == "Similarity":
            similarity.alike(spaces, samples.comparison)
        elif scored := verdict.with_scores(spaces, samples.comparison):
            score_tables.table(spaces, scored)
            score_tables.tests(scored)
            if samples.metric:
                score_tables.classes(samples)


state.run(page)
