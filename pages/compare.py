"""Compare: two to eight spaces of the same samples, and one verdict."""

from __future__ import annotations

import streamlit as st

from contrastive_core.embeddings import ref
from contrastive_core.evaluation.compare import Comparison
from contrastive_core.runs import Run
from contrastive_lab import cache, format, guard, query_params, state
from contrastive_lab.compare import disagreements, knob_curves, tables
from contrastive_lab.embedding_source import Source, of_run, of_vectors
from contrastive_lab.progress import answer_or_wait, scored_or_wait

VIEWS = ("Maps", "Every test", "How alike", "Where they disagree", "A knob as an axis")
MOST = 8


def page() -> None:
    st.title("Compare")
    ready = [r for r in state.all_runs() if r.weights.exists()]
    known = offered(ready)
    if len(known) < 2:
        st.info("Two runs with weights are needed. Train another one, and compare.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = query_params.many_of(
            st.multiselect, "Runs and loaded vectors", known, name="runs", most=MOST,
            default=start(ready, known), format_func=lambda n: known[n].name,
        )  # fmt: skip
        which = query_params.one_of(st.segmented_control, "Features", ["h", "z"], name="features",
                                    help="h: backbone, z: projection", width="content")  # fmt: skip
    if len(chosen) < 2:
        st.info("Choose at least two.")
        return
    sources = [known[n] for n in chosen]
    made = None
    with guard.on_its_own("One of these"):
        made = verdict(sources, which)
    view = query_params.one_of(st.segmented_control, "Show", VIEWS, name="view",
                               label_visibility="collapsed")  # fmt: skip
    if view == "A knob as an axis":
        knob_curves.axis(ready, which)
    elif made is not None:
        with guard.on_its_own("One of these"):
            show(view, sources, made, which)


def offered(ready: list[Run]) -> dict[str, Source]:
    """Runs with weights, and vectors that were loaded on Explore."""
    found = {}
    for run in ready:
        with guard.on_its_own(run.name):
            found[run.name] = of_run(run)
    return found | {ref.PREFIX + key: of_vectors(key, about) for key, about in ref.loaded().items()}


def start(ready: list[Run], known: dict[str, Source]) -> list[str]:
    """The sidebar's run with another of its data set."""
    if not ready:
        return []
    own = state.chosen_run() or ready[0]
    same = [r.name for r in ready if state.data_key(r) == state.data_key(own)]
    return [own.name, *[n for n in same if n != own.name]][:2]


def verdict(sources: list[Source], which: str) -> Comparison | None:
    """The first thing on the page: who is better, by how much; None while it is not known."""
    data = {s.data for s in sources if s.run}
    if len(data) > 1:
        named = ", ".join(sorted(d.strip() for d in data))
        st.warning(
            f"These runs have no samples in common: they are of {format.plain(named)}. "
            "Choose runs of one data set."
        )
        return None
    scored = [scored_or_wait(s.run) for s in sources if s.run]  # a line for each that is not
    if not all(scored):
        return None
    values = {
        "names": [s.name for s in sources],
        "spaces": [s.space("test", which if s.run else "loaded").values for s in sources],
        "groups": [[method_of(s), seed_of(s)] for s in sources],
    }
    found = answer_or_wait("comparison", values, "Comparing")
    if found is None:
        return None
    made = Comparison.of(found.meta, found.arrays)
    st.subheader(format.plain(made.verdict))
    if probe := made.verdicts.get("linear_probe"):
        st.markdown(f"By the linear probe: {format.plain(probe)}")
    for text in filter(None, made.seeds.values()):
        st.markdown(f"**{format.plain(text)}**")
    st.caption(about(made, sources, which))
    tables.table(sources, made)
    return made


def about(made: Comparison, sources: list[Source], which: str) -> str:
    """What the verdict rests on."""
    n, whole = len(made.ids), max(len(rows) for s in sources if (rows := rows_of(s, which)))
    text = f"{n:,} samples that all have in common" + (f" of {whole:,}. " if n < whole else ". ")
    text += f"Features {which}. " if any(s.run for s in sources) else ""
    return text + (
        "A difference is claimed if its 95 % interval excludes zero and its p, corrected for the "
        "number of pairs and of accuracies, is below 0.05."
    )


def rows_of(source: Source, which: str):
    return source.rows("test" if source.splits else "", which)


def method_of(source: Source) -> str:
    """What runs that differ in their seed alone have in common."""
    if source.run is None:
        return source.name
    config = {k: v for k, v in source.run.config.items() if k not in ("seed", "device", "threads")}
    return f"{config.get('method')} {cache.digest(sorted(config.items(), key=str))[:4]}"


def seed_of(source: Source) -> int:
    return int(source.run.config.get("seed") or 0) if source.run else 0


def show(view: str, sources: list[Source], made: Comparison, which: str) -> None:
    place = sources[0].place("test")
    if view == "Maps":
        tables.maps(sources, "test", which, place)
    elif view == "Every test":
        tables.tests(made)
    elif view == "How alike":
        tables.alike(sources, made, which)
    else:
        disagreements.disagree(sources, made, "test", place)


state.run(page)
