"""The commands that read what was trained: embed, evaluate, project, samples, compare, import."""

from __future__ import annotations

import functools
import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contrastive_core.cli.output import out_path, say

__all__ = [
    "do_answer",
    "do_compare",
    "do_embed",
    "do_evaluate",
    "do_import",
    "do_present",
    "do_project",
    "do_samples",
]


def do_embed(args: Namespace) -> None:
    """Write the embedding of a split."""
    from contrastive_core import runs
    from contrastive_core.distributed import collectives
    from contrastive_core.evaluation.embed import embed_run

    with collectives.process_group(args.device) as world:
        out, run = collectives.raise_together(
            lambda: (out_path(args.out, ".npz", ".parquet"), runs.load(args.run))
        )
        rows = embed_run(
            run, args.split, args.which, args.device, _percent if world.is_rank0 else None
        )
        if world.is_rank0:
            rows.save(out)
            record = {"run": run.name, "rows": len(rows), "width": rows.width, "out": str(out)}
            text = f"{out}: {len(rows):,} rows of {rows.width} ({args.which}, {args.split})"
            say(args, record, text)


def do_evaluate(args: Namespace) -> None:
    """Score a run beside raw pixels and a random encoder, or a file of vectors alone."""
    from contrastive_core import runs
    from contrastive_core.distributed import collectives
    from contrastive_core.evaluation.evaluate import SOURCES, evaluate

    chosen = [m.strip() for m in args.metrics.split(",")] if args.metrics else None
    path = Path(args.run)
    with collectives.process_group(args.device) as world:
        tell = _tell if world.is_rank0 else _silent
        if path.suffix in (".npz", ".npy", ".parquet", ".csv"):
            from contrastive_core.evaluation.evaluate_files import evaluate_file

            train = Path(args.train) if args.train else None
            record = evaluate_file(path, train, chosen, args.device, tell)
            scored = {path.name: record["scores"]}
        elif args.train:
            raise ValueError("--train goes with a file of vectors; a run has its own training set")
        else:
            run = collectives.raise_together(lambda: runs.load(args.run))
            record = evaluate(run, chosen, args.split, args.device, tell)
            scored = {SOURCES[k]: v for k, v in record["scores"].items()}
    name = path.name if "file" in record else f"{args.run}, {args.split}"
    lines = [f"{name}: {record['n_test']:,} rows, {record['n_train']:,} to train"]
    for source, scores in scored.items():
        lines += ["", f"{source}:", *(f"  {s['title']:<24}{_score(s)}" for s in scores.values())]
    if world.is_rank0:
        say(args, record, "\n".join(lines))


def do_present(args: Namespace) -> None:
    """Make what the pages show of a run."""
    from contrastive_core import runs
    from contrastive_core.evaluation import precompute

    run = runs.load(args.run)
    precompute.make(run, args.split, _tell)
    say(args, {"run": run.name, "split": args.split}, f"{run.name}: ready")


def do_answer(args: Namespace) -> None:
    """Answer a question that a page asks, and keep the answer."""
    from contrastive_core.cli import analyses
    from contrastive_core.jobs import results

    values = json.loads(args.values)
    if not isinstance(values, dict):
        raise ValueError("the values of a question are a JSON object")
    analyses.make(args.kind, values, lambda what: print(what, file=sys.stderr, flush=True))
    path = results.path(args.kind, values)
    say(args, {"kind": args.kind, "out": str(path)}, str(path))


def do_project(args: Namespace) -> None:
    """Write a map of a run, or of a file of embeddings."""
    from contrastive_core.evaluation import projection

    out = out_path(args.out, ".parquet", ".csv")
    rows, folder = _rows(args)
    given = {"seed": args.seed, "neighbors": args.neighbors, "min_dist": args.min_dist}
    settings = {**given, "metric": args.metric} if args.method == "umap" else {}
    if folder is None:
        made = projection.map_of(rows, args.method, **settings)
    else:
        made = projection.cached_map(rows, folder, args.method, **settings)
    labels = [""] * len(rows) if rows.labels is None else _names(rows)
    write_table(
        out, {"id": list(rows.ids), "x": made.xy[:, 0], "y": made.xy[:, 1], "label": labels}
    )
    quality = ", ".join(f"{k} {v:.3f}" for k, v in made.quality.items() if isinstance(v, float))
    record = {"out": str(out), "rows": len(rows), **made.settings, **made.quality}
    say(args, record, f"{out}: {len(rows):,} points by {args.method}; {quality}")


def do_samples(args: Namespace) -> None:
    """Write every sample of a split, or of a file of vectors, with what is odd about it."""
    from contrastive_core.distributed import collectives
    from contrastive_core.samples import table as sample_table

    out = out_path(args.out, ".parquet", ".csv") if args.out else None
    with collectives.process_group(args.device) as world:
        name, table = _samples(args, _Stages(world.is_rank0))
    if not world.is_rank0:
        return
    if out:
        sample_table.write_table(table, out)
    record = {"run": name, "rows": len(table), "loss": table.loss, "out": out and str(out)}
    say(args, record, f"{out or name}: {len(table):,} samples by {table.loss}")


def _samples(args: Namespace, tell: _Stages) -> tuple[str, Any]:
    from contrastive_core import runs
    from contrastive_core.distributed import collectives
    from contrastive_core.embeddings import file_formats, ref
    from contrastive_core.samples import build as sample_build
    from contrastive_core.samples import score as sample_score
    from contrastive_core.samples.subject import Subject

    if args.run.startswith(ref.PREFIX):
        space = ref.of_vectors(args.run.removeprefix(ref.PREFIX), args.split)
        subject = Subject(args.run, args.split, args.loss or "sup_con")
        if (rows := space.rows()) is None:
            raise ValueError(f"there are no vectors {args.run}")
        made = sample_build.samples_of_vectors(subject, rows, ref.pictures(space), tell)
        return args.run, made
    if Path(args.run).suffix in file_formats.ENDINGS:
        rows = collectives.raise_together(lambda: file_formats.read(Path(args.run)))
        told = functools.partial(tell, "loss of every sample")
        return args.run, sample_score.table_of(rows, args.loss or "sup_con", tell=told)
    run = collectives.raise_together(lambda: runs.load(args.run))
    return run.name, sample_build.samples_of_run(run, args.loss, args.split, tell, args.device)


class _Stages:
    """What is at work, on one line of a terminal; in a log, a line now and then. Of many processes
    only the first speaks."""

    def __init__(self, speaks: bool) -> None:
        self.last, self.speaks = "", speaks

    def __call__(self, what: str, share: float) -> None:
        line = f"{what} {5 * int(20 * share)} %"
        if self.speaks and line != self.last:
            sys.stderr.write(f"\r\033[K{line}" if sys.stderr.isatty() else f"{line}\n")
            sys.stderr.flush()
        self.last = line


def do_compare(args: Namespace) -> None:
    """Say which of several runs is better on the same samples, and how alike they are."""
    from contrastive_core import runs
    from contrastive_core.evaluation import compare
    from contrastive_core.evaluation.embed import embed_run

    found = [runs.load(name) for name in args.runs]
    train, test = (
        [embed_run(run, s, "h", args.device) for run in found] for s in ("train", args.split)
    )
    made = compare.compare([run.name for run in found], train, test)
    lines = [made.verdict, ""]
    for d in made.differences:
        low, high = (100 * v for v in d.interval)
        lines.append(
            f"{d.a} − {d.b}: {100 * d.value:+.1f} points [{low:+.1f}, {high:+.1f}], "
            f"p {d.p_corrected:.3g} (corrected)"
        )
    record = {
        "verdict": made.verdict,
        "runs": made.names,
        "accuracy": made.accuracy,
        "differences": [{**vars(d), "claimed": d.claimed} for d in made.differences],
        "cka": made.cka.tolist(),
        "overlap": made.overlap.tolist(),
        "procrustes": made.procrustes.tolist(),
    }
    say(args, record, "\n".join(lines))


def do_import(args: Namespace) -> None:
    """Say what a checkpoint from elsewhere is, and make a run of it."""
    from contrastive_core import importers, runs

    if args.run:
        runs.checked_name(args.run)
    with importers.opened(args.file, args.encoder) as it:
        record, run = it.report(), None
        if not args.dry_run:
            run = importers.adopt(it, args.dataset, args.run, args.root)
    parts = [f"{len(record[k])} {k}" for k in ("missing", "unlike", "unused")]
    lines = [
        f"{record['file']}: {record['kind']}, {record['encoder']}",
        f"{record['matched']} tensors matched, {', '.join(parts)}",
        *(f"  {k}: {v}" for k in ("missing", "unlike") for v in record[k][:10]),
        *record["notes"],
    ]
    if run:
        lines.append(f"run {run.name}, to be judged on {args.dataset}")
    say(args, {**record, "run": run and run.name}, "\n".join(lines))


def write_table(out: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as `.parquet` or `.csv`, whole or not at all."""
    import pandas

    frame, temporary = pandas.DataFrame(dict(columns)), out.with_name(f".{out.name}.part")
    if out.suffix == ".parquet":
        frame.to_parquet(temporary, index=False)
    else:
        frame.map(_harmless).to_csv(temporary, index=False)
    temporary.replace(out)


# --- parts -------------------------------------------------------------------------------------


def _rows(args: Namespace) -> tuple[Any, Path | None]:
    """The embedding to draw, and where its map may be kept."""
    from contrastive_core import runs
    from contrastive_core.evaluation.embed import embed_run

    if Path(args.source).suffix in (".npz", ".npy", ".parquet", ".csv"):
        from contrastive_core.embeddings import file_formats

        return file_formats.read(Path(args.source)), None
    run = runs.load(args.source)
    rows = embed_run(run, args.split, "h", args.device, _percent)
    return rows, None if run.shipped else run.path / "embeddings"


def _names(rows: Any) -> list[str]:
    return [rows.classes[i] if 0 <= i < len(rows.classes) else str(i) for i in rows.labels]


def _score(score: dict[str, Any]) -> str:
    if "missing" in score:
        return f"—  ({score['missing']})"
    percent = score["unit"] == "share"
    shown = f"{100 * score['value']:.1f} %" if percent else f"{score['value']:.3f} {score['unit']}"
    if score["interval"]:
        low, high = (100 * v if percent else v for v in score["interval"])
        shown += f"  [{low:.1f}, {high:.1f}]" if percent else f"  [{low:.3f}, {high:.3f}]"
    return shown


def _harmless(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula is written with an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _percent(share: float) -> None:
    if sys.stderr.isatty():
        end = "\n" if share >= 1 else ""
        sys.stderr.write(f"\r\033[Kembedding {100 * share:.0f} %{end}")


def _silent(what: str) -> None:
    """One process speaks for all."""


def _tell(what: str) -> None:
    sys.stderr.write(f"{what} …\n")
