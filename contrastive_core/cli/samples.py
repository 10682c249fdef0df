"""The commands on samples and pairs. `samples` lists all samples of a split, or of a file of vectors, with their
scores; `--audit FILE` adds random rows to check and estimates the share of wrong labels, `--export PATH` applies the
decisions. `pairs` lists mismatched pairs of two towers, `query` the images most similar to a sentence, and `threshold`
finds the similarity from which a pair is a match."""

import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import BadSetting, UnusableEmbedding
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import N_, printable
from contrastive_core.base.storage import read_table, write_bytes, write_table
from contrastive_core.cli.command_io import (
    counted,
    encoder_of,
    is_file,
    loaded_space,
    note_left_out,
    out_path,
    print_note,
    print_result,
    progress_of,
    read_file,
    run_of,
    space_of,
)
from contrastive_core.compare.match_threshold import JudgedPairs, find_threshold
from contrastive_core.compare.retrieval import NOT_TOWERS
from contrastive_core.compare.towers import tower_notes
from contrastive_core.data.captions import LENGTH, split_words
from contrastive_core.engine import answers
from contrastive_core.samples import annotations
from contrastive_core.samples.issues import SampleInputs, build_table
from contrastive_core.samples.label_audit import CLEAN, audit_table, is_wrong
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_lists import (
    FALSE_NEGATIVES,
    GIVEN_NEGATIVES,
    LISTS,
    MISMATCHED,
    RANDOM,
    why_no_suspects,
)
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, request_of
from contrastive_core.samples.tower_pairs import find_tower_pairs, pair_table
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.attached_files import judgments_file, read_qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.file_formats import has_lines
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import towers_of

PAIRS_EXPORT = N_(
    "samples --export writes the labels of a run. {file} holds triplets: pairs {file} --export OUT writes it with your "
    "decisions"
)
NEEDS_RUN = N_("samples --export needs a run; {file} is a file of vectors")
SHOWN = 60  # characters of a row's text
REASONS = {"zero": "zero rows", "not_finite": "rows that are not finite", "unpaired": "rows without a usable partner"}
REASONS |= {"negatives": "documents that are only given negatives"}


def samples(args: Namespace) -> None:
    """Write all samples of a split, or of a file of vectors, with the scores of the lists."""
    if args.export:
        return _export(args)
    out = out_path(args.out, ".parquet", ".csv") if args.out else None
    with progress_of(args) as on_progress:
        if is_file(args.run):
            inputs = SampleInputs(read_file(args, args.run, args.split), args.loss or "sup_con", device=args.device)
            name, table, request = args.run, build_table(inputs, on_progress), None
        else:
            space = loaded_space(args.run, args, "train")
            name, split = (space.name, space.split) if space else (run_of(args.run, args).name, args.split or "train")
            request = request_of(name, split, args.loss or "")
            table = make_table(request, on_progress, args.device)
            if run := request.run:
                note_left_out(run, split)
    if out:
        write_table(out, table.columns)
    most = table.facts.get("loss_candidates")
    record = {"run": name, "rows": len(table), "loss": table.loss, "loss_candidates": most, "out": out and str(out)}
    text = f"{out or name}: {counted(len(table), 'sample')} by {table.loss}"
    if most:
        text += f", each among {most:,.0f} random ones"
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
            annotations.folder_script(dataset, by_split)
            if out.suffix == ".sh"
            else annotations.labels_csv(by_split, run.config)
        )
        write_bytes(out, text.encode())
        said = f"{out}: {counted(count, 'decision')}"
    else:
        images = annotations.write_folder(dataset, by_split, out, args.move)
        said = f"{out}: {counted(images, 'image')}, {counted(count, 'decision')}"
    print_result(args, {"run": run.name, "decisions": count, "export": str(out)}, said)


# --- an audit of labels ------------------------------------------------------------------------------

ANSWERS = {"": np.nan, "no": 0.0, "0": 0.0, "yes": 1.0, "1": 1.0}  # is the label wrong?
COLUMNS = ("id", "label", "suggested")  # of the file, before `wrong`


def audit_labels(
    table: SampleTable, file: Path, checks: int, request: SampleRequest | None
) -> tuple[dict[str, object], str]:
    """Extend FILE to `checks` random rows, and estimate the share of wrong labels from its column `wrong` and the app's
    decisions, to which new answers are added. Returns the result as plain values and as text.
    Args: request: the app's request for these rows; None for a file of vectors, whose answers stay in FILE.
    Raises: BadSetting for a table without labels, or a file with unknown ids or answers."""
    given_answers, written = dict[str, float](), 0.0
    if file.exists():
        written = file.stat().st_mtime
        for line in read_table(file, "id", "wrong")[1]:
            given = (line["wrong"] or "").strip().lower()
            if given not in ANSWERS:
                values = {"file": printable(file), "given": printable(given)}
                raise BadSetting("{file}: the column wrong must be yes or no; got {given}", **values)
            given_answers[line["id"]] = ANSWERS[given]
    if unknown := next((name for name in given_answers if table.row(name) is None), None):
        raise BadSetting("{file} has an id that the data set does not have: {id}", file=printable(file), id=unknown)
    marks = {} if request is None else annotations.marks(request.decisions())
    for name, answer in given_answers.items():
        known = marks.get(name, {})
        if np.isnan(answer) or answer == is_wrong(known) or float(known.get("time", 0.0)) > written:
            continue
        marks[name] = {"what": "drop" if answer else "keep", "list": RANDOM, "time": time.time()}
        if request is not None:
            own = str(table.columns["label"][table.row(name)])
            file_of = request.decisions()
            annotations.add(file_of, name, marks[name]["what"], given=own, list=RANDOM, by="samples --audit")
    audit = audit_table(table, marks, None if request is None else request.run)
    if audit is None:
        raise BadSetting("{run} has no labels to audit", run=printable(file))
    rows = audit.order[: max(checks, audit.reached)]
    decided = np.setdiff1d(np.flatnonzero(np.isfinite(audit.wrong)), rows)  # decided but not sampled: last
    order = np.concatenate([rows, decided])
    columns = {name: column[order] for name, column in (table.columns | table.extra).items() if name in COLUMNS}
    columns["wrong"] = np.array([{0.0: "no", 1.0: "yes"}.get(answer, "") for answer in audit.wrong[order].tolist()])
    write_table(file, columns)
    found = audit.found
    record = {"audit": str(file), "rows_to_check": len(rows), "checked": found.checked, "found_wrong": found.found}
    if not found.checked:
        ask = "Write yes or no into the column wrong, then run this again."
        return record, f"{file}: {counted(len(rows), 'row')} to check. {ask}"
    record |= {
        "wrong_labels": found.number,
        "wrong_low": found.interval[0],
        "wrong_high": found.interval[1],
        "still_wrong_at_most": found.bound,
        "may_stop": found.bound < CLEAN,
        "suspects_to_review": {str(share): number for share, number in found.reviews.items()},
    }
    return record, " ".join([audit.estimate, *audit.advice])


# --- two towers -----------------------------------------------------------------------------------


def pairs(args: Namespace) -> None:
    """Print the most suspicious pairs of two towers, and write all of them with `--out`. Raises ValueError."""
    if args.export and args.out:
        raise ValueError("--export and --out cannot be combined")
    out = out_path(args.out, ".parquet", ".csv") if args.out else None
    if args.top < 0:
        raise ValueError(f"--top must be 0 or more; got {args.top}")
    files = [args.file, *args.second, *([args.other] if args.other else [])]
    if len(files) > 2:
        raise ValueError(f"pairs takes one file, or two with a tower each; got {', '.join(map(printable, files))}")
    args.other = files[1] if len(files) > 1 else None
    if args.export:
        return _export_triplets(args)
    name, rows = printable(args.file), rows_of_towers(args)
    towers = towers_of(rows)
    if towers is None:
        raise ValueError(
            f"{name} holds one tower; pairs needs a run of clip, two files of vectors, a table with two columns of "
            "vectors, or two arrays in one .npz: np.savez('both.npz', image=..., caption=...)"
        )
    found, said = find_tower_pairs(towers), tower_notes(towers)
    names = (towers.names[found.query_tower], towers.names[1 - found.query_tower])
    table = pair_table(rows, vars(found), {"names": names, "candidates": found.candidates})
    ids, order = table.columns["id"], table.ranked(MISMATCHED)
    if out:
        told = {"text": np.array([table.texts.get(name, "") for name in ids])} if table.texts else {}
        write_table(out, {name: x[order] for name, x in {"query": ids, **told, **table.extra}.items()})
    notes = [str(note) for note in said["warnings"] + said["notes"]]
    title = f"{args.file} + {args.other}" if args.other else args.file
    lines = [f"{out or printable(title)}: {counted(len(table), 'pair')} of {' and '.join(names)}"]
    left_out = [f"{text}: {found.left_out[reason]:,}" for reason, text in REASONS.items() if found.left_out.get(reason)]
    lines += [f"in no pair: {'; '.join(left_out)}"] if left_out else []
    lines += notes

    def named(name: str) -> str:
        text = table.texts.get(name, "")
        short = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
        return f"{name} “{short}”" if text and text != name else name

    record = {"file": args.file, "other": args.other, "pairs": len(table), "left_out": found.left_out, "notes": notes}
    for one in (LISTS[key] for key in (MISMATCHED, FALSE_NEGATIVES, GIVEN_NEGATIVES)):
        score, entries = table.score(one.column), list[dict[str, str | float]]()
        for row in one.order(table)[: args.top].tolist():
            if not entries:
                lines += ["", f"{one.title}, by {one.score}"]
            assert one.values is not None
            entries.append({"score": float(score[row]), **one.values(table, row)})
            first, *others = (*one.front(table, row), *one.beside(table, row))
            lines += [f"{score[row]:7.2f}  {named(first.id)}", f"         {one.reason(table, row)}"]
            lines += [f"         {other.text}: {named(other.id)}" for other in others]
        record[one.key] = entries
    print_result(args, record | {"out": out and str(out)}, "\n".join(lines))


def _export_triplets(args: Namespace) -> None:
    """Write a file of triplets with the decisions of the app, in its own shape."""
    path, name = Path(args.file), printable(args.file)
    if not file_formats.has_lines(path):
        raise ValueError(f"--export needs a file of triplets (.jsonl, .csv or .parquet); got {name}")
    out = out_path(args.export, path.suffix, option="--export")
    if out.exists():
        raise ValueError(f"{printable(out)} already exists")
    counts = annotations.export_triplets(path, out, space_of(args.file, args).name)
    text = f"{printable(out)}: {counts['rows']:,} of {counted(counts['all_rows'], 'row')}, "
    text += f"{counted(counts['negatives'], 'negative')} removed, {counted(counts['positives'], 'positive')} replaced"
    print_result(args, {"file": args.file, "export": str(out), **counts}, text)


def rows_of_towers(args: Namespace) -> EmbeddingSet:
    """Return the rows of a file, of opened vectors, or of both towers of a run. Raises ValueError; OSError."""
    if is_file(args.file):
        return read_file(args, args.file, args.split)
    space = space_of(args.file, args)
    if run := space.run:
        space = replace(space, layer=TOWERS if run.has_towers else "z")
    with progress_of(args) as on_progress:
        return answers.rows_of(space, on_progress, args.device)


def query(args: Namespace) -> None:
    """Print the images most similar to a sentence. Raises ValueError without a text tower or any known word."""
    text = args.text.strip()
    if not text:
        raise ValueError("the sentence is empty")
    if args.top < 1:
        raise ValueError(f"--top must be 1 or more; got {args.top}")
    run = encoder_of(args.run)
    if not run.has_towers:
        raise ValueError(f"{printable(run.name)} has no text tower: query needs a run of clip")
    space = Space.of_run(run, args.split, TOWERS)
    values = {"space": space.values, "text": text, "most": args.top}
    with progress_of(args) as on_progress:
        found = answers.make("text_query", values, on_progress, args.device)
        rows = answers.rows_of(space, on_progress, args.device)
    unknown, nearest = found.meta["unknown"], found.arrays["rows"].tolist()
    if not nearest:
        raise ValueError(f"the training captions have none of these words: {printable(text)}")
    if unknown:
        print_note(f"words that are not in the training captions: {', '.join(map(printable, unknown))}")
    if (n := len(split_words(text))) > LENGTH and run.config.get("method_knobs", {}).get("text_tower", "") == "":
        print_note(f"the text tower reads the first {LENGTH} of {n} words")
    cosines = found.arrays["similarity"].tolist()
    images = [{"id": rows.ids[i], "cosine": s} for i, s in zip(nearest, cosines, strict=True)]
    lines = [f"{one['cosine']:7.3f}  {one['id']}" for one in images]
    print_result(args, {"run": run.name, "text": text, "unknown": unknown, "images": images}, "\n".join(lines))


def threshold(args: Namespace) -> None:
    """Print the threshold, its basis and the calibration, and write them with `--out`. Raises ValueError."""
    out = out_path(args.out, ".json") if args.out else None
    if not 0 < args.rate < 100:
        raise ValueError(f"--rate must be between 0 and 100 percent; got {args.rate:g}")
    towers, name = towers_of(rows_of_towers(args)), printable(Path(args.file).name)
    if towers is None:
        raise UnusableEmbedding(NOT_TOWERS, name=name)
    qrels = read_qrels(args.qrels) if args.qrels else None
    found = find_threshold(JudgedPairs.of(towers, qrels, judgments_file(args.qrels).name), args.rate / 100)
    record = found.record(name, args.qrels)
    if out:
        write_bytes(out, json_bytes(record))
    lines = [found.sentence(name), found.basis, "", "similarity  matches  95 % CI"]
    for part in found.calibration:
        low, high = (f"{100 * end:.0f}" for end in part.interval)
        lines.append(f"{part.similarity:10.3f}  {100 * part.share:5.1f} %  {low} to {high}")
    print_result(args, record, "\n".join(lines))
