"""The file itself: sections in the order in which they are read, one style, one script."""

import base64
import hashlib
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from contrastive_core.cli.output import out_path, print_result, progress_of
from contrastive_core.records import atomic
from contrastive_core.records.comparison import ACCURACIES, Comparison
from contrastive_core.records.evaluation import SOURCES
from contrastive_core.records.score import Score
from contrastive_lab import format
from contrastive_lab.compare.comparison_request import CLAIMED
from contrastive_lab.components.loss_view import pack_loss_view
from contrastive_lab.components.scatter import ScatterData, pack_scatter
from contrastive_lab.components.shared.bundle import bundle, style_sheet
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet, thumbnail_sheet
from contrastive_lab.components.shared.transport import ALIGN, digest
from contrastive_lab.report.contents import Contents, ReportRequest, RunPart, gather
from contrastive_lab.report.markup import Html, data_script, el, verbatim

STYLE = Path(__file__).with_name("page.css")
PICTURES = 2_400_000  # bytes of all thumbnails: a third more as text; the rest has room in 5 MB
FOOT = "Made by Contrastive Lab. The file holds all that it shows, and sends nothing anywhere."
WITHOUT_SCRIPTS = (
    "The maps and the live loss view need JavaScript, which is off here; every figure below is plain text."
)


def document(contents: Contents, day: date) -> str:
    """The report as one HTML file that asks nobody for anything."""
    parts = contents.parts
    title = " and ".join(p.title for p in parts) if len(parts) < 3 else f"{len(parts)} runs"
    sheets = _sheets(parts)
    lines = [*(f"{part.title}: {part.about}" for part in parts), f"{day:%d %B %Y}"]
    note = el("noscript", el("p", WITHOUT_SCRIPTS, class_="note"))
    header = el("header", el("h1", title), *(el("p", line, class_="about") for line in lines), note)
    runs = [_run(part, number, sheet) for number, (part, sheet) in enumerate(zip(parts, sheets, strict=True))]
    pictures = {_name(sheet): data_script(_padded(sheet), id=_name(sheet)) for sheet in sheets if sheet.picture}
    body = el("main", header, _verdict(contents), *runs, el("footer", FOOT), *pictures.values())
    script = bundle("report/main.js")
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (  # the browser runs this one script, and fetches nothing at all
        f"default-src 'none'; script-src 'sha256-{own}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("title", f"{title}: Contrastive Lab"),
        verbatim("style", style_sheet("lab", "map") + STYLE.read_text("utf-8")),
    )
    page = el("html", head, el("body", body, verbatim("script", script, type="module")), lang="en")
    return f"<!doctype html>\n{page}\n"


# --- pictures ----------------------------------------------------------------------------------


def _sheets(parts: Sequence[RunPart]) -> list[ThumbnailSheet]:
    """The thumbnails of every map; runs on the same images share them."""
    keys = [None if p.images is None else hash(p.images.tobytes()) for p in parts]
    most = PICTURES // max(1, len({*keys} - {None}))
    by_key = {k: thumbnail_sheet(p.images, most) for k, p in zip(keys, parts, strict=True)}
    return [by_key[k] for k in keys]


def _name(sheet: ThumbnailSheet) -> str | None:
    """The id of the element that holds it."""
    return f"sheet-{hashlib.sha256(sheet.picture).hexdigest()[:12]}" if sheet.picture else None


def _padded(sheet: ThumbnailSheet) -> bytes:
    return sheet.picture + b"\0" * (-len(sheet.picture) % ALIGN)


# --- the comparison ----------------------------------------------------------------------------


def _verdict(contents: Contents) -> Html | None:
    """Which run is better and by how much; None where there is one run."""
    comparison = contents.comparison
    if comparison is None:
        return el("section", el("p", contents.apart, class_="note")) if contents.apart else None
    others = [text for text in comparison.verdicts.values() if text != comparison.verdict]
    return el(
        "section",
        el("h2", comparison.verdict, class_="verdict"),
        *(el("p", f"By the linear probe: {text}") for text in others),
        *(el("p", el("strong", text)) for text in comparison.seeds.values() if text),
        _differences(comparison) if comparison.differences else None,
        el("p", f"{len(comparison.ids):,} samples that all share. {CLAIMED}", class_="about"),
    )


def _differences(comparison: Comparison) -> Html:
    rows = []
    for d in comparison.differences:
        value, low, high = (f"{100 * v:+.1f}" for v in (d.value, *d.interval))
        claimed = "yes" if d.claimed else "no"
        rows.append((ACCURACIES[d.metric], d.a, d.b, value, f"{low} to {high}", f"{d.p_corrected:.2g}", claimed))
    head = ("", "A", "B", "A − B, points", "95 %", "p, corrected", "claimed")
    return _table(head, rows, "Differences of accuracy between two runs")


# --- one run -----------------------------------------------------------------------------------


def _run(part: RunPart, number: int, sheet: ThumbnailSheet) -> Html:
    """One run: scores, map, live view, settings."""
    settings = [el("div", el("dt", name), el("dd", value)) for name, value in part.settings]
    return el(
        "section",
        el("h2", part.title),
        *(el("p", note, class_="note") for note in part.notes),
        _scores(part),
        el("h3", "Map"),
        _map(part, number, sheet),
        *_live_view(part),
        el("h3", "Settings"),
        el("dl", *settings, class_="settings"),
        class_="run",
    )


def _map(part: RunPart, number: int, sheet: ThumbnailSheet) -> Html:
    """The map and how it was made. Its pictures, the last of its bytes, stand once in the file."""
    rows, shown, settings = part.rows, part.shown, part.map_about["settings"]
    some = f"{len(shown):,} of {len(rows):,}" if len(shown) < len(rows) else ""
    labels = None if rows.labels is None else rows.labels[shown]
    data = ScatterData(
        part.xy,
        [rows.ids[int(i)] for i in shown],
        digest(part.title, number),
        labels,
        () if labels is None else rows.classes or tuple(map(str, range(int(labels.max(initial=-1)) + 1))),
        thumbnails=sheet,
        title=f"{str(settings['kind']).upper()} map of {part.title}",
        note=some and f"{some} points",
    )
    blob = pack_scatter(data, height=440).removesuffix(_padded(sheet))
    caption = format.map_of(settings) + (some and f"{some} samples, drawn by lot. ")
    caption += format.quality_of(part.map_about["quality"])
    return el(
        "figure",
        el("div", data_script(blob), data_part="scatter", data_sheet=_name(sheet)),
        el("figcaption", f"{caption}Scores are computed in the embedding, never on the map."),
    )


def _live_view(part: RunPart) -> list[Html]:
    if (view := part.loss_view) is None:
        return []
    drag = "Drag the knob and every pair answers. " if view.first.knob else ""
    text = f"{drag}A batch of this run's own data under {view.title}; the encoder is frozen."
    place = el("div", data_script(pack_loss_view(view)), data_part="loss_view")
    return [el("h3", "What the loss does"), el("p", text, class_="about"), place]


def _scores(part: RunPart) -> Html:
    """Each score of the run with its interval, beside the other layer and the references."""
    if part.evaluation is None:
        return el("p", "This split has not been scored.", class_="note")
    known = part.evaluation.scores
    sources = [part.layer, *(s for s in SOURCES if s != part.layer and s in known)]
    rows = []
    for name in dict.fromkeys(name for s in sources for name in known.get(s, {})):
        by_source = [known.get(s, {}).get(name) for s in sources]
        rows.append((_title(next(filter(None, by_source))), *map(_figure, by_source)))
    return _table(("", *(SOURCES[s] for s in sources)), rows, f"Scores of {part.title}")


def _title(score: Score) -> Html:
    """What was taken, and how: an accuracy without its k says nothing."""
    used = {k: v for k, v in score.extras.items() if isinstance(v, str | int | float)}
    shown = {k: v for k, v in used.items() if k not in ("n", "sample", "recall")}
    how = ", ".join(f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in shown.items())
    return el("span", score.title, el("small", how) if how else None)


def _figure(score: Score | None) -> Html | str:
    """A figure, its interval and what it is made of below it."""
    if score is None or score.value is None:
        return "–"
    notes = filter(None, [format.interval_of(score), score.approximation])
    return el("span", format.figure_of(score), *(el("small", note) for note in notes))


def _table(head: Sequence[str], rows: Sequence[Sequence[Html | str]], alt: str) -> Html:
    """A table that can be scrolled sideways where the screen is narrow."""
    lines = [el("tr", el("th", row[0], scope="row"), *(el("td", cell) for cell in row[1:])) for row in rows]
    top = el("tr", *(el("th", text, scope="col") for text in head))
    table = el("table", el("thead", top), el("tbody", *lines), aria_label=alt)
    return el("div", table, class_="wide", tabindex="0", role="region", aria_label=alt)


# --- the command `report` ------------------------------------------------------------------------


def report(args: Namespace) -> None:
    """Write one HTML file of some runs."""
    out = out_path(args.out, ".html", ".htm")
    asked = ReportRequest(args.split, args.layer, args.map, args.device)
    with progress_of(args) as on_progress:
        contents = gather(args.runs, asked, on_progress)
        on_progress("the file", None)
        page = document(contents, datetime.now(UTC).date()).encode()
        atomic.write_bytes(out, page, shared=True, parents=False)
    names = [part.title for part in contents.parts]
    record = {"out": str(out), "bytes": len(page), "runs": names}
    print_result(args, record, f"{out}: {len(page) / 1e6:.1f} MB, {', '.join(names)}")
