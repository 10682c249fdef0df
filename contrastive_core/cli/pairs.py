"""Commands for two towers: `pairs` lists mismatched pairs, `query` the images most similar to a sentence, and
`threshold` finds the similarity from which a pair is a match."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import printable
from contrastive_core.base.storage import write_bytes, write_table
from contrastive_core.cli.command_io import (
    counted,
    encoder_of,
    is_file,
    out_path,
    print_note,
    print_result,
    progress_of,
    read_file,
    space_of,
)
from contrastive_core.compare.match_threshold import JudgedPairs, find_threshold
from contrastive_core.compare.retrieval import NOT_TOWERS
from contrastive_core.compare.towers import tower_notes
from contrastive_core.data.captions import LENGTH, split_words
from contrastive_core.engine import answers
from contrastive_core.samples import corrected_data
from contrastive_core.samples.pair_table import GivenNegatives, find_given_negatives
from contrastive_core.samples.tower_pairs import TowerPairs, find_tower_pairs
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.label_files import judgments_file, read_qrels
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import TEXT, Towers, plain_rank, towers_of

SHOWN = 60  # characters of a row's text
EVIDENCE = ("mismatch", "similarity", "rank", "rank_back", "better_similarity", "of_queries", "of_partners")
Entry = dict[str, str | float]  # of a list: names of rows with the start of their texts, and scores
REASONS = {"zero": "zero rows", "not_finite": "rows that are not finite", "unpaired": "rows without a usable partner"}


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
        return _export(args)
    name, rows = printable(args.file), rows_of_towers(args)
    towers = towers_of(rows)
    if towers is None:
        raise ValueError(
            f"{name} holds one tower; pairs needs a run of clip, two files of vectors, a table with two columns of "
            "vectors, or two arrays in one .npz: np.savez('both.npz', image=..., caption=...)"
        )
    found, said = find_tower_pairs(towers), tower_notes(towers)
    columns = _columns(rows, found)
    asked, answer = (found.partner, found.query) if found.query_tower else (found.query, found.partner)
    given = find_given_negatives(towers, asked, answer)
    columns |= {
        "given_negative": np.where(given.row < 0, "", np.array(rows.ids)[given.row]),
        "given_score": given.score,
    }
    lists = _lists(rows, found, columns, given, args.top)
    notes = [str(note) for note in said.warnings + said.notes]
    if out:
        write_table(out, {name: column[found.mismatched()] for name, column in columns.items()})
    record = {
        "file": args.file,
        "other": args.other,
        "pairs": len(found.query),
        "left_out": found.left_out,
        "notes": notes,
        "out": out and str(out),
        **lists,
    }
    title = printable(f"{args.file} + {args.other}" if args.other else args.file)
    print_result(args, record, _text(str(out) if out else title, towers, found, notes, lists))


def _export(args: Namespace) -> None:
    """Write a file of triplets with the decisions of the app, in its own shape."""
    path, name = Path(args.file), printable(args.file)
    if not file_formats.has_lines(path):
        raise ValueError(f"--export needs a file of triplets (.jsonl, .csv or .parquet); got {name}")
    out = out_path(args.export, path.suffix, option="--export")
    if out.exists():
        raise ValueError(f"{printable(out)} already exists")
    counts = corrected_data.export_triplets(path, out, space_of(args.file, args).name)
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


def _columns(rows: EmbeddingSet, found: TowerPairs) -> dict[str, np.ndarray]:
    """Return the columns of the output table, one row per pair."""
    ids = np.array(rows.ids)
    return {
        "query": ids[found.query],
        "partner": ids[found.partner],
        "text": _texts(rows, found.query),
        **{name: getattr(found, name) for name in EVIDENCE[:4]},
        "better": ids[found.better],
        **{name: getattr(found, name) for name in EVIDENCE[4:]},
        "false_negative": found.false_negative,
        "twin_query": ids[found.query[found.twin]],
        "twin_partner": ids[found.partner[found.twin]],
    }


def _lists(
    rows: EmbeddingSet, found: TowerPairs, columns: Mapping[str, np.ndarray], given: GivenNegatives, top: int
) -> dict[str, list[Entry]]:
    """Return the first entries of the three lists."""

    def pair(i: int) -> dict[str, str]:
        return {"query": _named(rows, found.query[i]), "partner": _named(rows, found.partner[i])}

    mismatched: list[Entry] = []
    for i in found.mismatched()[:top].tolist():
        ranks = {name: plain_rank(columns[name][i]) for name in ("rank", "rank_back")}
        evidence = {name: float(columns[name][i]) for name in EVIDENCE}
        mismatched.append({**pair(i), "better": _named(rows, found.better[i]), **evidence, **ranks})
    false_negatives: list[Entry] = []
    for i, j in found.false_negatives()[:top].tolist():
        score = max(found.false_negative[k] for k, other in ((i, j), (j, i)) if found.twin[k] == other)
        own = {"similarity": float(found.similarity[i]), "other_similarity": float(found.similarity[j])}
        others = {f"other_{name}": text for name, text in pair(j).items()}
        false_negatives.append({"false_negative": float(score), **own, **pair(i), **others})
    order = np.lexsort((-given.score, ~given.is_positive)).tolist()
    negatives: list[Entry] = []
    for i in [i for i in order if given.row[i] >= 0][:top]:
        own = {"score": float(given.score[i]), "similarity": float(found.similarity[i])}
        is_positive = bool(given.is_positive[i])
        negatives.append({**own, **pair(i), "negative": _named(rows, given.row[i]), "is_positive": is_positive})
    return {"mismatched": mismatched, "false_negatives": false_negatives, "given_negatives": negatives}


def _texts(rows: EmbeddingSet, at: np.ndarray) -> np.ndarray:
    """Return the texts of the rows at the indices `at`; "" for rows without a text."""
    texts = rows.columns.get(TEXT, rows.texts)
    return np.full(len(at), "") if texts is None else texts[at]


def _named(rows: EmbeddingSet, at: np.integer) -> str:
    """Format the id of a row with the start of its text."""
    text = str(_texts(rows, np.array([at]))[0])
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return f"{rows.ids[at]} “{short}”" if text and text != rows.ids[at] else rows.ids[at]


def _text(
    name: str, towers: Towers, found: TowerPairs, notes: Sequence[str], lists: Mapping[str, Sequence[Entry]]
) -> str:
    query, partner = towers.names[found.query_tower], towers.names[1 - found.query_tower]
    left_out = [f"{REASONS[reason]}: {n:,}" for reason, n in found.left_out.items() if n and reason in REASONS]
    lines = [f"{name}: {counted(len(found.query), 'pair')} of {query} and {partner}"]
    lines += [f"left out: {'; '.join(left_out)}"] if left_out else []
    negatives = counted(found.left_out["negatives"], "document")
    lines += [f"only given negatives, in no pair: {negatives}"] if found.left_out["negatives"] else []
    lines += notes
    lines += ["", "Mismatched pairs, the most suspicious first"] if lists["mismatched"] else []
    many, many_back = (f"{n:,}" for n in found.candidates)
    for one in lists["mismatched"]:
        lines += [
            f"{one['mismatch']:7.2f}  {one['query']} | {one['partner']}",
            f"         cosine {one['similarity']:.2f}; rank from {query} to {partner} {one['rank']:,} of {many}, "
            f"from {partner} to {query} {one['rank_back']:,} of {many_back}",
            f"         more similar: {one['better']} ({one['better_similarity']:.2f}); neighbors agree "
            f"{one['of_queries']:.2f} ({query}), {one['of_partners']:.2f} ({partner})",
        ]
    lines += ["", "False negatives: each fits the other's partner too"] if lists["false_negatives"] else []
    for one in lists["false_negatives"]:
        lines += [
            f"{one['false_negative']:7.2f}  {one['query']} | {one['partner']} (cosine {one['similarity']:.2f})",
            f"         {one['other_query']} | {one['other_partner']} (cosine {one['other_similarity']:.2f})",
        ]
    lines += ["", "Given negatives that resemble the query and its answers"] if lists["given_negatives"] else []
    for one in lists["given_negatives"]:
        score = f"{'same':>7}" if one["is_positive"] else f"{one['score']:7.2f}"
        lines += [f"{score}  {one['query']} | {one['partner']} (cosine {one['similarity']:.2f})"]
        same = "         given as a negative: the same document as the positive"
        lines += [same if one["is_positive"] else f"         given as a negative: {one['negative']}"]
    return "\n".join(lines)


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
