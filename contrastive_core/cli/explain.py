"""The command `explain`: the patches that make two images similar."""

from argparse import Namespace

from PIL import Image

from contrastive_core.cli import sources
from contrastive_core.cli.output import out_path, print_result, progress_of
from contrastive_core.engine import answers
from contrastive_core.spaces.space import Space


def explain(args: Namespace) -> None:
    """Print the similarity of two images and the contribution of each patch. Raises ValueError."""
    out = out_path(args.out, ".png") if args.out else None
    run = sources.encoder_of(args.run)
    values = {"space": Space.of_run(run, args.split, "h").values, "ids": args.ids}
    with progress_of(args) as on_progress:
        found = answers.make("likeness", values, on_progress, args.device)
    similarity, gap, (low, high) = found.meta["similarity"], found.meta["gap"], found.meta["interval"]
    maps = found.arrays["maps"]
    lines = [f"{run.name}: cosine similarity {similarity:.3f} of the encoder's outputs, a sum over pairs of patches"]
    for name, parts in zip(args.ids, maps, strict=True):
        rows = "\n".join("   " + " ".join(f"{100 * part / similarity:5.1f}" for part in row) for row in parts)
        lines += [f"{name}: part of each patch in %", rows]
    lines += [
        f"Covering the patches with the largest parts lowers it by {gap:.3f} more than covering random ones "
        f"(95 % CI over random orders: {low:.3f} to {high:.3f})."
    ]
    if out:
        Image.fromarray(found.arrays["figure"]).save(out)
        lines += [f"wrote {out}"]
    record = {"run": run.name, "ids": args.ids, **found.meta, "maps": maps.tolist()}
    print_result(args, record, "\n".join(lines))
