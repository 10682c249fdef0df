"""`list` and `verify`: what is there, and whether it is what was written."""

from __future__ import annotations

from argparse import Namespace

from contrastive_core import losses, methods, metrics
from contrastive_core.cli.output import print_result, progress_of
from contrastive_core.data import datasets
from contrastive_core.evaluation.reproduce import ScoreCache, deviations
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.runs.verify import damage
from contrastive_core.storage.json_files import JsonObject


def list_all(args: Namespace) -> None:
    """Runs, and the names that other commands take."""
    rows = [_row(run) for run in runs.list_runs()]
    names = {"methods": methods.names(), "losses": losses.names(), "metrics": metrics.names()}
    names |= {"datasets": datasets.dataset_names()}
    lines = [f"{what}: {', '.join(entries)}" for what, entries in names.items()]
    width = max([len(r["run"]) for r in rows], default=0)
    lines += [
        f"{r['run']:<{width}}  {r['status']:<8} {r['method']} on {r['dataset']}"
        f"{'  (shipped)' if r['shipped'] else ''}{'  ' + r['reason'] if r['reason'] else ''}"
        for r in rows
    ] or ["no runs yet: python -m contrastive_core train --method simclr --dataset digits"]
    print_result(args, {"runs": rows, **names}, "\n".join(lines))


def verify(args: Namespace) -> int:
    """Check every file of the runs, and compute anew the figures that come with the project; 1 if
    something is damaged or a figure does not follow from the weights."""
    cache: ScoreCache = {}
    chosen = [runs.load(name) for name in args.runs] or runs.list_runs()
    problems = {run.name: damage(run) for run in chosen}
    problems |= {name: [why] for name, why in runs.damaged().items() if not args.runs}
    shipped = [r for r in chosen if r.shipped and not args.files and not problems[r.name]]
    with progress_of(args) as on_progress:
        for number, run in enumerate(shipped):
            on_progress(f"computing the figures of {run.name}", number / len(shipped))
            problems[run.name] = deviations(run, args.device, cache)
    lines = [f"{name}: {'; '.join(bad) if bad else 'whole'}" for name, bad in problems.items()]
    print_result(args, {"runs": problems}, "\n".join(lines) or "no runs yet")
    return int(any(problems.values()))


def _row(run: Run) -> JsonObject:
    config, status = run.manifest.get("config", {}), run.status()
    return {
        "run": run.name,
        "status": status.get("status", ""),
        "reason": status.get("reason", ""),
        "method": config.get("method", run.manifest.get("method", "")),
        "dataset": config.get("dataset", run.manifest.get("dataset", "")),
        "shipped": run.shipped,
    }
