"""The commands `change`, which edits settings of a running run and writes its changes as a schedule, and `branch`,
which continues a run from a saved epoch with other settings."""

from argparse import Namespace

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import N_
from contrastive_core.base.safe_files import write_bytes
from contrastive_core.cli.output import out_path, print_result
from contrastive_core.engine import queue
from contrastive_core.runs import changes
from contrastive_core.runs.branch import branch as branch_off
from contrastive_core.runs.branch import live_settings_of


def change(args: Namespace) -> None:
    """Request changes to a running run, and write all changes so far. Raises: BadSetting; ValueError for other runs."""
    run = runs.load(args.run)
    if not args.settings and not args.out:
        raise BadSetting(N_("name a setting to change, such as loss.temperature=0.1, or a file with --out"))
    if args.settings:
        changes.request(run, live_settings_of(run.config), changes.settings_of(args.settings))
    if args.out:
        write_bytes(out_path(args.out, ".json"), json_bytes(changes.schedule_of(run.changes())), shared=True)
    asked = f"{run.name}: asked for {', '.join(args.settings)} at its next step\n" if args.settings else ""
    told = changes.in_words(run.changes()) or "none yet"
    print_result(args, {"run": run.name, "changes": run.changes()}, f"{asked}changes so far: {told}")


def branch(args: Namespace) -> None:
    """Create branches of a run and add them to the queue. Raises: BadSetting; ValueError if no state is saved."""
    run = runs.load(args.run)
    made = branch_off(run, *(changes.settings_of(text.split(",")) for text in args.settings), epoch=args.epoch)
    for one in made:
        queue.resume(one.name)
    names = [one.name for one in made]
    lines = [f"{one.name}: from epoch {one.status()['epoch']} of {run.name}, in the queue" for one in made]
    print_result(args, {"runs": names}, "\n".join(lines))
