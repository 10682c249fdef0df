"""The report file: sections in reading order, one style sheet, one script."""

import base64
import hashlib
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from contrastive_core.base import storage
from contrastive_core.base.score import Scores
from contrastive_core.cli.command_io import out_path, print_result, progress_of, spaces_of
from contrastive_core.cli.compare import adapter_sentences, query_figures
from contrastive_core.cli.evaluate import cost_cells, cost_sentences
from contrastive_core.compare.comparison import CLAIMED, MARGIN, MOST
from contrastive_core.compare.evaluation import name_of
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_lab import format, texts
from contrastive_lab.components.scatter import ScatterData, pack_scatter
from contrastive_lab.components.shared.mount import (
    ALIGN,
    ThumbnailSheet,
    bundle,
    digest,
    pack,
    style_sheet,
    thumbnail_sheet,
)
from contrastive_lab.report.contents import Contents, Part, gather
from contrastive_lab.texts import Html, data_script, el, verbatim

STYLE = Path(__file__).with_name("page.css")
PICTURES = 2_400_000  # bytes of all thumbnails: a third more as text; the rest has room in 5 MB
CHANGED = 20  # queries
SHOWN = {"k": "k", "temperature": "τ"}  # of how a score was taken
FOOT = "Made by Contrastive Lab. The file holds all that it shows, and sends nothing anywhere."
WITHOUT_SCRIPTS = (
    "The maps and the live loss view need JavaScript, which is off here; every figure below is plain text."
)


def document(contents: Contents, day: date) -> str:
    """Return the report as one HTML file that makes no request."""
    parts = contents.parts
    title = " and ".join(p.title for p in parts) if len(parts) < 3 else f"{len(parts)} embeddings"
    pixels = [None if p.images is None else hash(p.images.tobytes()) for p in parts]
    most = PICTURES // max(1, len({*pixels} - {None}))
    by_pixels = {k: thumbnail_sheet(p.images, most) for k, p in zip(pixels, parts, strict=True)}
    sheets = [by_pixels[k] for k in pixels]  # of every map; runs on the same images share them
    lines = [*(f"{part.title}: {part.about}" for part in parts), f"{day:%d %B %Y}"]
    note = el("noscript", el("p", WITHOUT_SCRIPTS, class_="note"))
    header = el("header", el("h1", title), *(el("p", line, class_="about") for line in lines), note)
    runs = [_run(part, number, sheet) for number, (part, sheet) in enumerate(zip(parts, sheets, strict=True))]
    pictures = {_name(sheet): data_script(_padded(sheet), id=_name(sheet)) for sheet in sheets if sheet.picture}
    own, side_by_side = [next(iter(part.scores.values()), {}) for part in parts], None
    if len(parts) > 1 and any(own):
        table = _table(("", *(part.title for part in parts)), _rows(own), "Scores side by side")
        side_by_side = el("section", el("h2", "Scores side by side"), table)
    adapter = None  # the map from the first space to the second, if it has been fitted
    if contents.adapter is not None:
        between = "A map from the vectors of {} to those of {}".format(*(part.title for part in parts[:2]))
        adapter = el("section", el("h2", between), el("pre", "\n".join(adapter_sentences(contents.adapter))))
    scores = [score for p in parts for scores in p.scores.values() for score in scores.values()]
    terms = {score.title: score.reading for score in scores if score.reading and score.value is not None}
    body = el(
        "main",
        header,
        _verdict(contents),
        side_by_side,
        adapter,
        *runs,
        el("section", el("h2", "Meaning of the scores"), _definitions([*terms.items()], "terms")) if terms else None,
        el("footer", FOOT),
        *pictures.values(),
    )
    script = bundle("report/main.js")
    key = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (  # the browser runs this one script, and fetches nothing at all
        f"default-src 'none'; script-src 'sha256-{key}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("title", f"{title}: Contrastive Lab"),
        verbatim("style", style_sheet("lab", "map", "texts") + STYLE.read_text("utf-8")),
    )
    page = el("html", head, el("body", body, verbatim("script", script, type="module")), lang="en")
    return f"<!doctype html>\n{page}\n"


def _name(sheet: ThumbnailSheet) -> str | None:
    """Return the id of the element that holds a sheet; None without images."""
    return f"sheet-{hashlib.sha256(sheet.picture).hexdigest()[:12]}" if sheet.picture else None


def _padded(sheet: ThumbnailSheet) -> bytes:
    return sheet.picture + b"\0" * (-len(sheet.picture) % ALIGN)


# --- the comparison ----------------------------------------------------------------------------


def _verdict(contents: Contents) -> Html | None:
    """Return the section with the best space and its lead; None for a single run."""
    comparison, parts = contents.comparison, contents.parts
    if comparison is None:
        return el("section", el("p", contents.apart, class_="note")) if contents.apart else None
    said = [el("p", text) for text in comparison.verdicts.values() if text != comparison.verdict]
    said += [el("p", el("strong", text)) for text in comparison.seeds.values() if text]
    if tests := len(comparison.differences):
        rows = [
            (d.title, d.a, d.b, *_points(d.value, d.interval), f"{d.p_corrected:.2g}", "yes" if d.claimed else "no")
            for d in comparison.differences
        ]
        corrected = f"p, corrected for {tests} test{'s' if tests > 1 else ''}"
        head: tuple[str, ...] = ("", "A", "B", "A − B, points", "95 %", corrected, "claimed")
        said.append(_table(head, rows, "Differences of accuracy between two runs"))
    if not all(metric in ACCURACIES for metric in comparison.correct):  # queries
        _, found = query_figures(comparison, [part.rows for part in parts[:2]], 100 * MARGIN, CHANGED)
        said += [el("p", str(text)) for text in found["against"]]
        changed = list[Sequence[Html | str]]()
        for row in found["changed"]:
            both = zip(row["values"], row["answers"], strict=True)
            answers = (el("span", f"{value:.2f}", texts.markup(text, row["text"])) for value, text in both)
            changed.append((row["id"], texts.markup(row["text"]), *answers))
        if changed:
            head = ("query", "text", *comparison.names[:2])
            said.append(_table(head, changed, "Queries that changed most, with the first answer of each"))
    if comparison.right is not None and len(parts) == 2:
        metric, named = next(iter(comparison.correct)), parts[0].rows
        if classes := [
            (
                named.class_name(d.label),
                str(d.n),
                *(f"{100 * share:.1f}" for share in d.accuracies),
                *_points(d.value, d.interval),
                f"{d.p:.2g}",
            )
            for d in comparison.by_class(metric)
        ]:
            shares = (f"{name}, %" for name in comparison.names)
            head = ("class", "n", *shares, "difference, points", "95 %", "p, corrected")
            said.append(_table(head, classes, f"{comparison.titles[metric]} by class"))
    basis = f"Judged on {comparison.n_judged:,} of {len(comparison.ids):,} samples that all share. {CLAIMED}"
    return el("section", el("h2", comparison.verdict, class_="verdict"), *said, el("p", basis, class_="about"))


def _points(value: float, interval: Sequence[float]) -> tuple[str, str]:
    """Return a difference and its interval in points."""
    middle, low, high = (f"{100 * v:+.1f}" for v in (value, *interval))
    return middle, f"{low} to {high}"


# --- one run -----------------------------------------------------------------------------------


def _run(part: Part, number: int, sheet: ThumbnailSheet) -> Html:
    """Return the section of one run: scores, what smaller vectors lose, map, live view, settings."""
    content = [el("h2", part.title), *(el("p", note, class_="note") for note in part.notes)]
    if any(part.scores.values()):
        heads = [name_of(source) or "these rows" for source in part.scores]
        content.append(_table(("", *heads), _rows(list(part.scores.values())), f"Scores of {part.title}"))
    else:
        content.append(el("p", "These rows have not been scored.", class_="note"))
    if part.cost is not None:
        about, *said = cost_sentences(part.cost, 100 * MARGIN)
        head, *rows = cost_cells(part.cost)
        table = _table(head, rows, f"Quality of compressed vectors of {part.title}")
        content += [el("h3", "Smaller vectors"), el("p", about, class_="about"), table, *(el("p", x) for x in said)]
    content += [el("h3", "Map"), _map(part, number, sheet)]
    if view := part.loss_view:
        drag = "Drag the knob and every pair answers. " if view.first.knob else ""
        text = f"{drag}A batch of this run's own data under {view.title}; the encoder is frozen."
        place = el("div", data_script(pack(view)), data_part="loss_view")
        content += [el("h3", "What the loss does"), el("p", text, class_="about"), place]
    if part.settings:
        content += [el("h3", "Settings"), _definitions(part.settings)]
    return el("section", *content, class_="run")


def _map(part: Part, number: int, sheet: ThumbnailSheet) -> Html:
    """Return the map and its description. Its images are stored once in the file."""
    rows, shown, settings = part.rows, part.shown, part.map_settings
    some = f"{len(shown):,} of {len(rows):,}" if len(shown) < len(rows) else ""
    labels = None if rows.labels is None else rows.labels[shown]
    data = ScatterData(
        part.xy,
        ids=[rows.ids[int(i)] for i in shown],
        content=digest(part.title, number),
        color=labels,
        names=() if labels is None else rows.classes or tuple(map(str, range(int(labels.max(initial=-1)) + 1))),
        thumbnails=sheet,
        title=f"{str(settings['kind']).upper()} map of {part.title}",
        note=some and f"{some} points",
    )
    blob = pack_scatter(data, height=440).removesuffix(_padded(sheet))
    caption = format.map_of(settings) + (some and f"{some} samples, drawn by lot. ")
    caption += format.quality_of(part.map_quality)
    return el(
        "figure",
        el("div", data_script(blob), data_part="scatter", data_sheet=_name(sheet)),
        el("figcaption", f"{caption}Scores are computed in the embedding, never on the map."),
    )


def _definitions(items: Sequence[tuple[str, str]], kind: str = "settings") -> Html:
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in items), class_=kind)


def _rows(columns: Sequence[Scores]) -> list[tuple[Html | str, ...]]:
    """Return a row for each score that is defined in some column, with its k: without k, an accuracy is not
    comparable. Each figure has its interval and details below it."""
    rows: list[tuple[Html | str, ...]] = []
    for name in dict.fromkeys(name for scores in columns for name in scores):
        of_name = [scores.get(name) for scores in columns]
        known = [score for score in of_name if score is not None and score.value is not None]
        if not known:
            continue
        used = {sign: value for name, sign in SHOWN.items() if (value := known[0].number(name)) is not None}
        how = ", ".join(f"{sign} {value:g}" for sign, value in used.items())
        cells: list[Html | str] = [
            el("span", known[0].title, el("small", how) if how else None, title=known[0].reading or None)
        ]
        for score in of_name:
            if score is None or score.value is None:
                cells.append("–")
                continue
            notes = filter(None, [format.interval_of(score), score.approximation])
            cells.append(el("span", format.figure_of(score), *(el("small", note) for note in notes)))
        rows.append(tuple(cells))
    return rows


def _table(head: Sequence[str], rows: Sequence[Sequence[Html | str]], alt: str) -> Html:
    """Return a table that scrolls sideways on a narrow screen."""
    lines = [el("tr", el("th", row[0], scope="row"), *(el("td", cell) for cell in row[1:])) for row in rows]
    top = el("tr", *(el("th", text, scope="col") for text in head))
    table = el("table", el("thead", top), el("tbody", *lines), aria_label=alt)
    return el("div", table, class_="wide", tabindex="0", role="region", aria_label=alt)


# --- the command `report` ------------------------------------------------------------------------


def report(args: Namespace) -> None:
    """Run the command: write one HTML file on runs, recordings or files of vectors."""
    out = out_path(args.out, ".html", ".htm")
    if len(args.runs) > MOST:
        raise ValueError(f"a report is of at most {MOST} runs or files; got {len(args.runs)}")
    with progress_of(args) as on_progress:
        contents = gather(spaces_of(args), args.map, args.device, on_progress, args.qrels)
        on_progress("the file", None)
        page = document(contents, datetime.now(UTC).date()).encode()
        storage.write_bytes(out, page, shared=True, parents=False)
    names = [part.title for part in contents.parts]
    record = {"out": str(out), "bytes": len(page), "runs": names}
    print_result(args, record, f"{out}: {len(page) / 1e6:.1f} MB, {', '.join(names)}")
