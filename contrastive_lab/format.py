"""Figures and rows as text: what pages write and what they offer as CSV."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

from contrastive_core.records import safe_cell
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.score import ClassShare, Score, recall_text
from contrastive_lab import locale
from contrastive_lab.locale import _


def figure_of(score: Score | None) -> str:
    """A score as text: shares in per cent."""
    if score is None or score.value is None:
        return "–"
    return f"{100 * score.value:.1f} %" if score.unit == "share" else f"{score.value:.3g}"


class Interval(str):
    """An interval as a page shows it; two columns of numbers in a CSV file."""

    ends: tuple[float | None, float | None] = (None, None)


def interval(ends: tuple[float, float] | None, digits: str = ".3g") -> Interval:
    """Two ends as text; "" where there are none."""
    if ends is None:
        return Interval("")
    low, high = (f"{end:{digits}}" for end in ends)
    text = Interval(_("{low} to {high}").format(low=low, high=high))
    text.ends = float(low), float(high)
    return text


def interval_of(score: Score | ClassShare) -> Interval:
    """The 95 % interval of a score, or of a class's share, as text; "" where there is none."""
    is_share = not isinstance(score, Score) or score.unit == "share"
    ends = score.interval and (100 * score.interval[0], 100 * score.interval[1]) if is_share else score.interval
    return interval(ends, ".1f" if is_share else ".3g")


def map_of(settings: Mapping[str, Any], of: str = "") -> str:
    """How a map was made, as a sentence. Args: of: which rows it is of, " of the test set"."""
    used = {k: v for k, v in settings.items() if k not in ("kind", "landmarks")}
    parts = [f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in used.items()]
    text = f"{str(settings['kind']).upper()}{of}{': ' + ', '.join(parts) if parts else ''}. "
    landmarks = _("Laid out are {landmarks} landmarks; the others are placed amid their nearest. ")
    return text + (landmarks.format(landmarks=f"{n:,}") if (n := settings.get("landmarks")) else "")


def quality_of(quality: Mapping[str, float]) -> str:
    """How far a map can be believed, as a sentence; "" where it was not judged."""
    if "trustworthiness" not in quality:
        return ""
    recall = recall_text(quality.get("recall"))
    judged, n = quality.get("judged", 0), quality.get("n", 0)
    sample = _("; judged on {judged} of {n}").format(judged=f"{judged:,}", n=f"{n:,}") if judged < n else ""
    alone = ""
    if (landmarks := quality.get("trustworthiness_of_landmarks")) is not None:
        alone = _("; trustworthiness of the landmarks {landmarks}").format(landmarks=f"{landmarks:.3f}")
    template = _(
        "Trustworthiness {trustworthiness}, continuity {continuity} (k = {k}; 1 is a map to "
        "be believed{sample}{alone}). "
    )
    if recall:
        template = _(
            "Trustworthiness {trustworthiness}, continuity {continuity} (k = {k}; 1 is a map to "
            "be believed{sample}{alone}; {recall}). "
        )
    shown = {name: f"{quality[name]:.3f}" for name in ("trustworthiness", "continuity")}
    return template.format(**shown, k=quality.get("k", "–"), sample=sample, alone=alone, recall=recall)


def data_of(name: object) -> str:
    """A data set as a page names it: a folder or a list by its path alone."""
    return str(name).removeprefix("folder:").removeprefix("csv:")


def duration(seconds: float) -> str:
    """About so long: 40 s, 12 min, 3.5 h."""
    if seconds < 55:
        return f"{max(1, round(seconds))} s"
    return _("{seconds} min").format(seconds=f"{seconds / 60:.0f}") if seconds < 5400 else f"{seconds / 3600:.1f} h"


MARKUP = re.compile(r"([\\\\`*_{}\[\]()#+!|<>~:$&@.-])")


def plain(text: object) -> str:
    """A text, translated and escaped for Markdown; translated here, since no catalog knows an escaped sentence."""
    return MARKUP.sub(r"\\\1", locale.text(text))


def csv_of(rows: EmbeddingSet, chosen: Iterable[int]) -> str:
    """Ids, labels and features of some rows as CSV."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["id", "label", *(f"x{j}" for j in range(rows.width))])
    for i in chosen:
        label = "" if rows.labels is None else rows.class_name(int(rows.labels[i]))
        table.writerow([safe_cell(rows.ids[i]), safe_cell(label), *rows.features[i].tolist()])
    return out.getvalue()


def table_csv(rows: Iterable[dict[str, Any]]) -> str:
    """Rows of plain values as CSV; each is asked for when it is written."""
    out, table = io.StringIO(), None
    for row in map(_cells, rows):
        if table is None:
            table = csv.DictWriter(out, list(row))
            table.writerow({k: safe_cell(k) for k in row})
        table.writerow({k: safe_cell("" if v is None else v) for k, v in row.items()})
    return out.getvalue()


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """A row with two columns of numbers for each interval."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Interval):
            cells |= dict(zip((f"{name} low", f"{name} high"), value.ends, strict=True))
        else:
            cells[name] = value
    return cells
