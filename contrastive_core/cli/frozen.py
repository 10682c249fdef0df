"""`frozen`: the frozen encoders that stand beside every score; and `--frozen` of other commands."""

from argparse import Namespace
from collections.abc import Sequence

from contrastive_core.cli.output import print_note, print_result
from contrastive_core.distributed import collectives
from contrastive_core.engine import answers
from contrastive_core.errors import BadSetting
from contrastive_core.evaluation.compare import Entry
from contrastive_core.evaluation.embed import data_of
from contrastive_core.importers.frozen_encoders import check_frozen, embed_frozen
from contrastive_core.progress import OnProgress, fraction_of
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.frozen import HOW, KIND, FrozenEncoder, add, parse, parse_all, read_list, remove, request
from contrastive_core.records.run import Run
from contrastive_core.records.score import Scores, scores_from_json


def frozen(args: Namespace) -> None:
    """Name encoders from now on, or leave them out; then list all."""
    said = []
    for text in args.encoders:
        if args.remove:
            remove(text)
        else:
            encoder = parse(text)
            said.append(check_frozen(encoder))
            add(encoder)
    listed = read_list()
    lines = [*said, *(f"frozen encoder: {e.text}" for e in listed)]
    if not listed:
        lines.append(f"no frozen encoders; name some: {HOW}")
    print_result(args, {"encoders": [e.text for e in listed]}, "\n".join(lines))


def frozen_scores(run: Run, args: Namespace, split: str, on_progress: OnProgress) -> dict[FrozenEncoder, Scores]:
    """The scores of the frozen encoders beside a run's test split. One that was named once and cannot be opened any
    more is left out with a note; one of this command raises ValueError."""
    found: dict[FrozenEncoder, Scores] = {}
    for encoder in _of_command(args):
        if split != "test":
            raise BadSetting("frozen encoders are scored on the test images; leave --frozen or --split train out")
        try:
            values = request(encoder, run.config, str(run.manifest.get("data_fingerprint") or ""))
            made = answers.make(KIND, values, on_progress, args.device)
        except ValueError as error:
            if args.frozen:
                raise
            print_note(f"{encoder.title}: {error}")
            continue
        for note in made.meta["notes"]:
            print_note(f"{encoder.title}: {note}")
        found[encoder] = scores_from_json(made.meta["scores"])
    return found


def frozen_entries(spaces: Sequence[EmbeddingRef], args: Namespace, on_progress: OnProgress) -> list[Entry]:
    """Frozen encoders as further spaces of a comparison: on the data of the first run. Only where this command names
    some. Raises ValueError."""
    if not args.frozen:
        return []
    run = next((run for space in spaces if (run := space.run)), None)
    if run is None:
        raise BadSetting("--frozen needs a run: a file of vectors has no images")
    entries, splits = [], ["train", args.split or "test"]
    for encoder in parse_all(args.frozen):
        on_fraction = fraction_of(on_progress, encoder.title)
        train, test = (embed_frozen(encoder, data_of(run, s), args.device, on_fraction) for s in splits)
        entries.append(Entry(encoder.title, None if args.split == "train" else train, test, is_of_run=False))
    return entries


def _of_command(args: Namespace) -> list[FrozenEncoder]:
    """The encoders that a command names, or else those that were named once; these only where one process works, and
    of the test split."""
    if not args.frozen and (not collectives.is_single_process() or (args.split or "test") != "test"):
        return []
    if args.frozen and not collectives.is_single_process():
        raise BadSetting("frozen encoders are scored by one process: leave torchrun or --frozen out")
    return parse_all(args.frozen)
