"""The command `samples`: all samples of a split, or of a file of vectors, with their scores. `--audit FILE` adds random
rows to check and estimates the share of wrong labels. `--export PATH` writes the data set with the decisions applied.
"""

import time
from argparse import Namespace
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, printable
from contrastive_core.base.progress import OnProgress
from contrastive_core.base.storage import read_table, write_bytes, write_table
from contrastive_core.cli.command_io import (
    counted,
    is_file,
    loaded_space,
    note_left_out,
    out_path,
    print_result,
    progress_of,
    read_file,
    run_of,
)
from contrastive_core.engine.answers.scores import sample_table
from contrastive_core.samples import annotations, corrected_data
from contrastive_core.samples.issues import SampleInputs, build_table
from contrastive_core.samples.label_audit import CLEAN, LabelAudit, audit_table, estimate, is_wrong
from contrastive_core.samples.sample_lists import RANDOM, why_no_suspects
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, request_of
from contrastive_core.spaces.file_formats import has_lines

PAIRS_EXPORT = N_(
    "samples --export writes the labels of a run. {file} holds triplets: pairs {file} --export OUT writes it with your "
    "decisions"
)
NEEDS_RUN = N_("samples --export needs a run; {file} is a file of vectors")


def samples(args: Namespace) -> None:
    """Write all samples of a split, or of a file of vectors, with the scores of the lists."""
    if args.export:
        return _export(args)
    out = out_path(args.out, ".parquet", ".csv") if args.out else None
    with progress_of(args) as on_progress:
        name, table, request = _table(args, on_progress)
    if out:
        write_table(out, table.columns)
    most = table.facts.get("loss_candidates")
    record = {"run": name, "rows": len(table), "loss": table.loss, "loss_candidates": most, "out": out and str(out)}
    text = f"{out or name}: {counted(len(table), 'sample')} by {table.loss}"
    if most:
        text += f", each among {most:,.0f} random ones"
    if args.lists_by:
        record["lists_by"] = args.lists_by
        text += f"; lists by {args.lists_by}"
    if np.isnan(table.columns["mislabeled"]).all() and (reason := why_no_suspects(table)):
        record["no_suspects"], text = reason, f"{text}\n{reason}"
    if args.audit:
        found, said = audit_labels(table, out_path(args.audit, ".csv"), args.checks, request)
        record, text = record | found, f"{text}\n{said}"
    print_result(args, record, text)


def _export(args: Namespace) -> None:
    """Write the decisions on a run's data set: as a file of labels, a script or a corrected folder."""
    if is_file(args.run):
        raise BadSetting(PAIRS_EXPORT if has_lines(args.run) else NEEDS_RUN, file=printable(args.run))
    run, out = run_of(args.run, args), Path(args.export).expanduser()
    dataset, by_split = str(run.config["dataset"]), annotations.by_split(run.config)
    count = sum(map(len, by_split.values()))
    if out.suffix in (".csv", ".sh"):
        out_path(args.export, out.suffix)
        text = (
            corrected_data.folder_script(dataset, by_split)
            if out.suffix == ".sh"
            else annotations.labels_csv(by_split, annotations.every_label(run.config))
        )
        write_bytes(out, text.encode())
        said = f"{out}: {counted(count, 'decision')}"
    else:
        images = corrected_data.write_folder(dataset, by_split, out, args.move)
        said = f"{out}: {counted(images, 'image')}, {counted(count, 'decision')}"
    print_result(args, {"run": run.name, "decisions": count, "export": str(out)}, said)


def _table(args: Namespace, on_progress: OnProgress) -> tuple[str, SampleTable, SampleRequest | None]:
    """Return the name of the rows, their table, and the app's request for it (None for a file)."""
    if is_file(args.run):
        if args.lists_by:
            raise BadSetting("--lists-by needs a run: a file of vectors has no images")
        inputs = SampleInputs(read_file(args, args.run, args.split), args.loss or "sup_con", device=args.device)
        return args.run, build_table(inputs, on_progress), None
    if space := loaded_space(args.run, args, "train"):
        place = space.recorded
        own = str(place.run.config.get("loss") or "sup_con") if place else "sup_con"
        request = request_of(space.name, space.split, args.loss or own)
        return space.name, sample_table(request, on_progress, args.device), request
    run, split = run_of(args.run, args), args.split or "train"
    request = request_of(run.name, split, args.loss or str(run.config.get("loss")), args.lists_by or "")
    table = sample_table(request, on_progress, args.device)
    note_left_out(run, split)
    return run.name, table, request


# --- an audit of labels ------------------------------------------------------------------------------

ANSWERS = {"": np.nan, "no": 0.0, "0": 0.0, "yes": 1.0, "1": 1.0}  # is the label wrong?


def audit_labels(
    table: SampleTable, file: Path, checks: int, request: SampleRequest | None
) -> tuple[dict[str, object], str]:
    """Extend FILE to `checks` random rows, and estimate the share of wrong labels from its column `wrong` and the app's
    decisions, to which new answers are added. Returns the result as plain values and as text.
    Args: request: the app's request for these rows; None for a file of vectors, whose answers stay in FILE.
    Raises: BadSetting for a table without labels, or a file with unknown ids or answers."""
    answers, written = (_answers(file), file.stat().st_mtime) if file.exists() else ({}, 0.0)
    if unknown := next((name for name in answers if table.row(name) is None), None):
        raise BadSetting("{file} has an id that the data set does not have: {id}", file=printable(file), id=unknown)
    marks = {} if request is None else annotations.marks(request.marked)
    for name, answer in answers.items():
        known = marks.get(name, {})
        if np.isnan(answer) or answer == is_wrong(known) or float(known.get("time", 0.0)) > written:
            continue
        marks[name] = {"what": "drop" if answer else "keep", "list": RANDOM, "time": time.time()}
        if request is not None:
            given = str(table.columns["label"][table.row(name)])
            annotations.add(request.marked, name, marks[name]["what"], given=given, list=RANDOM, by="samples --audit")
    audit = audit_table(table, marks, None if request is None else request.run)
    if audit is None:
        raise BadSetting("{run} has no labels to audit", run=printable(file))
    rows = audit.order[: max(checks, audit.reached)]
    decided = np.setdiff1d(np.flatnonzero(np.isfinite(audit.wrong)), rows)  # decided but not sampled: last
    order = [*rows.tolist(), *decided.tolist()]
    columns = {name: [str(table.columns[name][row]) for row in order] for name in ("id", "label")}
    if "suggested" in table.extra:
        columns["suggested"] = [str(table.extra["suggested"][row]) for row in order]
    columns["wrong"] = [{0.0: "no", 1.0: "yes"}.get(float(audit.wrong[row]), "") for row in order]
    write_table(file, columns)
    return _summary(file, audit, len(rows))


def _answers(file: Path) -> dict[str, float]:
    """Read 1 for a wrong label and 0 for a right one from FILE, by id; NaN without an answer."""
    answers = {}
    for line in read_table(file, "id", "wrong")[1]:
        given = (line["wrong"] or "").strip().lower()
        if given not in ANSWERS:
            raise BadSetting(
                "{file}: the column wrong must be yes or no; got {given}", file=printable(file), given=printable(given)
            )
        answers[line["id"]] = ANSWERS[given]
    return answers


def _summary(file: Path, audit: LabelAudit, rows: int) -> tuple[dict[str, object], str]:
    found, (low, high) = audit.found, audit.found.interval
    record: dict[str, object] = {
        "audit": str(file),
        "rows_to_check": rows,
        "checked": found.checked,
        "found_wrong": found.found,
    }
    if not found.checked:
        text = f"{file}: {counted(rows, 'row')} to check. Write yes or no into the column wrong, then run this again."
        return record, text
    record |= {
        "wrong_labels": found.number,
        "wrong_low": low,
        "wrong_high": high,
        "still_wrong_at_most": found.bound,
        "may_stop": found.bound < CLEAN,
        "suspects_to_review": {str(share): number for share, number in found.reviews.items()},
    }
    text = estimate(audit)
    if found.bound < CLEAN:
        return record, f"{text} You can stop: with your decisions applied, fewer than 1 % are still wrong (95 %)."
    if found.bound < 1:
        text += f" With your decisions applied, at most {found.bound:.1%} are still wrong (95 %)."
    if found.remaining is not None:
        text += f" You can stop once {found.remaining} more random rows are right."
    ahead = [f"{number:,} for {share:.0%}" for share, number in found.reviews.items() if number]
    if ahead:
        text += f" Suspects left to review until about such a share is wrong: {', '.join(ahead)}."
    return record, text
