"""Numbers and rows as text, for pages and CSV files."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from contrastive_core.base.score import ClassShare, Score, recall_text
from contrastive_core.base.storage import safe_cell
from contrastive_core.compare.evaluation import Evaluation
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import locale
from contrastive_lab.locale import N_, _, ngettext

MAP_SETTINGS = (N_("seed"), N_("neighbors"), N_("metric"))


def figure_of(score: Score | None) -> str:
    """Format a score, shares in per cent."""
    if score is None or score.value is None:
        return "–"
    return f"{100 * score.value:.1f} %" if score.unit == "share" else f"{score.value:.{decimals_of(score)}f}"


def decimals_of(score: Score) -> int:
    """Return the number of decimals for a score and its interval."""
    return 1 if score.unit == "share" else decimals(score.value or 0.0, *(score.interval or ()))


def decimals(*values: float) -> int:
    """Return the number of decimals that gives the largest of some numbers three digits, and one from 100 on."""
    size = max(map(abs, values))
    if size >= 1:
        return 1 if size >= 10 else 2
    return 3 if size >= 0.1 or size < 1e-9 else 2 - math.floor(math.log10(size))


def number_of(score: Score | None) -> dict[str, float | str | None]:
    """Return a score as cells of a table file: its number, shares in per cent, and its unit."""
    if score is None or score.value is None:
        return {"value": None, "unit": None}
    is_share = score.unit == "share"
    return {
        "value": float(f"{100 * score.value if is_share else score.value:.6g}"),
        "unit": "%" if is_share else score.unit,
    }


class Interval(str):
    """An interval formatted for a page; a CSV file gets two columns of numbers."""

    ends: tuple[float | None, float | None] = (None, None)


def interval(ends: tuple[float, float] | None, digits: str = ".3g") -> Interval:
    """Format the ends of an interval; "" for None."""
    if ends is None:
        return Interval("")
    low, high = (f"{end:{digits}}" for end in ends)
    text = Interval(_("{low} to {high}").format(low=low, high=high))
    text.ends = float(low), float(high)
    return text


def interval_of(score: Score | ClassShare) -> Interval:
    """Format the 95 % interval of a score or of a class's accuracy; "" for none."""
    if isinstance(score, Score) and score.unit != "share":
        return interval(score.interval, f".{decimals_of(score)}f")
    return interval(score.interval and (100 * score.interval[0], 100 * score.interval[1]), ".1f")


def map_of(settings: Mapping[str, float | str], rows: str = "") -> str:
    """Describe in a sentence how a map was computed. Args: rows: their title, such as "test set"; "" for none."""
    used = {k: v for k, v in settings.items() if k not in ("kind", "landmarks")}
    parts = [f"{_(k)} {v:g}" if isinstance(v, float) else f"{_(k)} {_(str(v))}" for k, v in used.items()]
    template = _("{kind}: {settings}. ") if parts else _("{kind}. ")
    if rows:
        template = _("{kind} of the {rows_title}: {settings}. ") if parts else _("{kind} of the {rows_title}. ")
    text = template.format(kind=str(settings["kind"]).upper(), rows_title=rows, settings=_(", ").join(parts))
    landmarks = _(
        "{landmarks} landmarks are laid out first; the other points are placed among their nearest landmarks. "
    )
    return text + (landmarks.format(landmarks=f"{n:,}") if (n := settings.get("landmarks")) else "")


def quality_of(quality: Mapping[str, float]) -> str:
    """Describe the quality of a map in a sentence; "" if it was not measured."""
    if "trustworthiness" not in quality:
        return ""
    recall = recall_text(quality.get("recall"))
    judged, n = quality.get("judged", 0), quality.get("n", 0)
    template = _("Trustworthiness {trustworthiness}, continuity {continuity} (k = {k}; 1 is best). ")
    if recall:
        template = _("Trustworthiness {trustworthiness}, continuity {continuity} (k = {k}; 1 is best; {recall}). ")
    shown = {name: f"{quality[name]:.3f}" for name in ("trustworthiness", "continuity")}
    text = template.format(**shown, k=quality.get("k", "–"), recall=recall)
    if judged < n:
        text += _("Both are computed on {judged} of {n} rows. ").format(judged=f"{judged:,}", n=f"{n:,}")
    if (landmarks := quality.get("trustworthiness_of_landmarks")) is not None:
        text += _("The trustworthiness of the landmarks is {landmarks}. ").format(landmarks=f"{landmarks:.3f}")
    return text


def data_of(name: object) -> str:
    """Return the displayed name of a data set; for a folder or a list, its path."""
    return str(name).removeprefix("folder:").removeprefix("csv:")


def judged_images(scores: Evaluation) -> str:
    """Describe the images behind the kNN accuracy of a run and of raw pixels; "" without one."""
    if scores.score("h", "knn") is None:
        return ""
    text = _("kNN, also of raw pixels, on {n} test images, by the vote of {m} training images.")
    return text.format(n=f"{scores.n_test:,}", m=f"{scores.n_train:,}")


def epochs(count: object) -> str:
    """Format a number of epochs: "1 epoch", "20 epochs"; the number may be missing."""
    return ngettext("{epochs} epoch", "{epochs} epochs", count if isinstance(count, int) else 2).format(epochs=count)


def duration(seconds: float) -> str:
    """Format an approximate duration: 40 s, 12 min, 3.5 h."""
    if seconds < 55:
        return f"{max(1, round(seconds))} s"
    return _("{seconds} min").format(seconds=f"{seconds / 60:.0f}") if seconds < 5400 else f"{seconds / 3600:.1f} h"


OPTION = re.compile(r"--set ([\w.]+)=([^\s,;()，；。（）]*[^\s,;().，；。（）])")
FIELDS = {"batch_size": N_("Batch size"), "lr": N_("Learning rate"), "loss.temperature": N_("Temperature τ")}


def in_form(text: object) -> str:
    """Translate a text of the library, with names of form fields in place of command-line options."""

    def field(option: re.Match[str]) -> str:
        name, value = option.groups()
        if name in FIELDS:
            return _("“{field}” {value}").format(field=locale.text(FIELDS[name]), value=value)
        return _("“Further settings” {name}={value}").format(name=name, value=value)

    return OPTION.sub(field, locale.text(text))


MARKUP = re.compile(r"([\\\\`*_{}\[\]()#+!|<>~:$&@.-])")


def plain(text: object) -> str:
    """Translate a text and escape it for Markdown, in this order, because catalogs have no escaped texts."""
    return MARKUP.sub(r"\\\1", locale.text(text))


def as_sentence(text: object) -> str:
    """Translate a text and escape it for Markdown, with a period, and a message with a capital at its start."""
    said, first = locale.text(text), text.template.partition(" ")[0] if isinstance(text, locale.Message) else ""
    said = said[:1].upper() + said[1:] if first.isalpha() and first.islower() and said.startswith(first) else said
    return plain(said if said[-1:] in ".。!！?？…" else _("{text}.").format(text=said))


def csv_of(rows: EmbeddingSet, chosen: Iterable[int]) -> str:
    """Return ids, labels and features of some rows as CSV."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["id", "label", *(f"x{j}" for j in range(rows.width))])
    for i in chosen:
        label = "" if rows.labels is None else rows.class_name(int(rows.labels[i]))
        table.writerow([safe_cell(rows.ids[i]), safe_cell(label), *rows.features[i].tolist()])
    return out.getvalue()


def table_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows of plain values as CSV, with the fields of all rows. Rows are read one at a time."""
    fields: dict[str, None] = {}
    lines: list[tuple[int, str]] = []  # fields known so far, and the row
    for row in map(_cells, rows):
        fields |= dict.fromkeys(row)
        lines.append((len(fields), _line(row.get(name) for name in fields)))
    padded = (line.removesuffix("\r\n") + "," * (len(fields) - known) + "\r\n" for known, line in lines)
    return (_line(fields) if lines else "") + "".join(padded)


def _line(values: Iterable[Any]) -> str:
    """Return one line of a CSV file."""
    out = io.StringIO()
    csv.writer(out).writerow(safe_cell("" if value is None else value) for value in values)
    return out.getvalue()


def _cells(row: Mapping[str, object]) -> dict[str, object]:
    """Return a row with two columns of numbers for each interval."""
    cells: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, Interval):
            cells |= dict(zip((f"{name} low", f"{name} high"), value.ends, strict=True))
        else:
            cells[name] = value
    return cells
