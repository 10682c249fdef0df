"""Why two images are similar: do the parts sum to the similarity, and do the named patches matter?

    python -m benchmarks.likeness [--runs simclr-shapes …] [--layer h] [--pairs 200]

Pairs are an image and its nearest neighbor among the test images. Printed are

- the largest difference between the sum of the parts and the cosine of the encoder's outputs, if the sum is exact; else
  quartiles of the share that the parts explain,
- the share of pairs where covering the patches with the largest parts lowers the similarity more than covering random
  ones (the goal is 95 %), and where the interval excludes 0,
- the seconds of a pair and its processor seconds, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from contrastive_core import runs
from contrastive_core.compare.embed import data_of, embed_run, load_model
from contrastive_core.compare.likeness import Picture, explain
from contrastive_core.data.augmentations import to_float
from contrastive_core.ops.partner_ranks import unit_rows

SUM, BEATS, SECONDS = 1e-5, 0.95, 0.3


def measure(name: str, layer: str, pairs: int) -> None:
    run = runs.load(name)
    dataset, method = data_of(run, "test"), load_model(run, device="cpu").eval().requires_grad_(False)
    encoder = method.encoder if layer == "h" else method
    rows = unit_rows(embed_run(run, "test", layer, "cpu").features)
    chosen = np.random.default_rng(0).choice(len(rows), min(pairs, len(rows)), replace=False)
    found, errors, seconds = [], [], []
    for i in chosen:
        cosines = rows @ rows[i]
        cosines[i] = -1
        two = np.stack([dataset.images[k] for k in (int(i), int(cosines.argmax()))])
        began = time.perf_counter(), time.process_time()
        found.append(explain((Picture(encoder, two[0]), Picture(encoder, two[1]))))
        seconds.append((time.perf_counter() - began[0], time.process_time() - began[1]))
        with torch.inference_mode():
            rows_of = encoder(to_float(torch.from_numpy(two))).double()
        errors.append(abs(float(found[-1].patches.sum() - torch.cosine_similarity(rows_of[:1], rows_of[1:]))))
    share, shown = np.mean([one.gap > 0 for one in found]), np.mean([one.interval[0] > 0 for one in found])
    (wall, of_processor), shape = np.median(seconds, 0), found[0].shapes[0]
    print(f"{name}, {layer}: {len(chosen)} pairs of {shape[0]} × {shape[1]} patches")
    if found[0].is_exact:
        print(f"  sum − cosine at most {max(errors):.1e}  {'ok' if max(errors) <= SUM else 'MISSED'}")
    else:
        quartiles = np.percentile([one.patches.sum() / one.similarity for one in found], (25, 50, 75))
        print(f"  explained {', '.join(f'{part:.0%}' for part in quartiles)} (quartiles)")
    print(
        f"  named beat random in {share:.1%}  {'ok' if share >= BEATS else 'MISSED'}; interval above 0 in {shown:.1%}"
    )
    print(f"  {wall:.3f} s a pair (median), {of_processor:.3f} s of the processor  ", end="")
    print("ok" if of_processor <= SECONDS else "MISSED")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="+", default=["simclr-shapes", "vicreg-shapes", "simclr-digits"])
    parser.add_argument("--layer", choices=("h", "z"), default="h")
    parser.add_argument("--pairs", type=int, default=200)
    given = parser.parse_args()
    for one in given.runs:
        measure(one, given.layer, given.pairs)
