"""The commands that read what was trained: embed, evaluate, project, compare, export, and what the app's tasks run."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.cli import sources
from contrastive_core.cli.frozen import frozen_entries, frozen_scores
from contrastive_core.cli.output import (
    counted,
    note_left_out,
    out_path,
    print_note,
    print_result,
    progress_of,
    score_text,
)
from contrastive_core.data import datasets
from contrastive_core.distributed import collectives
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.engine import answers, results
from contrastive_core.engine.answers.comparisons import judged
from contrastive_core.evaluation.compare import Entry, check_accuracies, entry_of_run
from contrastive_core.evaluation.compare import compare as compare_entries
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate as evaluate_run
from contrastive_core.evaluation.evaluate import evaluate_file, metric_names, scored_rows
from contrastive_core.evaluation.projection import map_of
from contrastive_core.evaluation.tower_notes import tower_record
from contrastive_core.exporters.onnx import export_onnx
from contrastive_core.exporters.tensorboard import export_tensorboard
from contrastive_core.progress import OnProgress, fraction_of
from contrastive_core.records import embedding_ref, runs
from contrastive_core.records.comparison import ACCURACIES
from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import name_of, read_evaluation
from contrastive_core.records.score import Scores, recall_text, scores_from_json, scores_to_json
from contrastive_core.records.towers import towers_of
from contrastive_core.records.train_config import ImageForm
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.tables import write_table

LEFT_OUT = {"not_finite": "values that are not finite", "zero": "all zeros"}  # rows of a file, by the reason


def embed(args: Namespace) -> None:
    """Write the embedding of a split; without a file, both are kept for the app."""
    with collectives.process_group(args.device) as world, progress_of(args, speaks=world.is_rank0) as on_progress:
        out, run = collectives.raise_together(
            lambda: (args.out and out_path(args.out, ".npz", ".parquet"), sources.encoder_of(args.run))
        )
        for layer in (args.layer,) if out else embedding_ref.layers_of(run):
            rows = embed_run(run, args.split, layer, args.device, fraction_of(on_progress, "embedding"))
        if world.is_rank0:
            note_left_out(run, args.split)
            if out:
                rows.save(out)
            record = {"run": run.name, "rows": len(rows), "width": rows.width, "out": out}
            layer = args.layer if out else ", ".join(embedding_ref.layers_of(run))
            text = f"{out or run.name}: {counted(len(rows), 'row')} of {rows.width} ({layer}, {args.split})"
            print_result(args, record, text)


def evaluate(args: Namespace) -> None:
    """Score a run beside raw pixels and a random encoder, or a file of vectors alone."""
    chosen, path = _names(args.metrics), Path(args.run)
    with collectives.process_group(args.device) as world, progress_of(args, speaks=world.is_rank0) as on_progress:
        if collectives.raise_together(lambda: sources.is_file(args.run)):
            record: Mapping[str, Any] = _file_record(args, path, chosen, on_progress)
            scored = {str(record["file"]): scores_from_json(record["scores"])}
        elif args.train:
            raise ValueError("--train goes with a file of vectors; a run has its own training set")
        elif space := collectives.raise_together(lambda: sources.loaded_space(args.run, args)):
            names = metric_names(chosen)
            made = answers.make("scores", {"space": space.values}, on_progress, args.device).meta
            record = {"space": space.title, **{k: made[k] for k in ("n", "n_test", "n_train")}}
            every = answers.rows_of(space, on_progress, args.device)
            record["rows"] = scored_rows(names, answers.test_rows(space, every, on_progress, args.device)[1], every)
            record |= {"scores": {name: made["scores"]["own"][name] for name in names}}
            scored = {space.title: scores_from_json(record["scores"])}
        else:
            run, split = collectives.raise_together(lambda: sources.run_of(args.run, args)), args.split or "test"
            evaluation = evaluate_run(run, chosen, split, args.device, on_progress)
            evaluation = evaluation.only(metric_names(chosen)) if chosen else evaluation
            record = evaluation.to_json()
            by_source = dict(evaluation.scores)
            for encoder, scores in frozen_scores(run, args, split, on_progress).items():
                by_source[encoder.source] = shown = {name: scores[name] for name in metric_names(chosen)}
                record["scores"][encoder.source] = scores_to_json(shown)
            scored = {name_of(k): v for k, v in by_source.items()}
            if world.is_rank0:
                note_left_out(run, split)
    if world.is_rank0:
        for reason, count in record.get("left_out", {}).items():
            if count:
                print_note(f"{count:,} row{'' if count == 1 else 's'} left out: {LEFT_OUT[reason]}")
        for note in record.get("notes", ()):
            print_note(note)
        print_result(args, record, _scores_text(args, record, scored))


def _file_record(args: Namespace, path: Path, chosen: list[str] | None, on_progress: OnProgress) -> JsonObject:
    """The scores of a file, or of the two towers of one file or of two."""
    if args.split == "train":
        raise ValueError("a file is scored on its test rows; --split train goes with a run")
    train, labels = (Path(name) if name else None for name in (args.train, args.labels))
    if not (args.other or args.towers or args.by):
        return evaluate_file(path, train, chosen, args.device, on_progress, labels, args.leave_out)
    if train or chosen:
        raise ValueError("two towers are scored by recall and their gap: --train and --metrics go with one tower")
    towers = towers_of(collectives.raise_together(lambda: sources.read_file(args, args.run)))
    assert towers is not None
    return tower_record(towers, f"{path.name} + {Path(args.other).name}")


def _scores_text(args: Namespace, record: Mapping[str, Any], scored: Mapping[str, Scores]) -> str:
    """Every score of each source; of a file also the number of rows that it rests on."""
    name = record.get("file") or record.get("space") or f"{args.run}, {record['split']}"
    counts = f"{record['n_train']:,} to train" if "pairs" not in record else counted(record["pairs"], "pair")
    lines, rows = [f"{name}: {counted(record['n_test'], 'row')}, {counts}"], record.get("rows", {})
    chance = scores_from_json(record.get("chance", {}))
    for source, scores in scored.items():
        lines += ["", f"{source}:"]
        for metric, score in scores.items():
            on = f"  on {counted(rows[metric], 'row')}" if metric in rows and score.value is not None else ""
            lines.append(f"  {score.title:<23} {_beside_chance(scores, chance, metric)}{on}")
    return "\n".join(lines)


def _names(text: str | None) -> list[str] | None:
    """Comma-separated names; None where there are none."""
    return [name.strip() for name in text.split(",")] if text else None


def project(args: Namespace) -> None:
    """Write a map of a run, or of a file of embeddings."""
    out = out_path(args.out, ".parquet", ".csv")
    umap_settings = {"seed": args.seed, "neighbors": args.neighbors, "min_dist": args.min_dist}
    settings = {**umap_settings, "metric": args.metric} if args.method == "umap" else {}
    with progress_of(args) as on_progress:
        rows, xy, meta = _rows_and_map(args, settings, on_progress)
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


def _rows_and_map(
    args: Namespace, settings: JsonObject, on_progress: OnProgress
) -> tuple[EmbeddingSet, np.ndarray, JsonObject]:
    """The embedding to draw, its map and facts on it; a run's map is the one that the app shows too."""
    if sources.is_file(args.source):
        rows = sources.read_file(args, args.source)
        graphs, on_fraction = Graphs(args.device, on_progress=on_progress), fraction_of(on_progress, "UMAP's layout")
        projection = map_of(rows, args.method, graphs, on_fraction, **settings)
        return rows, projection.xy, {"settings": projection.settings, "quality": projection.quality}
    space = sources.space_of(args.source, args)
    rows = answers.rows_of(space, on_progress, args.device)
    values = {"space": space.values, "kind": args.method, **settings}
    result = answers.make("map", values, on_progress, args.device)
    return rows, result.arrays["xy"], result.meta


def compare(args: Namespace) -> None:
    """Say which of several runs is better on the same samples, and how alike they are."""
    metrics = _names(args.metrics) or [*ACCURACIES]
    check_accuracies(metrics)
    spaces = sources.spaces_of(args)
    with progress_of(args) as on_progress:
        entries = [_entry(space, args.device, on_progress) for space in spaces]
        entries += frozen_entries(spaces, args, on_progress)
        comparison = compare_entries(entries, metrics, device=args.device, on_progress=on_progress)
        recalls = _recalls(spaces, comparison.names, args.device, on_progress)
    lines = [*comparison.verdicts.values()] or [comparison.verdict]
    for d in comparison.differences:
        low, high = (100 * v for v in d.interval)
        lines.append(
            f"{d.a} − {d.b}: {100 * d.value:+.1f} points of {ACCURACIES[d.metric]} "
            f"[{low:+.1f}, {high:+.1f}], p {d.p_corrected:.3g} corrected for {len(comparison.differences)} comparisons"
        )
    if note := recall_text(comparison.recall):
        lines.append(f"shared neighbors: {note}")
    for m, made_of in comparison.made_of.items():
        named = zip(comparison.names, made_of, strict=True)
        lines += [f"{ACCURACIES[m]} of {name}: {text}" for name, text in named if text]
    for name, found in recalls.items():
        own, chance = (scores_from_json(found[source]) for source in ("own", "chance"))
        lines += [f"{own[key].title} of {name}: {_beside_chance(own, chance, key)}" for key in chance]
        lines += [f"{name}: {warning}" for warning in found["warnings"]]
    record = {
        **{name: getattr(comparison, name) for name in ("verdict", "verdicts", "accuracy", "made_of", "recall")},
        "runs": comparison.names,
        "towers": recalls,
        "differences": [{**vars(d), "claimed": d.claimed} for d in comparison.differences],
        "cka": comparison.cka.tolist(),
        "overlap": comparison.overlap.tolist(),
        "procrustes": comparison.procrustes.tolist(),
    }
    print_result(args, record, "\n".join(lines))


def _recalls(
    spaces: Sequence[EmbeddingRef], names: Sequence[str], device: str, on_progress: OnProgress
) -> dict[str, JsonObject]:
    """Recall of the spaces of two towers beside chance, and warnings, by name."""
    found = {}
    for name, space in zip(names, spaces, strict=False):  # frozen encoders come after
        if run := space.run:
            if not run.has_towers:
                continue
            space = embedding_ref.of_run(run, space.split, TOWERS)
        elif towers_of(answers.rows_of(space, on_progress, device)) is None:
            continue
        meta = answers.make("towers", {"space": space.values}, on_progress, device).meta
        found[name] = {**meta["scores"], "warnings": [str(text) for text in meta.get("warnings", ())]}
    return found


def _beside_chance(scores: Scores, chance: Scores, key: str) -> str:
    """A score as text, with what chance gives where that is known."""
    beside = f"  chance {score_text(chance[key])}" if key in chance else ""
    return score_text(scores[key]) + beside


def _entry(space: EmbeddingRef, device: str, on_progress: OnProgress) -> Entry:
    if run := space.run:
        return entry_of_run(run, space.split, space.layer, device, on_progress)
    return Entry(space.title, *judged(space, on_progress, device), is_of_run=False)


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
    """Make what a page asks for, and keep it."""
    values = json.loads(args.values)
    if not isinstance(values, dict):
        raise ValueError("the values of an analysis are a JSON object")
    with progress_of(args) as on_progress:
        answers.make(args.kind, values, on_progress, args.device)
    path = results.path(args.kind, values)
    print_result(args, {"kind": args.kind, "out": str(path)}, str(path))


def decode(args: Namespace) -> None:
    """Decode the images of a data set, unless they have been."""
    form = ImageForm(args.image_size, args.resize)
    with progress_of(args) as on_progress:
        dataset = datasets.load(args.dataset, args.split, args.root, False, form, on_progress)
    left_out = dataset.left_out
    record = {"dataset": args.dataset, "split": args.split, "images": len(dataset), "left_out": left_out}
    text = f"{args.dataset}, {args.split}: {counted(len(dataset), 'image')}"
    print_result(args, record, f"{text}. {left_out}" if left_out else text)


def present(args: Namespace) -> None:
    """Embed and score a run, and draw its maps: all that its pages wait for."""
    run = runs.load(args.run)
    with progress_of(args) as on_progress:
        if read_evaluation(run) is None:
            evaluate_run(run, device=args.device, on_progress=on_progress)
        for layer in embedding_ref.layers_of(run):
            embed_run(run, args.split, layer, args.device)
            for kind in ("pca", "umap"):
                values = {"space": embedding_ref.of_run(run, args.split, layer).values, "kind": kind}
                answers.make("map", answers.with_defaults(values), on_progress, args.device)
    print_result(args, {"run": run.name, "split": args.split}, f"{run.name}: ready")
