"""The same samples across runs: easy for all, hard for all, hard for one."""

from __future__ import annotations

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


def across(request: SampleRequest, table: SampleTable, pictures: Pictures) -> None:
    """The loss of this run against that of others, on the samples they have in common."""
    run = request.run
    if run is None:
        st.info(
            _("Loaded vectors and recordings are alone here: choose a run with weights in the sidebar to compare runs.")
        )
        return
    same = [
        r.name for r in state.all_runs() if state.data_key(r) == state.data_key(run) and r.weights.exists() and r != run
    ]
    others = query_params.many_of(
        st.multiselect,
        _("Against"),
        same,
        name="with",
        default=same[:1],
        most=7,
        key=f"samples-with-{cache.digest(run.name)}",
    )
    if not others:
        st.info(_("Choose a run of the same data; train one if there is none."))
        return
    tables = [table]
    for name in others:
        loss = str(next(r for r in state.all_runs() if r.name == name).config.get("loss"))
        other = table_or_wait(request_of(name, request.split, loss))
        if other is None:
            return
        tables.append(other)
    linked(request, tables, [request.name, *others], pictures)


def linked(request: SampleRequest, tables: list[SampleTable], names: list[str], pictures: Pictures) -> None:
    ids = [i for i in map(str, tables[0].columns["id"]) if all(t.row(i) is not None for t in tables)]
    rows = [[r for i in ids if (r := t.row(i)) is not None] for t in tables]
    losses = np.stack([t.columns["loss"][r] for t, r in zip(tables, rows, strict=True)])  # (runs, n)
    code = difficulty(losses)
    kinds = ["neither", _("easy for all"), _("hard for all"), *(_("hard for {n} alone").format(n=n) for n in names)]
    finite = np.isfinite(losses).all(0)
    high = np.stack([ranks(v) for v in losses[:2]], 1)  # (n, 2)
    _explain_axes(names)
    left, right = st.columns([3, 2], gap="large")
    with left:
        data = ScatterData(
            high[finite],
            [i for i, k in zip(ids, finite, strict=True) if k],
            cache.digest(names, request),
            code[finite],
            kinds,
            title=_("loss of {first} against loss of {second}").format(first=names[0], second=names[1]),
        )
        key = f"samples-across-{cache.digest(names[:2])}"
        picked = draw_scatter(data, height=460, key=key).tolist()
    with right:
        kind = _choose_kind(kinds, code[finite])
        both = np.corrcoef(high[finite].T)[0, 1]
        st.caption(_("Rank correlation of the two losses: {both}.").format(both=f"{both:.2f}"))
        listed = np.flatnonzero(finite)[picked] if picked else np.flatnonzero(finite & (code == kind))
        listed = listed[np.argsort(-losses[:, listed].mean(0), kind="stable")]
        st.download_button(
            _("These as CSV"), lambda: _csv(ids, listed, names, losses, kinds, code), "across.csv", "text/csv"
        )
    labels = [str(tables[0].columns["label"][r]) for r in rows[0]]
    what = format.plain("selected" if picked else kinds[kind])
    st.caption(_("{listed} {what}; a click opens one.").format(listed=len(listed), what=what))
    part = listed[:SHOWN]
    key = f"across-{cache.digest(names, kind, picked)}"
    _gallery([ids[i] for i in part], [labels[i] for i in part], pictures, key)


def _explain_axes(names: list[str]) -> None:
    """What the two axes show, and which samples count as hard or easy."""
    st.caption(
        _(
            "{first} to the right, {second} upwards: share of samples with a lower loss, since "
            "losses of different runs have no common scale. Hard: among the highest 10 %; easy: "
            "in the lower half. Select points to see them."
        ).format(first=format.plain(names[0]), second=format.plain(names[1]))
    )


def _choose_kind(kinds: list[str], code: np.ndarray) -> int:
    counts = np.bincount(code, minlength=len(kinds))
    return query_params.one_of(
        st.radio,
        _("Samples"),
        range(len(kinds)),
        name="kind",
        default=2,
        format_func=lambda c: format.plain(f"{kinds[c]}: {counts[c]}"),
    )


def _csv(
    ids: list[str], listed: np.ndarray, names: list[str], losses: np.ndarray, kinds: list[str], code: np.ndarray
) -> str:
    rows = [
        {
            "id": ids[i],
            "kind": kinds[code[i]],
            **{_("loss of {n}").format(n=n): float(v) for n, v in zip(names, losses[:, i], strict=True)},
        }
        for i in listed
    ]
    return format.table_csv(rows)


def _gallery(ids: list[str], labels: list[str], pictures: Pictures, key: str) -> None:
    """Images of the samples, of which a click opens one; their labels where there are no images."""
    images = pictures.stack(ids)
    if images is None:
        draw_table([{"id": i, "label": label} for i, label in zip(ids, labels, strict=True)])
        return
    chosen = draw_gallery(images, labels, title=_("samples across runs"), key=key)
    if chosen:
        open_on_findings(ids[chosen[-1]])
        st.rerun()


def ranks(values: np.ndarray) -> np.ndarray:
    """Share (n) of samples with a lower value."""
    shares = np.empty(len(values))
    shares[np.argsort(values, kind="stable")] = np.arange(len(values)) / max(1, len(values) - 1)
    return shares
