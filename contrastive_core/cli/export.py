"""Commands that write files: `embed` the rows of a run, `project` a map, `export` an encoder,
and `example`."""

from argparse import Namespace
from pathlib import Path

from contrastive_core.base.progress import fraction_of
from contrastive_core.base.score import recall_text
from contrastive_core.base.storage import write_table
from contrastive_core.cli.command_io import (
    counted,
    encoder_of,
    is_file,
    note_left_out,
    out_path,
    print_result,
    progress_of,
    read_file,
    space_of,
)
from contrastive_core.compare.embed import embed_run
from contrastive_core.engine import answers
from contrastive_core.engine.answers.scores import map_of_rows
from contrastive_core.exchange.exporters import export_onnx
from contrastive_core.spaces import example_questions
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.space import layers_of


def embed(args: Namespace) -> None:
    """Write the embedding of a split to a file; without a file, store all layers for the app."""
    out = args.out and out_path(args.out, ".npz", ".parquet")
    run = encoder_of(args.run)
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


def project(args: Namespace) -> None:
    """Write a map of a run or of a file of vectors, with id, x, y and label."""
    out = out_path(args.out, ".parquet", ".csv")
    umap_settings = {"seed": args.seed, "neighbors": args.neighbors, "min_dist": args.min_dist}
    settings = {**umap_settings, "metric": args.metric} if args.method == "umap" else {}
    with progress_of(args) as on_progress:
        if is_file(args.source):
            rows = read_file(args, args.source, args.split)
            graphs = Graphs(args.device, on_progress=on_progress)
            made = map_of_rows(rows, args.method, settings, graphs, on_progress)
        else:  # the map that the app shows too
            space = space_of(args.source, args)
            rows = answers.rows_of(space, on_progress, args.device)
            made = answers.make(
                "map", {"space": space.values, "kind": args.method, **settings}, on_progress, args.device
            )
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


def export(args: Namespace) -> None:
    """Write a run's encoder as ONNX."""
    out = out_path(args.out, ".onnx")
    run = encoder_of(args.run)
    with progress_of(args) as on_progress:
        on_progress("the encoder", None)
        record = export_onnx(run, out, args.layer)
    text = f"{out}: {args.layer}, {record['width']} wide; {record['worst']:.1g} from torch"
    print_result(args, {"run": run.name, **record}, text)


def example(args: Namespace) -> None:
    """Write an example and print how to compare its models. Raises ValueError if the folder contains files."""
    folder = Path(args.out or args.name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty; choose another folder with --out")
    files = example_questions.write(folder)
    judgments = folder / example_questions.JUDGMENTS
    text = f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}"
    text += f"\ncontrastive-lab compare {' '.join(map(str, files))} --qrels {judgments}"
    print_result(args, {"out": str(folder), "vectors": [*map(str, files)], "qrels": str(judgments)}, text)
