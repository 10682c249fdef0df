"""The file itself: sections in the order in which they are read, one style, one script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from contrastive_lab.components.loss_view import pack_loss_view
from contrastive_lab.components.scatter import ScatterData, pack_scatter
from contrastive_lab.components.shared.bundle import bundle, style_sheet
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet, thumbnail_sheet
from contrastive_lab.digest import digest
from contrastive_lab.report import sections
from contrastive_lab.report.contents import Contents, RunPart
from contrastive_lab.report.markup import Html, el, script_bytes, verbatim

STYLE = Path(__file__).with_name("page.css")
PICTURES = 2_400_000  # bytes of all thumbnails: a third more as text; the rest has room in 5 MB
FOOT = "Made by Contrastive Lab. The file holds all that it shows, and sends nothing anywhere."
WITHOUT_SCRIPTS = (
    "The maps and the live loss view need JavaScript, which is off here; every figure below is plain text."
)
ALIGN = 8  # of the arrays of `pack`


def document(contents: Contents, day: date) -> str:
    """The report as one HTML file that asks nobody for anything."""
    parts = contents.parts
    title = " and ".join(p.title for p in parts) if len(parts) < 3 else f"{len(parts)} runs"
    sheets = _Sheets(parts)
    body = el(
        "main",
        _head(title, parts, day),
        sections.verdict(contents),
        *(_section(part, number, sheets) for number, part in enumerate(parts)),
        el("footer", FOOT),
        *sheets.kept,
    )
    script = bundle("report/main.js")
    style = style_sheet("lab", "map") + STYLE.read_text("utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        el("title", f"{title}: Contrastive Lab"),
        verbatim("style", style),
    )
    page = el("html", head, el("body", body, verbatim("script", script, type="module")), lang="en")
    return f"<!doctype html>\n{page.markup}\n"


def _policy(script: str) -> str:
    """The browser runs this one script, and fetches nothing at all."""
    digest_of = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest_of}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _head(title: str, parts: Sequence[RunPart], day: date) -> Html:
    return el(
        "header",
        el("h1", title),
        *(el("p", f"{part.title}: {part.about}", class_="about") for part in parts),
        el("p", f"{day:%d %B %Y}", class_="about"),
        el("noscript", el("p", WITHOUT_SCRIPTS, class_="note")),
    )


def _section(part: RunPart, number: int, sheets: _Sheets) -> Html:
    """One run: scores, map, live view, settings."""
    notes = [el("p", note, class_="note") for note in part.notes]
    return el(
        "section",
        el("h2", part.title),
        *notes,
        sections.scores(part),
        el("h3", "Map"),
        _map(part, number, sheets),
        *_live_view(part),
        el("h3", "Settings"),
        sections.settings(part),
        class_="run",
    )


def _map(part: RunPart, number: int, sheets: _Sheets) -> Html:
    rows, shown, settings = part.rows, part.shown, part.map_about["settings"]
    sheet = sheets.of[number]
    kind = str(settings["kind"]).upper()
    labels = None if rows.labels is None else rows.labels[shown]
    count = 0 if labels is None else int(labels.max(initial=-1)) + 1
    data = ScatterData(
        part.xy,
        [rows.ids[int(i)] for i in shown],
        digest(part.title, number),
        labels,
        () if labels is None else rows.classes or tuple(map(str, range(count))),
        thumbnails=sheet,
        title=f"{kind} map of {part.title}",
        note="" if len(shown) == len(rows) else f"{len(shown):,} of {len(rows):,} points",
    )
    return el(
        "figure",
        _place("scatter", pack_scatter(data, height=440), sheets.name(sheet), sheet),
        el("figcaption", sections.map_caption(part)),
    )


def _live_view(part: RunPart) -> list[Html]:
    view = part.loss_view
    if view is None:
        return []
    drag = "Drag the knob and every pair answers. " if view.first.knob else ""
    text = f"{drag}A batch of this run's own data under {view.title}; the encoder is frozen."
    place = _place("loss_view", pack_loss_view(view), None, None)
    return [el("h3", "What the loss does"), el("p", text, class_="about"), place]


def _place(part: str, blob: bytes, name: str | None, sheet: ThumbnailSheet | None) -> Html:
    """Where a browser part stands, with its data; pictures that stand elsewhere are cut off."""
    if sheet is not None:
        blob = blob.removesuffix(sheet.picture + b"\0" * (-len(sheet.picture) % ALIGN))
    data = script_bytes(base64.b64encode(blob).decode())
    return el("div", data, data_part=part, data_sheet=name)


class _Sheets:
    """The thumbnails of every map; runs on the same images share them."""

    def __init__(self, parts: Sequence[RunPart]) -> None:
        keys = [None if p.images is None else hash(p.images.tobytes()) for p in parts]
        most = PICTURES // max(1, len({k for k in keys if k is not None}))
        by_key = {k: thumbnail_sheet(p.images, most) for k, p in zip(keys, parts, strict=True)}
        self.of = [by_key[k] for k in keys]
        self.kept = []
        for sheet in {id(s): s for s in self.of if s.picture}.values():
            padded = sheet.picture + b"\0" * (-len(sheet.picture) % ALIGN)
            text = base64.b64encode(padded).decode()
            kind = "application/octet-stream"
            self.kept.append(verbatim("script", text, type=kind, id=self.name(sheet)))

    def name(self, sheet: ThumbnailSheet) -> str | None:
        """The id of the element that holds it."""
        return f"sheet-{hashlib.sha256(sheet.picture).hexdigest()[:12]}" if sheet.picture else None
