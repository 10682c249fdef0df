"""`samples --audit FILE`: random rows for a person to check, and what her answers say of all labels."""

from pathlib import Path

import numpy as np

from contrastive_core.cli.output import counted
from contrastive_core.data.image_list import read_table
from contrastive_core.errors import BadSetting
from contrastive_core.records.sample_table import SampleTable
from contrastive_core.samples.label_audit import CLEAN, Audit, audit, draw
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.regular_files import printable
from contrastive_core.storage.tables import write_table

ANSWERS = {"": np.nan, "no": 0.0, "0": 0.0, "yes": 1.0, "1": 1.0}  # is the label wrong?


def audit_labels(table: SampleTable, file: Path, checks: int) -> tuple[JsonObject, str]:
    """Extend FILE to so many rows to check, and judge the answers in its column `wrong`. Returns both for output.

    Raises: BadSetting for a table without labels, or a file with other ids or answers.
    """
    p = np.asarray(table.columns["mislabeled"], float)
    if not np.isfinite(p).any():
        raise BadSetting("{run} has no labels to audit", run=printable(file))
    answers = _answers(file) if file.exists() else {}
    rows = draw(p, max(checks, len(answers)))
    place = {str(name): row for row, name in enumerate(table.columns["id"])}
    wrong = np.full(len(p), np.nan)
    for name, answer in answers.items():
        if name not in place:
            raise BadSetting("{file} has an id that the data set does not have: {id}", file=printable(file), id=name)
        wrong[place[name]] = answer
    _write(file, table, rows, wrong)
    return _summary(file, audit(p, wrong, rows), int(np.isfinite(p).sum()), len(rows))


def _answers(file: Path) -> dict[str, float]:
    """Whether the label of each id is wrong, NaN where it was not answered."""
    answers = {}
    for line in read_table(file, "id", "wrong")[1]:
        given = (line["wrong"] or "").strip().lower()
        if given not in ANSWERS:
            raise BadSetting(
                "{file}: the column wrong must be yes or no; got {given}", file=printable(file), given=printable(given)
            )
        answers[line["id"]] = ANSWERS[given]
    return answers


def _write(file: Path, table: SampleTable, rows: np.ndarray, wrong: np.ndarray) -> None:
    """Rows in the order to check them, decided rows that were not drawn last."""
    extra = np.flatnonzero(np.isfinite(wrong))
    order = [*rows.tolist(), *np.setdiff1d(extra, rows).tolist()]
    words = {0.0: "no", 1.0: "yes"}
    columns = {name: [str(table.columns[name][row]) for row in order] for name in ("id", "label")}
    if "suggested" in table.extra:
        columns["suggested"] = [str(table.extra["suggested"][row]) for row in order]
    columns["wrong"] = [words.get(float(wrong[row]), "") for row in order]
    write_table(file, columns)


def _summary(file: Path, found: Audit, labels: int, rows: int) -> tuple[JsonObject, str]:
    low, high = found.interval
    record: JsonObject = {
        "audit": str(file),
        "rows_to_check": rows,
        "checked": found.checked,
        "found_wrong": found.found,
        "wrong_labels": found.number,
        "wrong_low": low,
        "wrong_high": high,
        "still_wrong_at_most": found.bound,
        "may_stop": found.bound < CLEAN,
    }
    if not found.checked:
        return (
            record,
            f"{file}: {counted(rows, 'row')} to check. Write yes or no into the column wrong, then run this again.",
        )
    text = (
        f"About {found.number:,.0f} of {labels:,} labels are wrong (95 % CI: {low:,.0f} to {high:,.0f}), "
        f"from {found.checked} random checks that found {found.found}."
    )
    if found.bound < CLEAN:
        return record, f"{text} You can stop: with your decisions applied, fewer than 1 % are still wrong (95 %)."
    if found.bound < 1:
        text += f" With your decisions applied, at most {found.bound:.1%} are still wrong (95 %)."
    if found.remaining is not None:
        text += f" You can stop once {found.remaining} more random rows are right."
    return record, text
