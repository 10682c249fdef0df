"""The command `import`, and its preview for a page: describe a checkpoint or a library's model and create a run of it.
Torch is imported in the worker only."""

from argparse import Namespace
from typing import Any

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, CannotImport
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.cli.command_io import print_result, progress_of
from contrastive_core.cli.main import parser
from contrastive_core.engine.client import in_worker

# `OpenedCheckpoint.report` and the new run; of weights that are not on this computer `checkpoint_import.about`
ImportRecord = dict[str, Any]


def import_checkpoint(args: Namespace) -> None:
    """Describe a checkpoint or a model and, without `--dry-run`, create a run of it."""
    if args.run:
        runs.check_free(args.run)  # check before minutes of work
    with progress_of(args) as on_progress:
        record = _import(args, on_progress)
    if "matched" in record:
        tensors = {k: record[k] for k in ("missing", "unlike", "unused")}
        lines = [
            f"{record['file']}: {record['kind']}, {record['encoder']}",
            ", ".join([f"{record['matched']} tensors matched", *(f"{len(v)} {k}" for k, v in tensors.items())]),
            *(f"  {k}: {v}" for k, names in tensors.items() for v in names[:10]),
            *record["notes"],
        ]
        if record["run"]:
            lines.append(f"run {record['run']}, to be judged on {args.dataset}")
    else:  # a model whose weights are not on this computer
        lines = [f"{record['encoder']}: images of {record['pixels']} pixels; no weights on this computer"]
        if record["host"]:
            lines[0] += f"; --fetch fetches {record['weights']} from {record['source']}"
    print_result(args, record, "\n".join(lines))


@in_worker
def import_preview(*arguments: str) -> ImportRecord:
    """Return the result of `import --dry-run --json` with these arguments, for a page. Raises: ValueError, OSError."""
    try:
        args = parser().parse_args(["import", *arguments, "--dry-run"])
    except SystemExit:
        raise BadSetting(f"import does not take these arguments: {' '.join(arguments)}") from None
    return _import(args, ignore_progress)


def _import(args: Namespace, on_progress: OnProgress) -> ImportRecord:
    """Open a file or a library's model and create its run. Raises CannotImport, also for options that do not fit."""
    from contrastive_core.exchange import checkpoint_import

    if checkpoint_import.is_model(args.file):
        if args.random and (args.weights or args.fetch):
            raise CannotImport("--random uses no weights: remove --weights and --fetch")
        if args.pixels < 0:
            raise CannotImport(f"--pixels must be 0 or more; got {args.pixels}")
        wanted = checkpoint_import.Wanted(args.file, args.weights or "", args.pixels, args.random, args.fetch)
        if args.dry_run and not wanted.random and not (about := checkpoint_import.about(wanted))["file"]:
            return about
        opening = checkpoint_import.open_model(wanted, on_progress)
    else:
        if args.weights or args.fetch or args.random:
            raise CannotImport("--weights, --fetch and --random are for torchvision:NAME and timm:NAME")
        opening = checkpoint_import.open_checkpoint(args.file, args.encoder, args.pixels)
    with opening as it:
        new = (args.dataset, args.run, args.root, on_progress)
        run = None if args.dry_run else checkpoint_import.create_run(it, *new)
        return {**it.report(), "run": run and run.name}
