"""Commands that read trained runs and files of vectors: `evaluate` scores them, `explain` finds the patches or words
that make two samples similar, `references` lists runs to compare with, and `analyze` computes the results of the app's
pages."""

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

from PIL import Image

from contrastive_core.base.errors import BadSetting, explained
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import printable
from contrastive_core.base.progress import OnProgress
from contrastive_core.base.score import Scores, scores_from_json, scores_to_json
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
    score_beside_chance,
    towers_space,
)
from contrastive_core.compare.comparison import judgments_request
from contrastive_core.compare.evaluate import evaluate_vectors, metric_names, scored_rows
from contrastive_core.compare.evaluation import (
    PREFIX,
    add_reference,
    name_of,
    read_evaluation,
    reference_names,
    references_named,
    remove_reference,
)
from contrastive_core.compare.likeness import figure
from contrastive_core.compare.retrieval import FIGURES, METRICS, best_by_size, scores_of, smallest
from contrastive_core.engine import answers
from contrastive_core.engine.answers.scores import evaluate as evaluate_run
from contrastive_core.runs.records import LoopCheck
from contrastive_core.runs.run_metrics import read_loop_check
from contrastive_core.spaces import file_formats, results
from contrastive_core.spaces.space import Space

LEFT_OUT = {"not_finite": "values that are not finite", "zero": "all zeros"}  # rows of a file, by the reason


class RecordingState(TypedDict):
    """The latest metrics of a recording, the findings of its loop checks, and the note on its status."""

    towers: list[str] | None
    figures: dict[str, float]
    loop_check: LoopCheck | None
    note: str


class ScoreRecord(TypedDict, total=False):
    """The scores of a run (`Evaluation.to_json`), of a file of vectors (`evaluate_vectors`) or of opened vectors."""

    file: str
    space: str
    split: str
    n: int
    n_test: int
    n_train: int
    pairs: int
    rows: dict[str, int]  # rows behind each score
    scores: dict[str, object]  # plain scores, of a run by source
    chance: dict[str, object]
    left_out: dict[str, int]  # rows by reason
    notes: list[str]
    recording: RecordingState


def evaluate(args: Namespace) -> None:
    """Score a run with its baselines (raw pixels, a random encoder), or a file of vectors alone."""
    if args.cost:
        print_cost(args)
        return
    chosen = [name.strip() for name in args.metrics.split(",")] if args.metrics else None
    with progress_of(args) as on_progress:
        if is_file(args.run):
            record = _file_record(args, chosen, on_progress)
            scored = {record["file"]: scores_from_json(record["scores"])}
        elif args.train:
            raise ValueError("--train goes with a file of vectors; a run has its own training set")
        elif space := loaded_space(args.run, args):
            names = metric_names(chosen)
            made = answers.make("scores", {"space": space.values}, on_progress, args.device).meta
            record = {"space": space.title, "n": made["n"], "n_test": made["n_test"], "n_train": made["n_train"]}
            every = answers.rows_of(space, on_progress, args.device)
            record["rows"] = scored_rows(names, answers.test_rows(space, every, on_progress, args.device)[1], every)
            record["scores"] = {name: made["scores"]["own"][name] for name in names}
            if (place := space.recorded) is not None and not chosen:
                run = place.run
                record["recording"] = {
                    "towers": place.tower_names,
                    "figures": {name: v for line in run.metrics() for name, v in line.items() if v is not None},
                    "loop_check": read_loop_check(run),
                    "note": run.status().get("note") or "",
                }
            scored = {space.title: scores_from_json(record["scores"])}
        else:
            run, split = run_of(args.run, args), args.split or "test"
            known = read_evaluation(run, split) if chosen else None
            evaluation = known or evaluate_run(run, split, args.device, on_progress, chosen)
            evaluation = evaluation.only(metric_names(chosen)) if chosen else evaluation
            record = cast(ScoreRecord, evaluation.to_json())
            by_source = dict(evaluation.scores)
            if args.reference and split != "test":
                raise BadSetting("references are scored on the test images; remove --reference or --split train")
            beside = references_named(args.reference, run.data_key, but=run.name) if split == "test" else []
            for reference in beside:
                taken = evaluate_run(reference, split, args.device, on_progress, chosen).scores["h"]
                by_source[PREFIX + reference.name] = shown = {name: taken[name] for name in metric_names(chosen)}
                record["scores"][PREFIX + reference.name] = scores_to_json(shown)
            scored = {name_of(k): v for k, v in by_source.items()}
            note_left_out(run, split)
    for reason, count in record.get("left_out", {}).items():
        if count:
            print_note(f"{count:,} row{'' if count == 1 else 's'} left out: {LEFT_OUT[reason]}")
    for note in record.get("notes", ()):
        print_note(note)
    print_result(args, record, _scores_text(args, record, scored))


def _file_record(args: Namespace, chosen: list[str] | None, on_progress: OnProgress) -> ScoreRecord:
    """Score a file of vectors, or the two towers in one or two files. Raises ValueError for unsuitable options."""
    if args.split == "train":
        raise ValueError("a file is scored on its test rows; --split train goes with a run")
    if (args.other or args.towers or args.by) and (args.train or chosen):
        raise ValueError("two towers are scored by recall and their gap: --train and --metrics go with one tower")
    name, rows = Path(args.run).name, read_file(args, args.run)
    train = (Path(args.train).name, file_formats.read(args.train, leave_out=args.leave_out)) if args.train else None
    name += f" + {Path(args.other).name}" if args.other else ""
    return cast(ScoreRecord, evaluate_vectors(name, rows, train, chosen, args.device, on_progress))


def _scores_text(args: Namespace, record: ScoreRecord, scored: Mapping[str, Scores]) -> str:
    """List the scores of each source. For a file, add the number of rows behind each score."""
    name = record.get("file") or record.get("space") or f"{args.run}, {record['split']}"
    counts = f"{record['n_train']:,} to train" if "pairs" not in record else counted(record["pairs"], "pair")
    lines, rows = [f"{name}: {counted(record['n_test'], 'row')}, {counts}"], record.get("rows", {})
    chance = scores_from_json(record.get("chance", {}))
    for source, scores in scored.items():
        lines += ["", f"{source}:"]
        for metric, score in scores.items():
            on = f"  on {counted(rows[metric], 'row')}" if metric in rows and score.value is not None else ""
            lines.append(f"  {score.title:<23} {score_beside_chance(scores, chance, metric)}{on}")
    if recording := record.get("recording"):
        towers, figures, check = recording["towers"], recording["figures"], recording["loop_check"]
        names = f", towers {' and '.join(map(printable, towers))}" if towers else ""
        said = [f"Recording at step {figures.get('step', 0):,}{names}:"]
        said += [f"  {name:<23} {value:.4g}" for name, value in figures.items() if name != "step"]
        if check:
            affected = [row for fault in check["faults"] for row in fault["rows"]]
            said += [check["text"] or check["problem"], check["numbers"] if check["text"] else ""]
            said += [f"Affected rows: {', '.join(map(printable, affected))}" if affected else ""]
        lines += ["", *filter(None, [*said, recording["note"]])]
    return "\n".join(lines)


# --- the cost of smaller vectors ---


def print_cost(args: Namespace) -> None:
    """Print recall@10 and nDCG@10 by the bytes of a vector, and the smallest vectors that lose at most --margin."""
    values = {"space": towers_space(args, args.run).values, **judgments_request(args.qrels)}
    with progress_of(args) as on_progress:
        made = answers.make("compression", values, on_progress, args.device).meta
    cells = cost_cells(made)
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in cells]
    head, best, *said = cost_sentences(made, args.margin)
    kept = smallest(scores_of(made["scores"]), args.margin / 100)
    record = {**made, "margin": args.margin, "smallest": [vars(one) for one in kept], "against": said}
    print_result(args, record, "\n".join([head, "", *lines, "", best, *said]))


def cost_cells(made: JsonObject) -> list[tuple[str, ...]]:
    """Return a table of the best vectors of each size, the heads first. Args: made: of the analysis "compression"."""
    titles = [f"{FIGURES[m]}{part}" for m in METRICS for part in ("", ", change (95 %)")]
    cells = [("vector", "bytes", *titles)]
    scores = scores_of(made["scores"])
    full = scores[: len(METRICS)]
    for of_vector in [*(best for best in best_by_size(scores) if best[0].size < full[0].size), full]:
        row = ["full vectors" if of_vector is full else str(of_vector[0].contrast.first), f"{of_vector[0].size:,g}"]
        for one in of_vector:
            low, high = (f"{100 * end:+.1f}" for end in one.interval)
            row += [f"{100 * one.value:.1f}", f"{100 * one.loss:+.1f} ({low} to {high})"]
        cells.append(tuple(row))
    return cells


def cost_sentences(made: JsonObject, margin: float) -> list[str]:
    """Describe the rows, then the smallest vectors that lose at most `margin` points and their metrics."""
    counts = {k: f"{made[k]:,}" for k in ("queries", "of", "documents", "width")}
    head = "{queries} of {of} queries, {documents} documents, {width} dimensions; the best vectors of each size:"
    kept, points = smallest(scores_of(made["scores"]), margin / 100), f"{margin:g}"
    text = f"The smallest vectors that lose at most {points} points have {{size:,g}} of {4 * made['width']:,} bytes."
    best = text.format(size=kept[0].size) if kept else f"No vectors are shown to lose at most {points} points."
    return [head.format(**counts), best, *(str(one.contrast.against(margin / 100)) for one in kept)]


# --- explanations, analyses, references ---


def explain(args: Namespace) -> None:
    """Print the similarity of two samples and the contribution of each patch or word. Raises ValueError."""
    out = out_path(args.out, ".png") if args.out else None
    run = encoder_of(args.run)
    values = {"space": Space.of_run(run, args.split, args.layer).values, "ids": args.ids}
    with progress_of(args) as on_progress:
        found = answers.make("likeness", values, on_progress, args.device)
    meta, patches = found.meta, found.arrays["patches"]
    maps = [patches.sum(1 - k).reshape(shape) for k, shape in enumerate(meta["shapes"])]
    similarity, explained, (low, high) = meta["similarity"], meta["explained"], meta["interval"]
    lines = [f"{run.name}: cosine similarity {similarity:.3f}, a sum over pairs of patches"]
    if not meta["is_exact"]:
        lines = [
            f"{run.name}: cosine similarity {similarity:.3f}; the parts, integrated Jacobians, sum to {explained:.3f}"
        ]
    for name, parts, words in zip(args.ids, maps, meta["words"], strict=True):
        lines += [f"{name}: part of each {'word' if words else 'patch'} in %"]
        shares = 100 * parts / explained
        lines += [f"   {share:6.1f} {word}" for share, word in zip(shares.flat, words, strict=False)]
        lines += [] if words else ["   " + " ".join(f"{share:5.1f}" for share in row) for row in shares]
    lines += [
        f"Covering those with the largest parts lowers it by {meta['gap']:.3f} more than covering random ones "
        f"(area between the curves, 95 % CI over random orders: {low:.3f} to {high:.3f})."
    ]
    images = {k: found.arrays[f"image{k}"] for k in (0, 1) if f"image{k}" in found.arrays}
    if out and images:
        Image.fromarray(figure([*images.values()], [maps[k] for k in images])).save(out)
        lines += [f"wrote {out}"]
    record = {"run": run.name, "ids": args.ids, **meta, "maps": [parts.tolist() for parts in maps]}
    print_result(args, record, "\n".join(lines))


def analyze(args: Namespace) -> None:
    """Compute and store an analysis for a page."""
    try:
        values = json.loads(args.values)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ValueError(f"the values of an analysis are a JSON object; got {printable(args.values, 80)!r}")
    with progress_of(args) as on_progress:
        try:
            answers.answer(args.kind, values, on_progress, args.device)
        except (KeyError, TypeError, AttributeError) as error:
            why = printable(explained(error))
            raise ValueError(f"these values do not fit the analysis {args.kind}: {why}") from error
    out = "" if args.kind in answers.FILES else str(results.path(args.kind, values))
    print_result(args, {"kind": args.kind, "out": out}, out or f"{args.kind}: done")


def references(args: Namespace) -> None:
    """Add or remove reference runs, then list all."""
    for name in args.runs:
        (remove_reference if args.remove else add_reference)(name)
    names = reference_names()
    print_result(args, {"references": names}, "\n".join(names) or "no references")
