"""`samples`: every sample of a split, or of a file of vectors, with what is odd about it."""

from argparse import Namespace
from functools import partial

from contrastive_core.cli import sources
from contrastive_core.cli.label_audit import audit_labels
from contrastive_core.cli.output import counted, note_left_out, out_path, print_result, progress_of
from contrastive_core.distributed import collectives
from contrastive_core.engine.answers.scores import sample_table
from contrastive_core.errors import BadSetting
from contrastive_core.progress import OnProgress
from contrastive_core.records.frozen import FrozenEncoder, parse
from contrastive_core.records.sample_request import request_of
from contrastive_core.records.sample_table import WRONG, SampleTable
from contrastive_core.samples import run_samples
from contrastive_core.samples.table_builder import SampleInputs, build_table
from contrastive_core.storage.tables import write_table


def samples(args: Namespace) -> None:
    """Write every sample of a split, or of a file of vectors, with what is odd about it."""
    out = out_path(args.out, ".parquet", ".csv") if args.out else None
    with collectives.process_group(args.device) as world, progress_of(args, speaks=world.is_rank0) as on_progress:
        name, table = _table(args, on_progress)
    if not world.is_rank0:
        return
    if out:
        write_table(out, table.columns)
    record = {"run": name, "rows": len(table), "loss": table.loss, "out": out and str(out)}
    kinds = ("estimate_", "exact_up_to")
    record |= {k: v for k, v in table.facts.items() if k.startswith(kinds)}
    text = f"{out or name}: {counted(len(table), 'sample')} by {table.loss}{_of_losses(table)}"
    if args.frozen:
        record["frozen"] = args.frozen[0]
        text += f"; lists by {args.frozen[0]}, frozen"
    wrong = [table.facts[name] for name in WRONG if name in table.facts]
    if len(wrong) == len(WRONG):
        record |= dict(zip(WRONG, wrong, strict=True))
        text += "\nlikely wrong labels: {:.0f} ({:.0f} to {:.0f})".format(*wrong)
    if args.audit:
        found, said = audit_labels(table, out_path(args.audit, ".csv"), args.checks)
        record, text = record | found, f"{text}\n{said}"
    print_result(args, record, text)


def _of_losses(table: SampleTable) -> str:
    """Describe the error of estimated losses."""
    facts = table.facts
    if "exact_up_to" in facts:
        return f", which is exact only up to {facts['exact_up_to']:,.0f} images, and left out here"
    if not facts.get("estimate_checked"):
        return ""
    return (
        f", estimated from {facts['estimate_candidates']:,.0f} candidates each: off by "
        f"{facts['estimate_off']:.2g} at most for 95 % of {facts['estimate_checked']:,.0f} checked"
    )


def _encoder(args: Namespace) -> FrozenEncoder | None:
    """The one encoder that the lists are to rest on; None for the run's. Raises BadSetting."""
    if not args.frozen:
        return None
    if len(args.frozen) != 1 or not collectives.is_single_process():
        raise BadSetting("samples takes one --frozen encoder, and one process")
    return parse(args.frozen[0])


def _table(args: Namespace, on_progress: OnProgress) -> tuple[str, SampleTable]:
    if collectives.raise_together(partial(sources.is_file, args.run)):
        if args.frozen:
            raise BadSetting("--frozen needs a run: a file of vectors has no images")
        rows = collectives.raise_together(partial(sources.read_file, args, args.run))
        inputs = SampleInputs(rows, args.loss or "sup_con", device=args.device)
        return args.run, build_table(inputs, on_progress)
    if space := collectives.raise_together(partial(sources.loaded_space, args.run, args, "train")):
        place = space.recorded
        own = str(place.run.config.get("loss") or "sup_con") if place else "sup_con"
        request = request_of(space.name, space.split, args.loss or own)
        return space.name, sample_table(request, on_progress, args.device)
    run, split = collectives.raise_together(partial(sources.run_of, args.run, args)), args.split or "train"
    table = run_samples.samples_of_run(run, args.loss, split, on_progress, args.device, _encoder(args))
    if collectives.world().is_rank0:
        note_left_out(run, split)
    return run.name, table
