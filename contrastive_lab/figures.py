"""Plotly figures and tables on a page. Each figure has a dialog that saves it as SVG or PDF in a size and font for a
paper. Table headings are shown in the session's language; the column names stay English.

Plotly is imported when the first figure is drawn. For a PDF the browser posts a drawing as SVG to the server and
receives vector graphics with embedded fonts."""

import io
import re
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from contrastive_core.base.score import Score
from contrastive_lab import format, locale
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.components.shared.mount import mount, pack
from contrastive_lab.locale import N_, Message, _, text

WIDTHS, HEIGHTS = (85, 120, 180), (50, 70, 100, 140)  # mm; a column is about 85 wide, a page 180
FONTS = {
    "Helvetica": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
    "Times": "'Times New Roman', Times, 'Liberation Serif', serif",
    "Courier": "'Courier New', Courier, 'Liberation Mono', monospace",
}
SIZES = (6, 7, 8, 9, 10, 12)  # points
CORNERS = {N_("top right"): (1, 1), N_("top left"): (0, 1), N_("bottom right"): (1, 0), N_("bottom left"): (0, 0)}
PIXELS = 96 / 25.4  # of a millimeter
TITLE = N_("Save figure")


def draw(figure: Any, name: str, key: str, saved: Any = None) -> None:
    """Draw a figure with a button that opens the dialog. Args: name: of the file; key: of the chart, unique;
    saved: what the dialog saves, if not this figure."""
    st.plotly_chart(figure, key=key, config=NO_BAR)
    if not st.button(_(TITLE), key=f"save-{key}", icon=":material/download:", type="tertiary"):
        return

    def choose() -> None:
        row = st.container(horizontal=True)
        width = row.segmented_control(_("Width, mm"), WIDTHS, default=WIDTHS[0], required=True)
        height = row.segmented_control(_("Height, mm"), HEIGHTS, default=HEIGHTS[1], required=True)
        font = row.segmented_control(_("Font"), FONTS, default="Helvetica", required=True)
        size = row.segmented_control(_("Font size, pt"), SIZES, default=8, required=True)
        corner = row.segmented_control(_("Legend"), CORNERS, default="top right", required=True, format_func=_)
        shown = for_paper(figure if saved is None else saved, (width, height), font, size, CORNERS[corner])
        st.plotly_chart(shown, theme=None, width="content", config={"staticPlot": True}, key="figure-file")
        mount("figure_file", pack(name=re.sub(r"[^\w.-]+", "-", name).strip("-")), None, "figure-file-buttons")

    st.dialog(_(TITLE), width="large")(choose)()


def for_paper(figure: Any, size_mm: tuple[int, int], font: str, size: int, corner: tuple[int, int]) -> Any:
    """Return a copy of a figure on white with the legend inside. Args: size: font size in points; corner: of the
    legend."""
    import plotly.graph_objects as go

    x, y = corner
    legend = {"x": 0.02 + 0.96 * x, "y": 0.02 + 0.96 * y, "orientation": "v", "bgcolor": "rgba(255, 255, 255, 0.7)"}
    legend |= {"xanchor": ("left", "right")[x], "yanchor": ("bottom", "top")[y]}
    width, height = (round(mm * PIXELS) for mm in size_mm)
    letters = {"family": FONTS[font], "size": size * 96 / 72, "color": "black"}
    copy = go.Figure(figure)
    copy.update_layout(template="simple_white", colorway=PALETTE, width=width, height=height, autosize=False)
    copy.update_layout(font=letters, margin={"l": 8, "r": 8, "t": 8, "b": 8}, legend=legend)
    for update in (copy.update_xaxes, copy.update_yaxes):
        update(automargin=True, title_font=letters)
    return copy


def draw_map_buttons(key: str) -> None:
    """Draw buttons that save the map on the stage as PNG, SVG or PDF."""
    mount("figure_file", pack(name=""), None, key)


def draw_table(
    rows: Any, column_config: Mapping[str, object] | None = None, *, highlighted: int | None = None, **options: Any
) -> Any:
    """Draw rows, a frame or a styled frame with `st.dataframe`. Column names stay English for selections and sorting;
    messages in cells are translated. Args: column_config, options: as for `st.dataframe`; highlighted: a row with
    another background."""
    if isinstance(rows, list):
        rows = [{k: text(v) if isinstance(v, Message) else v for k, v in row.items()} for row in rows]
        names = list(dict.fromkeys(k for row in rows for k in row))
    else:
        names = list(getattr(rows, "data", rows).columns)
    settings: Any = dict(column_config or {})
    for name in names:
        if isinstance(given := settings.get(name), dict):
            more = {k: text(given[k]) for k in ("label", "help") if given.get(k)}
            settings[name] = {**given, "label": text(name), **more}
        elif name not in settings and text(str(name)) != name:
            settings[name] = text(str(name))
    if highlighted is not None:
        import pandas as pd

        look = f"background-color: {'#28323D' if st.context.theme.type == 'dark' else '#E8ECEF'}"
        style = pd.DataFrame(rows).style.format(lambda v: f"{v:.10g}" if isinstance(v, float) else v)  # not 0.200000
        rows = style.apply(lambda row: [look * (row.name == highlighted)] * len(row), axis=1)
    return st.dataframe(rows, column_config=settings or None, **options)


def draw_definitions(scores: Iterable[Score]) -> None:
    """Draw the meaning of each score, or the reason why it has no value."""
    sides = st.columns(2, gap="medium")
    for number, score in enumerate(scores):
        missing = f" *{format.plain(score.missing)}.*" if score.missing else ""
        sides[number % 2].caption(f"**{format.plain(score.title)}**: {format.plain(score.reading)}{missing}")


# --- Plotly figures from records -------------------------------------------------------------------


MARGIN = {"l": 10, "r": 10, "t": 10, "b": 10}  # pixels
NO_BAR = {"displayModeBar": False}  # of a chart with its own button for files
SVG = {  # of a chart whose only button saves it
    "displaylogo": False,
    "modeBarButtons": [["toImage"]],
    "toImageButtonOptions": {"format": "svg"},
}


def curves(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str, height: int = 360) -> Any:
    """Return a figure with a line for each name: (xs, ys). Args: x, y: titles of the axes, which are translated."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, (xs, ys) in series.items():
        figure.add_scatter(x=list(xs), y=list(ys), name=name, mode="lines+markers" if len(xs) < 40 else "lines")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}  # its rows grow upwards, off the curves
    figure.update_layout(
        height=height, margin=MARGIN, xaxis_title=locale.text(x), yaxis_title=locale.text(y), legend=legend
    )
    return figure


def band(figure: Any, xs: Sequence[float], ends: Sequence[tuple[float, float]], name: str, color: str) -> None:
    """Add an area between the two ends at each of xs, behind the figure's lines."""
    outline = {"x": [*xs, *reversed(xs)], "y": [high for _, high in ends] + [low for low, _ in reversed(ends)]}
    look = {"fill": "toself", "fillcolor": color, "line": {"width": 0}, "opacity": 0.25, "mode": "lines", "zorder": -1}
    figure.add_scatter(**outline, **look, name=name, hoverinfo="skip")


def matrix(values: Any, names: Sequence[str], across: Sequence[str], reverse: bool = False) -> Any:
    """Return a heat map of a symmetric matrix (n, n) of shares, with values in the cells. Args: across: short names
    below the columns; reverse: small values get the strong color."""
    import plotly.graph_objects as go

    text = [["–" if v != v else f"{v:.2f}" for v in row] for row in values.tolist()]
    look = {"colorscale": "Blues", "reversescale": reverse, "zmin": 0, "zmax": 1, "showscale": False}
    cells = {"text": text, "texttemplate": "%{text}", "hovertemplate": "%{y} and %{x}: %{text}<extra></extra>"}
    figure = go.Figure(go.Heatmap(z=values.tolist(), x=list(across), y=list(names), **cells, **look))
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    figure.update_layout(height=300, margin=MARGIN)
    return figure


# --- PDF files -------------------------------------------------------------------------------------


LARGEST_SVG = 64 << 20  # bytes of an SVG
PDF_PAGE = "#set page(width: {width}, height: {height}, margin: 0pt)\n"
PDF_DRAWING = '#image(bytes(sys.inputs.svg), format: "svg", width: 100%)'


def pdf_of(svg: str) -> bytes:
    """Return a page of the size of the drawing, which is given in millimeters. Raises ValueError for an invalid
    drawing, and for one that refers to a file or URL: nothing is fetched."""
    import typst

    try:
        _start, drawing = next(ET.iterparse(io.StringIO(svg), events=("start",)))
        width, height = (f"{float(drawing.attrib[side].removesuffix('mm')):g}mm" for side in ("width", "height"))
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.typ")
            page.write_text(PDF_PAGE.format(width=width, height=height) + PDF_DRAWING, "utf-8")
            pdf: bytes = typst.compile(page, root=page.parent, sys_inputs={"svg": svg})
            return pdf
    except (ET.ParseError, KeyError, typst.TypstError) as error:
        raise ValueError(str(error)) from None


async def _answer_pdf(request: Request) -> Response:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_SVG:
            return PlainTextResponse("too large", 413)
    try:
        return Response(await run_in_threadpool(pdf_of, body.decode()), media_type="application/pdf")
    except ValueError as error:
        return PlainTextResponse(str(error), 400)


PDF_ROUTE = Route("/figure.pdf", _answer_pdf, methods=["POST"])
