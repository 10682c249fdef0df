"""`query`: the images of a run that are most similar to a sentence, as Explore finds them."""

from argparse import Namespace

from contrastive_core.cli import sources
from contrastive_core.cli.output import print_note, print_result, progress_of
from contrastive_core.data.captions import LENGTH, split_words
from contrastive_core.engine import answers
from contrastive_core.records import embedding_ref
from contrastive_core.records.embedding_ref import TOWERS
from contrastive_core.storage.regular_files import printable


def query(args: Namespace) -> None:
    """Print the nearest images. Raises ValueError for a run without a text tower, and for words that it never saw."""
    text = args.text.strip()
    if not text:
        raise ValueError("the sentence is empty")
    if args.top < 1:
        raise ValueError(f"--top must be 1 or more; got {args.top}")
    run = sources.encoder_of(args.run)
    if not run.has_towers:
        raise ValueError(f"{printable(run.name)} has no text tower: query needs a run of clip")
    space = embedding_ref.of_run(run, args.split, TOWERS)
    values = {"space": space.values, "text": text, "most": args.top}
    with progress_of(args) as on_progress:
        found = answers.make("text_query", values, on_progress, args.device)
        rows = answers.rows_of(space, on_progress, args.device)
    unknown, nearest = found.meta["unknown"], found.arrays["rows"].tolist()
    if not nearest:
        raise ValueError(f"the training captions have none of these words: {printable(text)}")
    if unknown:
        print_note(f"words that are not in the training captions: {', '.join(map(printable, unknown))}")
    if (n := len(split_words(text))) > LENGTH and run.config.get("method_knobs", {}).get("text_tower", "") == "":
        print_note(f"the text tower reads the first {LENGTH} of {n} words")
    cosines = found.arrays["similarity"].tolist()
    images = [{"id": rows.ids[i], "cosine": s} for i, s in zip(nearest, cosines, strict=True)]
    lines = [f"{one['cosine']:7.3f}  {one['id']}" for one in images]
    print_result(args, {"run": run.name, "text": text, "unknown": unknown, "images": images}, "\n".join(lines))
