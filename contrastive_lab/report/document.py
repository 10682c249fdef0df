"""The report file: sections in reading order, one style sheet, one script."""

import base64
import hashlib
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from contrastive_core.base import storage
from contrastive_core.base.score import Score, Scores
from contrastive_core.cli.command_io import out_path, print_result, progress_of, spaces_of
from contrastive_core.cli.compare import adapter_sentences, query_figures
from contrastive_core.cli.evaluate import cost_cells, cost_sentences
from contrastive_core.compare.comparison import CLAIMED, MARGIN, Comparison
from contrastive_core.compare.evaluation import name_of
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import format, texts
from contrastive_lab.components.loss_view import pack_loss_view
from contrastive_lab.components.scatter import ScatterData, pack_scatter
from contrastive_lab.components.shared.mount import bundle, style_sheet
from contrastive_lab.components.shared.transport import ALIGN, ThumbnailSheet, digest, thumbnail_sheet
from contrastive_lab.report.contents import MOST, Contents, Part, gather
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
    sheets = _sheets(parts)
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


# --- pictures ----------------------------------------------------------------------------------


def _sheets(parts: Sequence[Part]) -> list[ThumbnailSheet]:
    """Return the thumbnails of every map; runs on the same images share them."""
    keys = [None if p.images is None else hash(p.images.tobytes()) for p in parts]
    most = PICTURES // max(1, len({*keys} - {None}))
    by_key = {k: thumbnail_sheet(p.images, most) for k, p in zip(keys, parts, strict=True)}
    return [by_key[k] for k in keys]


def _name(sheet: ThumbnailSheet) -> str | None:
    """Return the id of the element that holds a sheet; None without images."""
    return f"sheet-{hashlib.sha256(sheet.picture).hexdigest()[:12]}" if sheet.picture else None


def _padded(sheet: ThumbnailSheet) -> bytes:
    return sheet.picture + b"\0" * (-len(sheet.picture) % ALIGN)


# --- the comparison ----------------------------------------------------------------------------


def _verdict(contents: Contents) -> Html | None:
    """Return the section with the best space and its lead; None for a single run."""
    comparison = contents.comparison
    if comparison is None:
        return el("section", el("p", contents.apart, class_="note")) if contents.apart else None
    others = [text for text in comparison.verdicts.values() if text != comparison.verdict]
    rows = contents.parts[0].rows
    return el(
        "section",
        el("h2", comparison.verdict, class_="verdict"),
        *(el("p", text) for text in others),
        *(el("p", el("strong", text)) for text in comparison.seeds.values() if text),
        _differences(comparison) if comparison.differences else None,
        *_queries(comparison, [part.rows for part in contents.parts[:2]]),
        _by_class(comparison, rows) if comparison.right is not None and len(contents.parts) == 2 else None,
        el(
            "p",
            f"Judged on {comparison.n_judged:,} of {len(comparison.ids):,} samples that all share. {CLAIMED}",
            class_="about",
        ),
    )


def _differences(comparison: Comparison) -> Html:
    rows = []
    for d in comparison.differences:
        value, low, high = (f"{100 * v:+.1f}" for v in (d.value, *d.interval))
        claimed = "yes" if d.claimed else "no"
        rows.append((d.title, d.a, d.b, value, f"{low} to {high}", f"{d.p_corrected:.2g}", claimed))
    tests = len(comparison.differences)
    corrected = f"p, corrected for {tests} test{'s' if tests > 1 else ''}"
    head = ("", "A", "B", "A − B, points", "95 %", corrected, "claimed")
    return _table(head, rows, "Differences of accuracy between two runs")


def _queries(comparison: Comparison, sets: Sequence[EmbeddingSet]) -> list[Html]:
    """Return the section on queries: whether their figures differ by more than the margin, and the largest changes."""
    if all(metric in ACCURACIES for metric in comparison.correct):
        return []
    _, found = query_figures(comparison, sets, 100 * MARGIN, CHANGED)
    head = ("query", "text", *comparison.names[:2])
    rows = list[Sequence[Html | str]]()
    for row in found["changed"]:
        both = zip(row["values"], row["answers"], strict=True)
        answers = (el("span", f"{value:.2f}", texts.markup(said, row["text"])) for value, said in both)
        rows.append((row["id"], texts.markup(row["text"]), *answers))
    said = [el("p", str(text)) for text in found["against"]]
    return [*said, _table(head, rows, "Queries that changed most, with the first answer of each")] if rows else said


def _by_class(comparison: Comparison, named: EmbeddingSet) -> Html | None:
    """Return the differences between two spaces by class; None without labels. Args: named: has the classes' names."""
    metric, lines = next(iter(comparison.correct)), []
    for d in comparison.by_class(metric, 0, 1):
        a, b = (f"{100 * share:.1f}" for share in d.accuracies)
        value, low, high = (f"{100 * v:+.1f}" for v in (d.value, *d.interval))
        lines.append((named.class_name(d.label), str(d.n), a, b, value, f"{low} to {high}", f"{d.p:.2g}"))
    if not lines:
        return None
    head = ("class", "n", *(f"{name}, %" for name in comparison.names), "difference, points", "95 %", "p, corrected")
    return _table(head, lines, f"{comparison.titles[metric]} by class")


# --- one run -----------------------------------------------------------------------------------


def _run(part: Part, number: int, sheet: ThumbnailSheet) -> Html:
    """Return the section of one run: scores, map, live view, settings."""
    settings = [el("h3", "Settings"), _definitions(part.settings)] if part.settings else []
    live: list[Html] = []
    if view := part.loss_view:
        drag = "Drag the knob and every pair answers. " if view.first.knob else ""
        text = f"{drag}A batch of this run's own data under {view.title}; the encoder is frozen."
        place = el("div", data_script(pack_loss_view(view)), data_part="loss_view")
        live = [el("h3", "What the loss does"), el("p", text, class_="about"), place]
    return el(
        "section",
        el("h2", part.title),
        *(el("p", note, class_="note") for note in part.notes),
        _scores(part),
        *_cost(part),
        el("h3", "Map"),
        _map(part, number, sheet),
        *live,
        *settings,
        class_="run",
    )


def _cost(part: Part) -> list[Html]:
    """Return what smaller vectors lose: a table, and the smallest that lose little; [] if it has not been computed."""
    if part.cost is None:
        return []
    about, *said = cost_sentences(part.cost, 100 * MARGIN)
    head, *rows = cost_cells(part.cost)
    table = _table(head, rows, f"Quality of compressed vectors of {part.title}")
    return [el("h3", "Smaller vectors"), el("p", about, class_="about"), table, *(el("p", text) for text in said)]


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


def _scores(part: Part) -> Html:
    """Return each score with its interval, and those of the other layer and the references."""
    if not any(part.scores.values()):
        return el("p", "These rows have not been scored.", class_="note")
    heads = [name_of(source) or "these rows" for source in part.scores]
    return _table(("", *heads), _rows(list(part.scores.values())), f"Scores of {part.title}")


def _rows(columns: Sequence[Scores]) -> list[tuple[Html | str, ...]]:
    """Return a row for each score that is defined in some column."""
    rows: list[tuple[Html | str, ...]] = []
    for name in dict.fromkeys(name for scores in columns for name in scores):
        of_name = [scores.get(name) for scores in columns]
        if known := [score for score in of_name if score is not None and score.value is not None]:
            rows.append((_title(known[0]), *map(_figure, of_name)))
    return rows


def _title(score: Score) -> Html:
    """Return the name of a score with its k: an accuracy without k is not comparable."""
    used = {sign: value for name, sign in SHOWN.items() if (value := score.number(name)) is not None}
    how = ", ".join(f"{sign} {value:g}" for sign, value in used.items())
    return el("span", score.title, el("small", how) if how else None, title=score.reading or None)


def _figure(score: Score | None) -> Html | str:
    """Return a figure with its interval and details below it."""
    if score is None or score.value is None:
        return "–"
    notes = filter(None, [format.interval_of(score), score.approximation])
    return el("span", format.figure_of(score), *(el("small", note) for note in notes))


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
