"""`migrate`: run folders of an older version, brought to the present format."""

from __future__ import annotations

from argparse import Namespace

from contrastive_core.cli.output import print_result

__all__ = ["migrate_runs"]


def migrate_runs(args: Namespace) -> None:
    """Migrate the named runs, or all that are outdated."""
    from contrastive_core.runs.migrate import migrate, outdated

    changes = {name: migrate(name, args.dry_run) for name in args.runs or outdated()}
    verb = "would change" if args.dry_run else "changed"
    lines = [f"{name}: {verb} {', '.join(files) or 'nothing'}" for name, files in changes.items()]
    print_result(args, {"runs": changes}, "\n".join(lines) or "every run has the present format")
