"""`import`: what a checkpoint from elsewhere is, and a run of it."""

from __future__ import annotations

from argparse import Namespace

from contrastive_core.cli.output import print_result

__all__ = ["import_checkpoint"]


def import_checkpoint(args: Namespace) -> None:
    """Say what a checkpoint from elsewhere is, and make a run of it."""
    from contrastive_core import importers, runs

    if args.run:
        runs.checked_name(args.run)
    with importers.open_checkpoint(args.file, args.encoder) as it:
        record, run = it.report(), None
        if not args.dry_run:
            run = importers.create_run(it, args.dataset, args.run, args.root)
    parts = [f"{len(record[k])} {k}" for k in ("missing", "unlike", "unused")]
    lines = [
        f"{record['file']}: {record['kind']}, {record['encoder']}",
        f"{record['matched']} tensors matched, {', '.join(parts)}",
        *(f"  {k}: {v}" for k in ("missing", "unlike", "unused") for v in record[k][:10]),
        *record["notes"],
    ]
    if run:
        lines.append(f"run {run.name}, to be judged on {args.dataset}")
    print_result(args, {**record, "run": run and run.name}, "\n".join(lines))
