"""The command `import`, and its preview for a page: describe a checkpoint or a library's model and create a run of it.
Torch is imported in the worker only."""

from argparse import Namespace
from typing import TypedDict, cast

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, CannotImport
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.cli.command_io import print_result, progress_of
from contrastive_core.cli.main import parser
from contrastive_core.engine.calls import in_worker

OF_MODELS = ("weights", "fetch", "random")  # options for library models only


class ImportRecord(TypedDict, total=False):
    """A checkpoint or model: of opened tensors the encoder, the matched ones and the new run; else what a library says
    of the weights that are not on this computer."""

    file: str | None
    encoder: str
    notes: list[str]
    run: str | None
    kind: str
    method: str
    encoder_knobs: dict[str, object]
    channels: int
    head: dict[str, object]
    of_library: bool
    random: bool
    matched: int
    missing: list[str]
    unlike: list[str]
    unused: list[str]
    weights: str
    source: str
    pixels: int
    host: str
    license: str
    size: int
    size_is_exact: bool


def import_checkpoint(args: Namespace) -> None:
    """Describe a checkpoint or a model and, without `--dry-run`, create a run of it."""
    if args.run:
        runs.check_free(args.run)  # check before minutes of work
    with progress_of(args) as on_progress:
        record = _import(args, on_progress)
    print_result(args, record, _text(args, record))


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
    from contrastive_core.exchange import checkpoint_import, pretrained  # torch: pages import this module

    if pretrained.is_model(args.file):
        if args.random and (args.weights or args.fetch):
            raise CannotImport("--random uses no weights: remove --weights and --fetch")
        if args.pixels < 0:
            raise CannotImport(f"--pixels must be 0 or more; got {args.pixels}")
        wanted = pretrained.Wanted(args.file, args.weights or "", args.pixels, args.random, args.fetch)
        if args.dry_run and not wanted.random and not (about := pretrained.about(wanted))["file"]:
            return cast(ImportRecord, about)
        opening = pretrained.open_model(wanted, on_progress)
    else:
        if any(getattr(args, name) for name in OF_MODELS):
            raise CannotImport("--weights, --fetch and --random are for torchvision:NAME and timm:NAME")
        opening = checkpoint_import.open_checkpoint(args.file, args.encoder, args.pixels)
    with opening as it:
        new = (args.dataset, args.run, args.root, on_progress)
        run = None if args.dry_run else checkpoint_import.create_run(it, *new)
        return cast(ImportRecord, {**it.report(), "run": run and run.name})


def _text(args: Namespace, record: ImportRecord) -> str:
    """Describe the encoder, the matched tensors and the new run, or the source of the missing weights."""
    if "matched" not in record:
        text = f"{record['encoder']}: images of {record['pixels']} pixels; no weights on this computer"
        if not record["host"]:
            return text
        return f"{text}; --fetch fetches {record['weights']} from {record['source']}"
    tensors = {"missing": record["missing"], "unlike": record["unlike"], "unused": record["unused"]}
    parts = [f"{len(names)} {k}" for k, names in tensors.items()]
    lines = [
        f"{record['file']}: {record['kind']}, {record['encoder']}",
        f"{record['matched']} tensors matched, {', '.join(parts)}",
        *(f"  {k}: {v}" for k, names in tensors.items() for v in names[:10]),
        *record["notes"],
    ]
    if record["run"]:
        lines.append(f"run {record['run']}, to be judged on {args.dataset}")
    return "\n".join(lines)
