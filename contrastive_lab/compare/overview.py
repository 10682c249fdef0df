"""Overview of Compare on one screen: the verdict with its dumbbells, the maps, and a strip of disagreements."""

import streamlit as st

from contrastive_core.compare.comparison import Comparison
from contrastive_core.compare.evaluation import name_of
from contrastive_core.runs.run import Run
from contrastive_core.spaces.space import Space
from contrastive_lab import format, guard, query_params, stage
from contrastive_lab.compare import checkpoints, dumbbells, maps, score_tables, space_picker, tower_recall, verdict
from contrastive_lab.compare.disagreements import ComparedSamples, strip
from contrastive_lab.compare.dumbbells import Dumbbell
from contrastive_lab.locale import N_, _

NAMES = {"knn": N_("kNN accuracy"), "linear_probe": N_("Linear probe")}
CLASSES = 10  # rows, those with the largest differences; the tables have all


def show(spaces: list[Space], samples: ComparedSamples | None) -> None:
    """Draw the overview; only the maps if no scores are known."""
    picture, side = stage.columns(is_first=False)
    with side:
        space_picker.say_left_out()
        with guard.on_its_own(_("Candidates"), guard.UNREADABLE):
            if samples is not None:
                _answers(spaces, samples)
            else:
                st.header(_("The verdict comes in a moment"))
                st.caption(_("The scores of each run are computed once. The maps do not wait for them."))
                if verdict.known(spaces, waits=True) is not None:
                    st.rerun()  # it was made while the toolbar was drawn
    with picture, guard.on_its_own(_("Candidates")):
        above, below = st.container(key="compare-maps", gap=None), st.container(key="compare-strip").empty()
        below.caption(_("The samples on which A and B disagree appear here."))  # keeps their room: no map jumps
        with above:
            content = maps.maps(spaces, samples)
        if content and samples is not None:
            with below.container(gap="small"):
                strip(samples, content)


def _answers(spaces: list[Space], samples: ComparedSamples) -> None:
    """Draw the verdict, scores and classes, the similarity of the spaces, and the next step."""
    comparison, metric = samples.comparison, samples.metric
    with st.container(key="compare-verdict", gap="xsmall"):
        verdict.draw(spaces, comparison, metric)
    if metric:
        differing = classes(samples)
        dumbbells.draw(scores(spaces, comparison), differing[:CLASSES], comparison.names)
        if len(differing) > CLASSES:
            text = _("{more} more classes are in the tables.")
            st.caption(text.format(more=len(differing) - CLASSES))
    tower_recall.show(comparison.names, spaces)
    st.markdown(alike(comparison))
    verdict.with_scores(spaces, comparison)  # the linear probe's row comes with them
    label = str(_("See how alike they are"))
    if metric:
        label = _("Look at the {n} disagreements").format(n=f"{samples.one_right:,}")
    view = "Disagreements" if metric else "Similarity"
    with st.container(key="compare-next"):
        st.button(label, type="primary", width="stretch", on_click=open_view, args=(view,))


def open_view(view: str) -> None:
    """Show a view of the page, for a button's `on_click`."""
    query_params.choose("compare-view", view)


def alike(comparison: Comparison) -> str:
    """Describe the similarity of A and B in one line."""
    text = _("CKA {cka} · they share {share} % of neighbors")
    return text.format(cka=f"{comparison.cka[0, 1]:.2f}", share=f"{100 * comparison.overlap[0, 1]:.0f}")


def scores(spaces: list[Space], comparison: Comparison) -> list[Dumbbell]:
    """Return a row for each accuracy, with the references."""
    beside, rows = score_tables.scores_of_references(spaces), []
    for metric, values in comparison.accuracy.items():
        pair = verdict.contrast(comparison, metric, 0, 1)
        ticks = {
            name_of(source): value
            for source, found in beside.items()
            if metric in found and (value := found[metric].value) is not None
        }
        rows.append(
            Dumbbell(NAMES.get(metric, comparison.titles[metric]), values, pair.difference, pair.interval, ticks)
        )
    return rows


def classes(samples: ComparedSamples) -> list[Dumbbell]:
    """Return a row for each class, the largest difference between A and B first; none without labels."""
    comparison, metric = samples.comparison, samples.metric
    of_all = [
        {d.label: d.accuracies[1] for d in comparison.by_class(metric, 0, q)} for q in range(len(comparison.names))
    ]
    return [
        Dumbbell(samples.class_name(d.label), [one[d.label] for one in of_all], d.value, d.interval)
        for d in comparison.by_class(metric, 0, 1)
    ]


def without_pair(names: list[str]) -> None:
    """Draw the stage for fewer than two spaces."""
    space_picker.say_left_out()
    if not names:
        text = _("Comparing needs two runs with weights, or recordings. Train another one.")
        with maps.empty(_("Nothing to compare yet"), text):
            st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        return
    if not checkpoints.with_towers(names):
        maps.empty(_("One is not enough"), _("Choose at least two."))
        return
    with stage.below():
        st.info(_("Choose at least two, or compare two checkpoints below."))
        checkpoints.panel(names)


def without_common(reason: str, names: list[str], ready: list[Run]) -> None:
    """Explain that the runs have different data sets, and offer a run that A can be compared with."""
    space_picker.say_left_out()
    with maps.empty(_("No samples in common"), reason):
        data = {run.name: run.data_key for run in ready}
        other = next((run for run in data if run != names[0] and data[run] == data.get(names[0])), None)
        if other is not None:
            label = _("Compare {a} and {b}").format(a=names[0], b=other)
            st.button(format.plain(label), type="primary", on_click=space_picker.put, args=([names[0], other],))
