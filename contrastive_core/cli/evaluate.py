"""Commands that read trained runs and files of vectors: `evaluate` scores them, `explain` finds the patches or words
that make two samples similar, `references` lists runs to compare with, and `analyze` computes the results of the app's
pages."""

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

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
    table_lines,
    towers_space,
)
from contrastive_core.compare.comparison import judgments_request
from contrastive_core.compare.evaluate import evaluate_split, metric_names, scored_rows
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
from contrastive_core.compare.towers import tower_notes, tower_scores
from contrastive_core.engine import answers
from contrastive_core.engine.answers.scores import evaluate as evaluate_run
from contrastive_core.runs.run_metrics import read_loop_check
from contrastive_core.spaces import file_formats, results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.loaded_vectors import check_usable
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.space import Space, train_test_split
from contrastive_core.spaces.towers import towers_of

LEFT_OUT = {"not_finite": "values that are not finite", "zero": "all zeros"}  # rows of a file, by the reason


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
            record = _space_record(space, args.device, chosen, on_progress)
            scored = {space.title: scores_from_json(record["scores"])}
        else:
            run, split = run_of(args.run, args), args.split or "test"
            known = read_evaluation(run, split) if chosen else None
            evaluation = known or evaluate_run(run, split, args.device, on_progress, chosen)
            evaluation = evaluation.only(metric_names(chosen)) if chosen else evaluation
            record, by_source = evaluation.to_json(), dict(evaluation.scores)
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
            print_note(f"{counted(count, 'row')} left out: {LEFT_OUT[reason]}")
    for note in record.get("notes", ()):
        print_note(note)
    print_result(args, record, _scores_text(args, record, scored))


def _file_record(args: Namespace, chosen: list[str] | None, on_progress: OnProgress) -> JsonObject:
    """Score a file of vectors, or the two towers in one or two files. Raises: ValueError for unsuitable options;
    UnknownName; UnusableEmbedding."""
    if args.split == "train":
        raise ValueError("a file is scored on its test rows; --split train goes with a run")
    if (args.other or args.towers or args.by) and (args.train or chosen):
        raise ValueError("two towers are scored by recall and their gap: --train and --metrics go with one tower")
    name, rows, names = Path(args.run).name, read_file(args, args.run), metric_names(chosen)
    name += f" + {Path(args.other).name}" if args.other else ""
    record = {"file": name, "left_out": {reason: len(at) for reason, at in rows.problems.items()}, "n_train": 0}
    if chosen is None and (towers := towers_of(rows)) is not None:
        own, chance, _ = tower_scores(towers)
        said, usable = tower_notes(towers, (own, chance)), towers_of(rows.take(rows.usable))
        record |= {"n": len(rows), "n_test": sum(len(at) for at, _ in towers.usable_sides())}
        record |= {"pairs": 0 if usable is None else usable.partner_pairs(1)[1]}
        notes = [str(note) for note in said["warnings"] + said["notes"]]
        return record | {"scores": scores_to_json(own), "chance": scores_to_json(chance), "notes": notes}
    every, train = _usable_rows(name, rows), None
    test = every
    if args.train:
        taught = file_formats.read(args.train, leave_out=args.leave_out)
        train = _usable_rows(Path(args.train).name, taught)
    elif every.labels is not None:
        train, test, _, _ = train_test_split(every)
    on_progress("scoring", None)
    scores = evaluate_split(names, (train, test), every, Graphs(args.device, on_progress=on_progress))
    return record | {
        "train": Path(args.train).name if args.train else None,
        "n": len(every),
        "rows": scored_rows(names, test, every),
        "n_test": len(test),
        "n_train": len(train) if train else 0,
        "scores": scores_to_json(scores),
    }


def _usable_rows(name: str, rows: EmbeddingSet) -> EmbeddingSet:
    """Return the rows with a defined cosine. Raises UnusableEmbedding for fewer than two."""
    usable = rows.usable
    check_usable(name, len(usable), {reason: len(at) for reason, at in rows.problems.items()})
    return rows if len(usable) == len(rows) else rows.take(usable)  # no copy of a large file


def _space_record(space: Space, device: str, chosen: list[str] | None, on_progress: OnProgress) -> JsonObject:
    """Score opened vectors or a recording, with the recording's latest figures and loop check. Raises UnknownName."""
    names = metric_names(chosen)
    made = answers.make("scores", {"space": space.values}, on_progress, device).meta
    every = answers.rows_of(space, on_progress, device)
    test = answers.test_rows(space, every, on_progress, device)[1]
    record = {"space": space.title, "rows": scored_rows(names, test, every)}
    record |= {count: made[count] for count in ("n", "n_test", "n_train")}
    record["scores"] = {name: made["scores"]["own"][name] for name in names}
    if (place := space.recorded) is not None and not chosen:
        run = place.run
        record["recording"] = {
            "towers": place.tower_names,
            "figures": {name: v for line in run.metrics() for name, v in line.items() if v is not None},
            "loop_check": read_loop_check(run),
            "note": run.status().get("note") or "",
        }
    return record


def _scores_text(args: Namespace, record: JsonObject, scored: Mapping[str, Scores]) -> str:
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
    head, best, *said = cost_sentences(made, args.margin)
    kept = smallest(scores_of(made["scores"]), args.margin / 100)
    record = {**made, "margin": args.margin, "smallest": [vars(one) for one in kept], "against": said}
    print_result(args, record, "\n".join([head, "", *table_lines(cost_cells(made)), "", best, *said]))


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
    explained, (low, high) = meta["explained"], meta["interval"]
    lines = [f"{run.name}: cosine similarity {meta['similarity']:.3f}"]
    lines[0] += ", a sum over pairs of patches" * meta["is_exact"]
    lines[0] += f"; the parts, integrated Jacobians, sum to {explained:.3f}" * (not meta["is_exact"])
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
