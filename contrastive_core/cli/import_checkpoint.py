"""`import`: what a checkpoint from elsewhere is, or a model of a library, and a run of it."""

from argparse import Namespace
from typing import cast

from contrastive_core.cli.main import parser
from contrastive_core.cli.output import print_result, progress_of
from contrastive_core.errors import BadSetting, CannotImport
from contrastive_core.importers import pretrained
from contrastive_core.importers.checkpoint import create_run, open_checkpoint
from contrastive_core.importers.pretrained import ModelFacts
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records import runs
from contrastive_core.storage.json_files import JsonObject

OF_MODELS = ("weights", "pixels", "fetch", "random")  # options that only a library's model has


def import_checkpoint(args: Namespace) -> None:
    """Say what a checkpoint or a model is, and make a run of it."""
    if args.run:
        runs.check_free(args.run)  # before minutes of work
    with progress_of(args) as on_progress:
        record = _import(args, on_progress)
    print_result(args, record, _text(args, record))


def preview(*arguments: str) -> JsonObject:
    """Return what `import` would create, as `--dry-run --json` prints it."""
    try:
        args = parser().parse_args(["import", *arguments, "--dry-run"])
    except SystemExit:
        raise BadSetting(f"import does not take these arguments: {' '.join(arguments)}") from None
    return _import(args, ignore_progress)


def _import(args: Namespace, on_progress: OnProgress) -> JsonObject:
    wanted = _wanted(args)
    if wanted and args.dry_run and not wanted.random:
        about = pretrained.about(wanted)
        if not about["file"]:
            return {**about}
    with pretrained.open_model(wanted, on_progress) if wanted else open_checkpoint(args.file, args.encoder) as it:
        run = None if args.dry_run else create_run(it, args.dataset, args.run, args.root, on_progress)
        return {**it.report(), "run": run and run.name}


def _wanted(args: Namespace) -> pretrained.Wanted | None:
    """The model of a library that is asked for; None for a file."""
    if not pretrained.is_model(args.file):
        if any(getattr(args, name) for name in OF_MODELS):
            options = "--weights, --pixels, --fetch and --random"
            raise CannotImport(f"{options} are for torchvision:NAME and timm:NAME; a file is given alone")
        return None
    if args.random and (args.weights or args.fetch):
        raise CannotImport("--random takes no weights: leave --weights and --fetch out")
    if args.pixels < 0:
        raise CannotImport(f"--pixels must be 0 or more; got {args.pixels}")
    return pretrained.Wanted(args.file, args.weights or "", args.pixels, args.random, args.fetch)


def _text(args: Namespace, record: JsonObject) -> str:
    """Describe the encoder, the matched tensors and the new run, or the place of the weights."""
    if "matched" not in record:
        text = f"{record['encoder']}: images of {record['pixels']} pixels; no weights on this computer"
        if not record["host"]:
            return text
        return f"{text}; --fetch fetches {record['weights']} from {pretrained.source(cast(ModelFacts, record))}"
    parts = [f"{len(record[k])} {k}" for k in ("missing", "unlike", "unused")]
    lines = [
        f"{record['file']}: {record['kind']}, {record['encoder']}",
        f"{record['matched']} tensors matched, {', '.join(parts)}",
        *(f"  {k}: {v}" for k in ("missing", "unlike", "unused") for v in record[k][:10]),
        *record["notes"],
    ]
    if record["run"]:
        lines.append(f"run {record['run']}, to be judged on {args.dataset}")
    return "\n".join(lines)
