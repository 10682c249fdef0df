"""Compressed vectors on Explore: recall@10 and nDCG@10 against the bytes of a vector."""

from pathlib import Path

import streamlit as st

from contrastive_core.compare.comparison import judgments_request
from contrastive_core.compare.compression import (
    METRICS,
    PRECISION_TITLES,
    REDUCTIONS,
    CompressedScore,
    by_vector,
    scores_of,
    smallest,
)
from contrastive_core.compare.judged_queries import FIGURES
from contrastive_core.spaces.space import Space
from contrastive_lab import figures, format, locale, query_params
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import answer_or_wait

VIEW = N_("Compression")
MARGINS = (0.5, 1.0, 2.0, 5.0)  # points


def panel(space: Space) -> None:
    """Draw the smallest vectors that lose little, the curve for one kind of dimensions, and a table of all."""
    about = _("Relevance of documents to queries. Without a file, partners count as relevant.")
    path = Path(path_input(_("Relevance judgments"), "qrels", "/path/to/qrels/test.tsv", about)).expanduser()
    judged = judgments_request(path if path.is_absolute() and path.is_file() else "")
    answer = answer_or_wait(
        "compression", {"space": space.values, **judged}, message("Compressed vectors"), may_stop=True
    )
    if answer is None:
        return
    found, width = scores_of(answer.meta["scores"]), int(answer.meta["width"])
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        box = st.segmented_control
        metric = query_params.one_of(box, _("Metric"), METRICS, name="metric", format_func=FIGURES.get)
        kind = query_params.one_of(
            box, _("Dimensions"), REDUCTIONS, name="kind", default="pca", format_func=REDUCTIONS.get
        )
        margin = query_params.one_of(box, _("Points that may be lost"), MARGINS, name="margin")
    _smallest(found, margin, width)
    _curve(found, metric, kind)
    counts = {k: f"{answer.meta[k]:,}" for k in ("queries", "of", "documents")}
    text = _(
        "{queries} of {of} queries among {documents} documents. Bars are separate 95 % intervals of the difference "
        "from the full vectors (paired bootstrap over queries). Principal axes come from the documents alone."
    )
    st.caption(text.format(**counts))
    rows = [_row(scores) for scores in by_vector(found)]
    draw_table(rows, hide_index=True)
    st.download_button(_("Table as CSV"), format.table_csv(rows), "compression.csv", "text/csv", on_click="ignore")


def _smallest(found: list[CompressedScore], margin: float, width: int) -> None:
    kept = smallest(found, margin / 100)
    if not kept:
        st.info(_("No vectors are shown to lose at most {margin} points.").format(margin=f"{margin:g}"))
        return
    text = _("**{size} instead of {full} bytes per vector** lose at most {margin} points.")
    values = {"size": f"{kept[0].size:,g}", "full": f"{4 * width:,}", "margin": f"{margin:g}"}
    said = " ".join(format.plain(locale.text(one.contrast.against(margin / 100))) for one in kept)
    st.markdown(text.format(**values), help=said)


def _curve(found: list[CompressedScore], metric: str, kind: str) -> None:
    """Draw a line for each precision, with the interval of the loss at each point."""
    full = next(one.value - one.loss for one in found if one.metric == metric)
    lines = {
        locale.text(title): [s for s in found if (s.metric, s.reduction, s.precision) == (metric, kind, precision)]
        for precision, title in PRECISION_TITLES.items()
    }
    series = {name: ([s.size for s in line], [100 * s.value for s in line]) for name, line in lines.items()}
    figure = figures.curves(series, _("bytes per vector"), f"{FIGURES[metric]}, %", height=360)
    for trace, line in zip(figure.data, lines.values(), strict=True):
        above, below = ([100 * abs(s.interval[end] - s.loss) for s in line] for end in (1, 0))
        trace.error_y = {"type": "data", "array": above, "arrayminus": below, "symmetric": False, "thickness": 1}
    figure.add_hline(y=100 * full, line_dash="dot", annotation_text=_("full vectors"), annotation_position="top left")
    sizes = sorted({s.size for line in lines.values() for s in line})
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{size:,g}" for size in sizes])
    figures.draw(figure, f"compression-{metric}-{kind}", "compression")


def _row(scores: list[CompressedScore]) -> dict[str, object]:
    first = scores[0]
    row: dict[str, object] = {N_("bytes"): first.size, N_("vectors"): locale.text(first.contrast.first)}
    for one in scores:
        title = str(FIGURES[one.metric])
        row[f"{title}, %"] = round(100 * one.value, 1)
        row[f"{title}, 95 %"] = format.interval((100 * one.interval[0], 100 * one.interval[1]), "+.1f")
    return row
