"""Commands that read trained runs: embed, evaluate, project, compare, export, references, and
`analyze`, which computes the results of the app's pages."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.errors import BadSetting, explained
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.progress import OnProgress, fraction_of
from contrastive_core.base.safe_files import printable, write_table
from contrastive_core.base.score import Scores, recall_text, scores_from_json, scores_to_json
from contrastive_core.cli import sources
from contrastive_core.cli.differences import name_differences
from contrastive_core.cli.duels import judge_duels
from contrastive_core.cli.output import (
    counted,
    note_left_out,
    out_path,
    print_note,
    print_result,
    progress_of,
    score_text,
)
from contrastive_core.cli.query_figures import query_figures
from contrastive_core.cli.retrieval import print_cost, write_adapter
from contrastive_core.compare.comparison import Comparison, comparison_request
from contrastive_core.compare.embed import embed_run
from contrastive_core.compare.entries import check_accuracies
from contrastive_core.compare.evaluate import evaluate_vectors, metric_names, scored_rows
from contrastive_core.compare.evaluation import name_of, read_evaluation
from contrastive_core.compare.representation_similarity import MEASURES
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.engine import answers
from contrastive_core.engine.answers.scores import evaluate as evaluate_run
from contrastive_core.engine.answers.scores import map_of_rows
from contrastive_core.exchange.exporters import export_onnx, export_tensorboard
from contrastive_core.runs.references import PREFIX, add, named_on, read_names, remove
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import read_loop_check
from contrastive_core.spaces import file_formats, results
from contrastive_core.spaces.graphs import Graphs
from contrastive_core.spaces.space import TOWERS, Space, layers_of
from contrastive_core.spaces.towers import towers_of

LEFT_OUT = {"not_finite": "values that are not finite", "zero": "all zeros"}  # rows of a file, by the reason


def embed(args: Namespace) -> None:
    """Write the embedding of a split to a file; without a file, store all layers for the app."""
    out = args.out and out_path(args.out, ".npz", ".parquet")
    run = sources.encoder_of(args.run)
    with progress_of(args) as on_progress:
        for layer in (args.layer,) if out else layers_of(run):
            rows = embed_run(run, args.split, layer, args.device, fraction_of(on_progress, "embedding"))
    note_left_out(run, args.split)
    if out:
        rows.save(out)
    record = {"run": run.name, "rows": len(rows), "width": rows.width, "out": out}
    layer = args.layer if out else ", ".join(layers_of(run))
    print_result(
        args, record, f"{out or run.name}: {counted(len(rows), 'row')} of {rows.width} ({layer}, {args.split})"
    )


def evaluate(args: Namespace) -> None:
    """Score a run with its baselines (raw pixels, a random encoder), or a file of vectors alone."""
    if args.cost:
        print_cost(args)
        return
    chosen = _names(args.metrics)
    with progress_of(args) as on_progress:
        if sources.is_file(args.run):
            record: Mapping[str, Any] = _file_record(args, chosen, on_progress)
            scored = {str(record["file"]): scores_from_json(record["scores"])}
        elif args.train:
            raise ValueError("--train goes with a file of vectors; a run has its own training set")
        elif space := sources.loaded_space(args.run, args):
            names = metric_names(chosen)
            made = answers.make("scores", {"space": space.values}, on_progress, args.device).meta
            record = {"space": space.title, **{k: made[k] for k in ("n", "n_test", "n_train")}}
            every = answers.rows_of(space, on_progress, args.device)
            record["rows"] = scored_rows(names, answers.test_rows(space, every, on_progress, args.device)[1], every)
            record |= {"scores": {name: made["scores"]["own"][name] for name in names}}
            if space.recorded is not None and not chosen:
                record["recording"] = _of_recording(space.recorded.run)
            scored = {space.title: scores_from_json(record["scores"])}
        else:
            run, split = sources.run_of(args.run, args), args.split or "test"
            known = read_evaluation(run, split) if chosen else None
            evaluation = known or evaluate_run(run, split, args.device, on_progress, chosen)
            evaluation = evaluation.only(metric_names(chosen)) if chosen else evaluation
            record = evaluation.to_json()
            by_source = dict(evaluation.scores)
            if args.reference and split != "test":
                raise BadSetting("references are scored on the test images; remove --reference or --split train")
            beside = named_on(args.reference, run.data_key, but=run.name) if split == "test" else []
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


def _file_record(args: Namespace, chosen: list[str] | None, on_progress: OnProgress) -> JsonObject:
    """Score a file of vectors, or the two towers in one or two files. Raises ValueError for unsuitable options."""
    if args.split == "train":
        raise ValueError("a file is scored on its test rows; --split train goes with a run")
    if (args.other or args.towers or args.by) and (args.train or chosen):
        raise ValueError("two towers are scored by recall and their gap: --train and --metrics go with one tower")
    name, rows = Path(args.run).name, sources.read_file(args, args.run)
    train = (Path(args.train).name, file_formats.read(args.train, leave_out=args.leave_out)) if args.train else None
    name += f" + {Path(args.other).name}" if args.other else ""
    return evaluate_vectors(name, rows, train, chosen, args.device, on_progress)


def _of_recording(run: Run) -> JsonObject:
    """Return the latest metrics of a recording, the findings of its loop checks, and the note on its status."""
    return {
        "towers": run.manifest.get("recording", {}).get("towers"),
        "figures": {name: value for line in run.metrics() for name, value in line.items() if value is not None},
        "loop_check": read_loop_check(run),
        "note": run.status().get("note") or "",
    }


def _recording_text(towers: Sequence[str] | None, figures: JsonObject, loop_check: JsonObject | None, note: str) -> str:
    names = f", towers {' and '.join(map(printable, towers))}" if towers else ""
    lines = [f"Recording at step {figures.get('step', 0):,}{names}:"]
    lines += [f"  {name:<23} {value:.4g}" for name, value in figures.items() if name != "step"]
    if loop_check:
        rows = [row for fault in loop_check["faults"] for row in fault["rows"]]
        lines += [loop_check["text"] or loop_check["problem"], loop_check["numbers"] if loop_check["text"] else ""]
        lines += [f"Affected rows: {', '.join(map(printable, rows))}" if rows else ""]
    return "\n".join(filter(None, [*lines, note]))


def _scores_text(args: Namespace, record: Mapping[str, Any], scored: Mapping[str, Scores]) -> str:
    """List the scores of each source. For a file, add the number of rows behind each score."""
    name = record.get("file") or record.get("space") or f"{args.run}, {record['split']}"
    counts = f"{record['n_train']:,} to train" if "pairs" not in record else counted(record["pairs"], "pair")
    lines, rows = [f"{name}: {counted(record['n_test'], 'row')}, {counts}"], record.get("rows", {})
    chance = scores_from_json(record.get("chance", {}))
    for source, scores in scored.items():
        lines += ["", f"{source}:"]
        for metric, score in scores.items():
            on = f"  on {counted(rows[metric], 'row')}" if metric in rows and score.value is not None else ""
            lines.append(f"  {score.title:<23} {_beside_chance(scores, chance, metric)}{on}")
    if recording := record.get("recording"):
        lines += ["", _recording_text(**recording)]
    return "\n".join(lines)


def _names(text: str | None) -> list[str] | None:
    """Split comma-separated names; None for an empty text."""
    return [name.strip() for name in text.split(",")] if text else None


def project(args: Namespace) -> None:
    """Write a map of a run or of a file of vectors, with id, x, y and label."""
    out = out_path(args.out, ".parquet", ".csv")
    umap_settings = {"seed": args.seed, "neighbors": args.neighbors, "min_dist": args.min_dist}
    settings = {**umap_settings, "metric": args.metric} if args.method == "umap" else {}
    with progress_of(args) as on_progress:
        if sources.is_file(args.source):
            rows = sources.read_file(args, args.source, args.split)
            graphs = Graphs(args.device, on_progress=on_progress)
            made = map_of_rows(rows, args.method, settings, graphs, on_progress)
        else:  # the map that the app shows too
            values = {"space": sources.space_of(args.source, args).values, "kind": args.method, **settings}
            rows = answers.rows_of(Space(**values["space"]), on_progress, args.device)
            made = answers.make("map", values, on_progress, args.device)
    xy, meta = made.arrays["xy"], made.meta
    labels = [""] * len(rows)
    if rows.labels is not None:
        labels = [rows.class_name(i) for i in rows.labels.tolist()]
    write_table(out, {"id": list(rows.ids), "x": xy[:, 0], "y": xy[:, 1], "label": labels})
    quality = meta["quality"]
    names = ("trustworthiness", "continuity", "trustworthiness_of_landmarks")
    measures = [f"{k.replace('_', ' ')} {quality[k]:.3f}" for k in names if k in quality]
    if quality.get("judged", 0) < quality.get("n", 0):
        measures.append(f"judged on {counted(quality['judged'], 'row')}")
    measures += filter(None, [recall_text(quality.get("recall"))])
    how, landmarks = args.method, meta["settings"].get("landmarks")
    if landmarks:
        how += f" of {landmarks:,} landmarks, the others placed amid their nearest"
    record = {"out": str(out), "rows": len(rows), **meta["settings"], **quality}
    print_result(args, record, f"{out}: {len(rows):,} points by {how}; {', '.join(measures)}")


def compare(args: Namespace) -> None:
    """Compare runs on the same samples: which one is better, how similar their embeddings are, or what differs."""
    if args.adapter:
        write_adapter(args)
        return
    if args.differences:
        name_differences(args)
        return
    if args.duels:
        judge_duels(args)
        return
    metrics = _names(args.metrics) or [*ACCURACIES]
    check_accuracies(metrics)
    spaces = sources.spaces_of(args)
    with progress_of(args) as on_progress:
        values = {**comparison_request(spaces, every_score=False, qrels=args.qrels), "metrics": metrics}
        values |= {"is_scored_only": True} if args.qrels else {}
        made = answers.make("comparison", values, on_progress, args.device)
        comparison = Comparison.of(made.meta, made.arrays)
        by_order = {"spaces": values["spaces"]}
        random = None if args.qrels else answers.make("calibration", by_order, on_progress, args.device)
        recalls = {} if args.qrels else _recalls(spaces, comparison.names, args.device, on_progress)
        sets = [answers.rows_of(space, on_progress, args.device) for space in spaces[:2]]
    lines = [*comparison.verdicts.values()] or [comparison.verdict]
    lines += [d.contrast.sentence for d in comparison.differences if len(comparison.names) > 2]
    if random is not None and len(comparison.names) == 2:
        for m in MEASURES:
            limit, calibrated, p = (random.arrays[f"{name}:{m}"][0, 1] for name in ("chance", "calibrated", "p"))
            value = getattr(comparison, m)[0, 1]
            lines.append(f"{m} {value:.3f}, by chance {limit:.3f}, calibrated {calibrated:.3f}, p = {p:.3f}")
    if note := recall_text(comparison.recall):
        lines.append(f"shared neighbors: {note}")
    for m, made_of in comparison.made_of.items():
        named = zip(comparison.names, made_of, strict=True)
        lines += [f"{comparison.titles[m]} of {name}: {text}" for name, text in named if text]
    for name, found in recalls.items():
        own, chance = (scores_from_json(found[source]) for source in ("own", "chance"))
        lines += [f"{own[key].title} of {name}: {_beside_chance(own, chance, key)}" for key in chance]
        lines += [f"{name}: {warning}" for warning in found["warnings"]]
    of_queries: JsonObject = {}
    if any(m not in ACCURACIES for m in comparison.correct):
        said, of_queries = query_figures(comparison, sets, 0.5 if args.margin is None else args.margin, args.top)
        lines += said
    by_chance = random.arrays if random else {}
    record = {
        **{name: getattr(comparison, name) for name in ("verdict", "verdicts", "accuracy", "made_of", "recall")},
        "runs": comparison.names,
        "towers": recalls,
        "differences": [{**vars(d), "claimed": d.claimed} for d in comparison.differences],
        "cka": comparison.cka.tolist(),
        "overlap": comparison.overlap.tolist(),
        "procrustes": comparison.procrustes.tolist(),
        "by_chance": {m: np.where(np.isnan(v), np.array(None), v).tolist() for m, v in by_chance.items()},
        **of_queries,
    }
    print_result(args, record, "\n".join(lines))


def _recalls(
    spaces: Sequence[Space], names: Sequence[str], device: str, on_progress: OnProgress
) -> dict[str, JsonObject]:
    """Return the recall between two towers, the chance level and warnings, by the name of the space."""
    found = {}
    for name, space in zip(names, spaces, strict=True):
        if run := space.run:
            if not run.has_towers:
                continue
            space = Space.of_run(run, space.split, TOWERS)
        elif towers_of(answers.rows_of(space, on_progress, device)) is None:
            continue
        meta = answers.make("towers", {"space": space.values}, on_progress, device).meta
        found[name] = {**meta["scores"], "warnings": [str(text) for text in meta.get("warnings", ())]}
    return found


def _beside_chance(scores: Scores, chance: Scores, key: str) -> str:
    """Format a score, with the chance level if known."""
    beside = f"  chance {score_text(chance[key])}" if key in chance else ""
    return score_text(scores[key]) + beside


def export(args: Namespace) -> None:
    """Write a run's encoder as ONNX, or its metrics and embedding for TensorBoard."""
    out = Path(args.out) if args.to == "tensorboard" else out_path(args.out, ".onnx")
    run = sources.encoder_of(args.run)
    with progress_of(args) as on_progress:
        if args.to == "onnx":
            on_progress("the encoder", None)
            record = export_onnx(run, out, args.layer)
            text = f"{out}: {args.layer}, {record['width']} wide; {record['worst']:.1g} from torch"
        else:
            record = export_tensorboard(run, out, args.split, args.layer, args.device, on_progress)
            text = f"{out}: {counted(record['scalars'], 'scalar')}, {counted(record['rows'], 'row')}"
            text += f"; tensorboard --logdir {out}"
    print_result(args, {"run": run.name, "to": args.to, **record}, text)


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
        (remove if args.remove else add)(name)
    names = read_names()
    print_result(args, {"references": names}, "\n".join(names) or "no references")
