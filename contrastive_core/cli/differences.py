"""The command `compare --differences`: groups of samples close together in one space and scattered in the other."""

from argparse import Namespace
from dataclasses import asdict

from contrastive_core.cli import sources
from contrastive_core.cli.output import print_result, progress_of
from contrastive_core.compare.differences import EXAMPLES, NONE, Differences, differences_request
from contrastive_core.engine import answers


def name_differences(args: Namespace) -> None:
    """Print the groups in which two spaces differ, and the basis of the result. Raises ValueError."""
    spaces = sources.spaces_of(args)
    values = differences_request(spaces)
    with progress_of(args) as on_progress:
        found = Differences.of(answers.make("differences", values, on_progress, args.device).meta)
        ids = answers.rows_of(spaces[0], on_progress, args.device).ids
    lines, groups = [] if found.groups else [NONE], []
    for group in found.groups:
        a, b = (f"{100 * share:.0f} %" for share in group.cohesion)
        examples = [ids[row] for row in group.rows[:EXAMPLES]]
        lines += [group.sentence(values["names"])]
        lines += [f"   nearer to a member than to a stranger: {a} in {values['names'][0]}, {b} in {values['names'][1]}"]
        lines += [f"   {', '.join(examples)}"]
        rows = {"ids": [ids[row] for row in group.rows], "sentence": str(group.sentence(values["names"]))}
        groups.append({**asdict(group), **rows, "gap": group.gap})
    record = {"names": values["names"], **asdict(found), "groups": groups, "notes": [str(note) for note in found.notes]}
    print_result(args, record, "\n".join([*lines, *map(str, found.notes)]))
