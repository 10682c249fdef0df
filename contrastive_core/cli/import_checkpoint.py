"""The command `import`: describe a checkpoint or a library's model and create a run of it."""

from argparse import Namespace

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, CannotImport
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.cli.main import parser
from contrastive_core.cli.output import print_result, progress_of
from contrastive_core.exchange import pretrained
from contrastive_core.exchange.checkpoint_import import create_run, open_checkpoint

OF_MODELS = ("weights", "fetch", "random")  # options for library models only


def import_checkpoint(args: Namespace) -> None:
    """Describe a checkpoint or a model and, without `--dry-run`, create a run of it."""
    if args.run:
        runs.check_free(args.run)  # check before minutes of work
    with progress_of(args) as on_progress:
        record = _import(args, on_progress)
    print_result(args, record, _text(args, record))


def preview(*arguments: str) -> JsonObject:
    """Return the result of `import --dry-run --json` with these arguments."""
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
    opening = (
        pretrained.open_model(wanted, on_progress) if wanted else open_checkpoint(args.file, args.encoder, args.pixels)
    )
    with opening as it:
        run = None if args.dry_run else create_run(it, args.dataset, args.run, args.root, on_progress)
        return {**it.report(), "run": run and run.name}


def _wanted(args: Namespace) -> pretrained.Wanted | None:
    """Return the library's model that the arguments name; None for a file. Raises CannotImport for wrong options."""
    if not pretrained.is_model(args.file):
        if any(getattr(args, name) for name in OF_MODELS):
            raise CannotImport("--weights, --fetch and --random are for torchvision:NAME and timm:NAME")
        return None
    if args.random and (args.weights or args.fetch):
        raise CannotImport("--random uses no weights: remove --weights and --fetch")
    if args.pixels < 0:
        raise CannotImport(f"--pixels must be 0 or more; got {args.pixels}")
    return pretrained.Wanted(args.file, args.weights or "", args.pixels, args.random, args.fetch)


def _text(args: Namespace, record: JsonObject) -> str:
    """Describe the encoder, the matched tensors and the new run, or the source of the missing weights."""
    if "matched" not in record:
        text = f"{record['encoder']}: images of {record['pixels']} pixels; no weights on this computer"
        if not record["host"]:
            return text
        return f"{text}; --fetch fetches {record['weights']} from {record['source']}"
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
