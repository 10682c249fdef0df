"""`import`: what a checkpoint from elsewhere is, or a model of a library, and a run of it."""

from __future__ import annotations

from argparse import Namespace
from contextlib import AbstractContextManager

from contrastive_core.cli.options import parser
from contrastive_core.cli.output import print_result, progress_of
from contrastive_core.errors import BadSetting, CannotImport
from contrastive_core.importers import pretrained
from contrastive_core.importers.checkpoint import OpenedCheckpoint, open_checkpoint
from contrastive_core.importers.imported_run import create_run
from contrastive_core.importers.pretrained import ModelFacts, Wanted, source
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records import runs
from contrastive_core.storage.json_files import JsonObject


OF_MODELS = ("weights", "pixels", "fetch", "random")  # options that only a library's model has


def import_checkpoint(args: Namespace) -> None:
    """Say what a checkpoint or a model is, and make a run of it."""
    if args.run:
        runs.check_free(args.run)  # before minutes of work
    wanted = _checked(args)
    if wanted and args.dry_run and not (wanted.random or pretrained.about(wanted)["file"]):
        _say_where(args, pretrained.about(wanted))
        return
    with progress_of(args) as on_progress, _opened(args, wanted, on_progress) as it:
        record, run = it.report(), None
        if not args.dry_run:
            run = create_run(it, args.dataset, args.run, args.root, on_progress)
    _say(args, {**record, "run": run and run.name})


def preview(*arguments: str) -> JsonObject:
    """What `import` with these arguments would make, as it prints it with --dry-run --json."""
    try:
        args = parser().parse_args(["import", *arguments, "--dry-run"])
    except SystemExit:
        raise BadSetting(f"import does not take these arguments: {' '.join(arguments)}") from None
    wanted = _checked(args)
    if wanted and not (wanted.random or pretrained.about(wanted)["file"]):
        return {**pretrained.about(wanted)}
    with _opened(args, wanted, ignore_progress) as it:
        return {**it.report(), "run": None}


def _checked(args: Namespace) -> Wanted | None:
    """The model of a library that is asked for; None for a file."""
    wanted = _wanted(args) if pretrained.is_model(args.file) else None
    if wanted is None and any(getattr(args, name) for name in OF_MODELS):
        raise CannotImport(
            "--weights, --pixels, --fetch and --random are for torchvision:NAME and timm:NAME; a file is given alone"
        )
    return wanted


def _wanted(args: Namespace) -> Wanted:
    if args.random and (args.weights or args.fetch):
        raise CannotImport("--random takes no weights: leave --weights and --fetch out")
    if args.pixels < 0:
        raise CannotImport(f"--pixels must be 0 or more; got {args.pixels}")
    return Wanted(args.file, args.weights or "", args.pixels, args.random, args.fetch)


def _opened(
    args: Namespace, wanted: Wanted | None, on_progress: OnProgress
) -> AbstractContextManager[OpenedCheckpoint]:
    if wanted:
        return pretrained.open_model(wanted, on_progress)
    return open_checkpoint(args.file, args.encoder)


def _say_where(args: Namespace, about: ModelFacts) -> None:
    """What a model's weights are, which are not here."""
    text = f"{about['encoder']}: images of {about['pixels']} pixels; no weights on this computer"
    if about["host"]:
        text += f"; --fetch fetches {about['weights']} from {source(about)}"
    print_result(args, {**about}, text)


def _say(args: Namespace, record: JsonObject) -> None:
    """What was recognized, what matched, and the run that was made of it."""
    parts = [f"{len(record[k])} {k}" for k in ("missing", "unlike", "unused")]
    lines = [
        f"{record['file']}: {record['kind']}, {record['encoder']}",
        f"{record['matched']} tensors matched, {', '.join(parts)}",
        *(f"  {k}: {v}" for k in ("missing", "unlike", "unused") for v in record[k][:10]),
        *record["notes"],
    ]
    if record["run"]:
        lines.append(f"run {record['run']}, to be judged on {args.dataset}")
    print_result(args, record, "\n".join(lines))
