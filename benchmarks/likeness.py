"""Why two images are similar: do the parts sum to the similarity, and do the named patches matter?

    python -m benchmarks.likeness [--runs simclr-shapes …] [--pairs 200]

Pairs are an image and its nearest neighbor among the test images. Printed are

- the largest difference between the sum of the parts and the cosine of the encoder's outputs,
- the share of pairs where covering the patches with the largest parts lowers the similarity more than covering random
  ones (the goal is 95 %), and where the interval excludes 0,
- the seconds of a pair.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from contrastive_core import runs
from contrastive_core.compare.embed import data_of, embed_run, load_model
from contrastive_core.compare.likeness import explain_pair
from contrastive_core.data.augmentations import to_float
from contrastive_core.ops.partner_ranks import unit_rows

SUM, BEATS, SECONDS = 1e-5, 0.95, 0.3


def measure(name: str, pairs: int) -> None:
    run = runs.load(name)
    dataset, encoder = data_of(run, "test"), load_model(run, device="cpu").encoder.eval()
    rows = unit_rows(embed_run(run, "test", "h", "cpu").features)
    chosen = np.random.default_rng(0).choice(len(rows), min(pairs, len(rows)), replace=False)
    worst, beats, shown, seconds = 0.0, 0, 0, []
    for i in chosen:
        cosines = rows @ rows[i]
        cosines[i] = -1
        j = int(cosines.argmax())
        began = time.perf_counter()
        two = np.stack([dataset.images[int(i)], dataset.images[j]])
        found = explain_pair(encoder, two)
        seconds.append(time.perf_counter() - began)
        with torch.inference_mode():
            h = encoder(to_float(torch.from_numpy(two))).double()
        worst = max(worst, abs(found.similarity - float(torch.cosine_similarity(h[:1], h[1:]))))
        beats += found.gap > 0
        shown += found.interval[0] > 0
    share, median = beats / len(chosen), float(np.median(seconds))
    print(f"{name}: {len(chosen)} pairs of {found.grid[0]} × {found.grid[1]} patches")
    print(f"  sum − cosine at most {worst:.1e}  {'ok' if worst <= SUM else 'MISSED'}")
    print(
        f"  named beat random in {share:.1%}  {'ok' if share >= BEATS else 'MISSED'}; interval above 0 in "
        f"{shown / len(chosen):.1%}"
    )
    print(f"  {median:.3f} s a pair (median)  {'ok' if median <= SECONDS else 'MISSED'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="+", default=["simclr-shapes", "vicreg-shapes", "simclr-digits"])
    parser.add_argument("--pairs", type=int, default=200)
    given = parser.parse_args()
    for one in given.runs:
        measure(one, given.pairs)
