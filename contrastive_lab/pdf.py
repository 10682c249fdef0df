"""Figures as PDF: the browser posts a drawing as SVG and receives vector graphics with embedded fonts."""

import io
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

LARGEST = 64 << 20  # bytes of an SVG
PAGE = "#set page(width: {width}, height: {height}, margin: 0pt)\n"
DRAWING = '#image(bytes(sys.inputs.svg), format: "svg", width: 100%)'


def pdf_of(svg: str) -> bytes:
    """Return a page of the size of the drawing, which is given in millimeters. Raises ValueError for an invalid
    drawing, and for one that refers to a file or URL: nothing is fetched."""
    import typst

    try:
        _start, drawing = next(ET.iterparse(io.StringIO(svg), events=("start",)))
        width, height = (f"{float(drawing.attrib[side].removesuffix('mm')):g}mm" for side in ("width", "height"))
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.typ")
            page.write_text(PAGE.format(width=width, height=height) + DRAWING, "utf-8")
            pdf: bytes = typst.compile(page, root=page.parent, sys_inputs={"svg": svg})
            return pdf
    except (ET.ParseError, KeyError, typst.TypstError) as error:
        raise ValueError(str(error)) from None


async def _answer(request: Request) -> Response:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            return PlainTextResponse("too large", 413)
    try:
        return Response(await run_in_threadpool(pdf_of, body.decode()), media_type="application/pdf")
    except ValueError as error:
        return PlainTextResponse(str(error), 400)


ROUTE = Route("/figure.pdf", _answer, methods=["POST"])
