"""Records as Plotly figures; a figure as PDF: as large as it says, with its fonts, and with nothing from elsewhere."""

import base64
import io
import re
import socket
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import figures
from contrastive_lab.components.scatter import PALETTE, categories
from contrastive_lab.embedding_map import color_names, color_of, hints_of


def test_curves_hold_what_they_are_given() -> None:
    figure = figures.curves({"loss": ([1, 2], [3.0, 2.0])}, "step", "loss")
    assert list(figure.data[0].y) == [3.0, 2.0]
    assert figure.layout.xaxis.title.text == "step"
    assert (figure.layout.legend.y > 1, figure.layout.legend.yanchor) == (True, "bottom"), "it covers the first points"


def test_a_figure_for_a_paper_has_its_size_font_and_legend_inside() -> None:
    figure = figures.curves({"a": ([1, 2], [3.0, 2.0]), "b": ([1, 2], [1.0, 2.0])}, "τ", "loss")
    copy = figures.for_paper(figure, (85, 50), "Times", 8, (1, 0)).layout
    assert (copy.width, copy.height) == (round(85 / 25.4 * 96), round(50 / 25.4 * 96))
    assert copy.font.size == copy.xaxis.title.font.size == pytest.approx(8 / 72 * 96)
    assert "Times" in copy.font.family
    assert (copy.legend.x, copy.legend.xanchor, copy.legend.yanchor) == (0.98, "right", "bottom")
    assert figure.layout.width is None


def test_a_row_that_was_not_judged_is_no_row_without_label() -> None:
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), np.array([0, 1, 1]))
    judged = {"knn:per_sample": np.array([1.0, 0.0, np.nan])}
    values, names = color_of(rows, "right or wrong (kNN)", judged)
    assert values is not None
    assert values.tolist() == [0, 1, 2]
    assert names == ("right", "wrong", "not judged")
    judged["knn:per_sample"][2] = 1
    assert color_of(rows, "right or wrong (kNN)", judged)[1] == ("right", "wrong")


def test_two_towers_are_colored_by_tower_first() -> None:
    columns = {"text": np.array(["a", "b", "c"]), "tower": np.array(["x", "x", "y"]), "pair": np.array(["1", "2", "1"])}
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), columns=columns)
    assert color_names(rows, judged=False, is_run=False) == ["tower", "sample", "text"]
    assert color_names(rows.take([0, 1]), judged=False, is_run=False)[0] == "sample"  # rows of one tower


def test_columns_of_a_list_of_images_color_the_map_and_are_said_of_each() -> None:
    columns = {
        "site": np.array(["a", "b", "a"]),
        "age": np.array([40.0, np.nan, 61.5]),
        "class": np.array(["u", "v", "v"]),
        "same": np.array([1.0, 1.0, 1.0]),
    }
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), np.array([0, 1, 1]), columns=columns)
    offered = color_names(rows, judged=False, is_run=True)
    assert offered == ["class", "site", "age", "class (column)", "loss"]
    sites, names = color_of(rows, "site", {})
    assert sites is not None
    assert sites.tolist() == [0, 1, 0]
    assert names == ("a", "b")
    ages, scale = color_of(rows, "age", {})
    assert scale == ()  # a ramp
    group, labels, _ = categories(ages, scale, 3, PALETTE)
    assert group[0] < group[2] < 8 == group[1]
    assert labels[8] == "no value"
    assert color_of(rows, "class (column)", {})[1] == ("u", "v")
    assert hints_of(rows)[1].splitlines() == ["site: b", "class (column): v", "age: –", "same: 1"]


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
