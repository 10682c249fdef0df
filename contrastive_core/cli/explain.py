"""The command `explain`: the patches or words that make two samples similar."""

from argparse import Namespace

from PIL import Image

from contrastive_core.cli import sources
from contrastive_core.cli.output import out_path, print_result, progress_of
from contrastive_core.compare.likeness import figure
from contrastive_core.engine import answers
from contrastive_core.spaces.space import Space


def explain(args: Namespace) -> None:
    """Print the similarity of two samples and the contribution of each patch or word. Raises ValueError."""
    out = out_path(args.out, ".png") if args.out else None
    run = sources.encoder_of(args.run)
    values = {"space": Space.of_run(run, args.split, args.layer).values, "ids": args.ids}
    with progress_of(args) as on_progress:
        found = answers.make("likeness", values, on_progress, args.device)
    meta, patches = found.meta, found.arrays["patches"]
    maps = [patches.sum(1 - k).reshape(shape) for k, shape in enumerate(meta["shapes"])]
    similarity, explained, (low, high) = meta["similarity"], meta["explained"], meta["interval"]
    lines = [f"{run.name}: cosine similarity {similarity:.3f}, a sum over pairs of patches"]
    if not meta["is_exact"]:
        lines = [
            f"{run.name}: cosine similarity {similarity:.3f}; the parts, integrated Jacobians, sum to {explained:.3f}"
        ]
    for name, parts, words in zip(args.ids, maps, meta["words"], strict=True):
        lines += [f"{name}: part of each {'word' if words else 'patch'} in %"]
        shares = 100 * parts / explained
        lines += [f"   {share:6.1f} {word}" for share, word in zip(shares.flat, words, strict=False)]
        lines += [] if words else ["   " + " ".join(f"{share:5.1f}" for share in row) for row in shares]
    lines += [
        f"Covering those with the largest parts lowers it by {meta['gap']:.3f} more than covering random ones "
        f"(area between the curves, 95 % CI over random orders: {low:.3f} to {high:.3f})."
    ]
    images = {k: found.arrays[f"image{k}"] for k in (0, 1) if f"image{k}" in found.arrays}
    if out and images:
        Image.fromarray(figure([*images.values()], [maps[k] for k in images])).save(out)
        lines += [f"wrote {out}"]
    record = {"run": run.name, "ids": args.ids, **meta, "maps": [parts.tolist() for parts in maps]}
    print_result(args, record, "\n".join(lines))
