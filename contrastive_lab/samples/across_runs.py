"""The same samples across runs: easy for all, hard for all, hard for one."""

import numpy as np
import streamlit as st

from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_core.records.sample_table import SampleTable, difficulty
from contrastive_lab import cache, format, query_params, state
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.components.scatter import ScatterData, draw_scatter
from contrastive_lab.locale import _
from contrastive_lab.samples.current_sample import open_on_findings
from contrastive_lab.samples.table_picker import Pictures, table_or_wait
from contrastive_lab.tables import draw_table

SHOWN = 60


def across(request: SampleRequest, table: SampleTable) -> None:
    """The loss of this run against that of others, on the samples they have in common."""
    run = request.run
    if run is None:
        st.info(
            _("Loaded vectors and recordings are alone here: choose a run with weights in the sidebar to compare runs.")
        )
        return
    of_data = [r for r in state.all_runs() if state.data_key(r) == state.data_key(run)]
    same = {r.name: r for r in of_data if r.weights.exists() and r != run}
    key = f"samples-with-{cache.digest(run.name)}"
    others = query_params.many_of(st.multiselect, _("Against"), same, name="with", default=[*same][:1], most=7, key=key)
    if not others:
        st.info(_("Choose a run of the same data, or train one."))
        return
    tables = {request.name: table}
    for name in others:
        other = table_or_wait(request_of(name, request.split, str(same[name].config.get("loss"))))
        if other is None:
            return
        tables[name] = other
    linked(request, tables)


def linked(request: SampleRequest, tables: dict[str, SampleTable]) -> None:
    """The losses of two runs as axes, and the samples that are easy or hard, of all runs."""
    names, first = [*tables], tables[request.name]
    ids = [i for i in map(str, first.columns["id"]) if all(t.row(i) is not None for t in tables.values())]
    rows = [[row for i in ids if (row := t.row(i)) is not None] for t in tables.values()]
    losses = np.stack([t.columns["loss"][some] for t, some in zip(tables.values(), rows, strict=True)])  # (runs, n)
    code, finite = difficulty(losses), np.flatnonzero(np.isfinite(losses).all(0))
    kinds = ["neither", _("easy for all"), _("hard for all"), *(_("hard only for {n}").format(n=n) for n in names)]
    high = np.stack([ranks(v) for v in losses[:2]], 1)[finite]  # (n, 2)
    template = _(
        "Right: {first}. Up: {second}. Axes show the share of samples with a lower loss because losses of different "
        "runs have no common scale. Hard: among the highest 10 %. Easy: in the lower half. Select points to see the "
        "samples."
    )
    st.caption(template.format(first=format.plain(names[0]), second=format.plain(names[1])))
    left, right = st.columns([3, 2], gap="large")
    with left:
        title = _("loss of {first} against loss of {second}").format(first=names[0], second=names[1])
        content, drawn = cache.digest(names, request), [ids[i] for i in finite]
        data = ScatterData(high, drawn, content, code[finite], kinds, title=title)
        picked = draw_scatter(data, height=460, key=f"samples-across-{cache.digest(names[:2])}").tolist()
    with right:
        counts = np.bincount(code[finite], minlength=len(kinds))
        titles = {q: format.plain(f"{kind}: {counts[q]}") for q, kind in enumerate(kinds)}
        kind = query_params.one_of(st.radio, _("Samples"), titles, name="kind", default=2, format_func=titles.get)
        st.caption(_("Rank correlation of the two losses: {both}.").format(both=f"{np.corrcoef(high.T)[0, 1]:.2f}"))
        listed = finite[picked] if picked else finite[code[finite] == kind]
        listed = listed[np.argsort(-losses[:, listed].mean(0), kind="stable")]

        def record(i: int) -> dict[str, object]:
            own = {_("loss of {n}").format(n=n): float(v) for n, v in zip(names, losses[:, i], strict=True)}
            return {"id": ids[i], "kind": kinds[code[i]], **own}

        def as_csv() -> str | bytes:
            return format.table_csv(record(i) for i in listed.tolist())

        st.download_button(_("These as CSV"), as_csv, "across.csv", "text/csv", on_click="ignore")
    text, what = _("{listed} {what}. Click one to open it."), _("selected") if picked else kinds[kind]
    st.caption(text.format(listed=len(listed), what=format.plain(what)))
    _gallery(request, first, [ids[i] for i in listed[:SHOWN]], f"across-{cache.digest(names, kind, picked)}")


def _gallery(request: SampleRequest, table: SampleTable, ids: list[str], key: str) -> None:
    """Images of the samples, of which a click opens one; their labels where there are no images."""
    labels = [str(table.columns["label"][table.row(i)]) for i in ids]
    images = Pictures(request).stack(ids)
    if images is None:
        draw_table([{"id": i, "label": label} for i, label in zip(ids, labels, strict=True)])
    elif chosen := draw_gallery(images, labels, title=_("samples across runs"), key=key):
        open_on_findings(ids[chosen[-1]])
        st.rerun()


def ranks(values: np.ndarray) -> np.ndarray:
    """Share (n) of samples with a lower value."""
    shares = np.empty(len(values))
    shares[np.argsort(values, kind="stable")] = np.arange(len(values)) / max(1, len(values) - 1)
    return shares
