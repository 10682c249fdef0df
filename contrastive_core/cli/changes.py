"""`change`: settings of a run while it trains, and its changes as a schedule for another. `branch`: runs that go on
from a saved epoch with other values."""

from argparse import Namespace

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import N_
from contrastive_core.base.safe_files import write_bytes
from contrastive_core.cli.output import out_path, print_result
from contrastive_core.engine import queue
from contrastive_core.runs import changes
from contrastive_core.runs.branch import branch as branch_off


def change(args: Namespace) -> None:
    """Ask for the changes, and write those so far. Raises: BadSetting; ValueError where the run is not running."""
    run = runs.load(args.run)
    if not args.settings and not args.out:
        raise BadSetting(N_("name a setting to change, such as loss.temperature=0.1, or a file with --out"))
    if args.settings:
        config = run.config
        knobs = losses.knobs(str(config.get("loss"))), methods.knobs(str(config.get("method")))
        changes.request(run, changes.live_settings(config, *knobs), changes.settings_of(args.settings))
    if args.out:
        write_bytes(out_path(args.out, ".json"), json_bytes(changes.schedule_of(run.changes())), shared=True)
    asked = f"{run.name}: asked for {', '.join(args.settings)} at its next step\n" if args.settings else ""
    told = changes.in_words(run.changes()) or "none yet"
    print_result(args, {"run": run.name, "changes": run.changes()}, f"{asked}changes so far: {told}")


def branch(args: Namespace) -> None:
    """Make the branches and put them into the queue. Raises: BadSetting; ValueError where no state is kept."""
    run = runs.load(args.run)
    made = branch_off(run, *(changes.settings_of(text.split(",")) for text in args.settings), epoch=args.epoch)
    for one in made:
        queue.resume(one.name)
    names = [one.name for one in made]
    lines = [f"{one.name}: from epoch {one.status()['epoch']} of {run.name}, in the queue" for one in made]
    print_result(args, {"runs": names}, "\n".join(lines))
