"""A figure as PDF: as large as it says, with its fonts, and with nothing from elsewhere."""

import base64
import io
import re
import socket
from pathlib import Path

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from contrastive_lab import figures

TEXT = '<text x="9" y="90" style="font-family: Helvetica, Arial, \'Liberation Sans\'; font-size: 11px">τ − 图 é</text>'


def drawing(content: str = TEXT, width: str = "85mm") -> str:
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {names} width="{width}" height="50mm" viewBox="0 0 321.26 188.98">{content}</svg>'


def test_size_and_fonts() -> None:
    page = figures.pdf_of(drawing())
    box = re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", page)
    assert box is not None
    assert [float(side) / 72 * 25.4 for side in box.groups()] == pytest.approx([85, 50], abs=0.01)
    assert b"FontFile" in page
    assert b"/Image" not in re.sub(rb"/Image[BCI]", b"", page)  # text and shapes stay vectors


def test_pictures_come_inside_or_not_at_all(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(picture, "PNG")
    inside = "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode()
    assert b"/Subtype/Image" in figures.pdf_of(drawing(f'<image href="{inside}" width="9" height="9"/>')).replace(
        b" ", b""
    )
    (tmp_path / "secret.png").write_bytes(picture.getvalue())
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        elsewhere = [f"{address}/a.png", f"{tmp_path}/secret.png", (tmp_path / "secret.png").as_uri(), "secret.png"]
        for href in elsewhere:
            for name in ("href", "xlink:href"):
                with pytest.raises(ValueError, match=r"linked image|not found"):
                    figures.pdf_of(drawing(f'<image {name}="{href}" width="9" height="9"/>'))
        style = f'<style>@import url("{address}/a.css"); text {{ fill: url("{address}/b.svg#c") }}</style>'
        assert figures.pdf_of(drawing(style + TEXT)).startswith(b"%PDF")
        with pytest.raises(TimeoutError):
            server.accept()


def test_the_answer_of_the_server() -> None:
    client = TestClient(Starlette(routes=[figures.PDF_ROUTE]))
    answer = client.post("/figure.pdf", content=drawing().encode())
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/pdf")
    assert answer.content.startswith(b"%PDF")
    entity = '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + drawing("<text>&x;</text>")
    for wrong in ("", "no drawing", drawing(width="wide"), drawing(width="-5mm"), entity):
        assert client.post("/figure.pdf", content=wrong.encode()).status_code == 400, wrong
    assert client.post("/figure.pdf", content=b"\xff").status_code == 400
    assert client.get("/figure.pdf").status_code == 405
