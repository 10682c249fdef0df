"""What each loss does to planted false negatives: the share of the push on an anchor's negatives that they get.

    python -m benchmarks.false_negatives [--anchors 256] [--negatives 1024] [--seeds 0 1 2]

Each anchor has a key (cosine 0.7), random negatives, and in known places of the queue one duplicate of its own content:
a false negative, whose cosine with the anchor is set. d = 64, τ = 0.1 for all losses. The push on a negative is
|∂L_i/∂s_ik|, the pull on the key |∂L_i/∂s_ip|. The first table is the mean share of the false negative in the push on
all negatives of its anchor, the second the push on it as a multiple of the pull; each with the range over the seeds.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import torch
from torch.nn.functional import normalize

from contrastive_core import losses, pairs
from contrastive_core.losses import Loss
from contrastive_core.pairs import Pairs

D, TAU, OF_KEY = 64, 0.1, 0.7
SIMILARITIES = (0.5, 0.65, 0.75, 0.95)
LOSSES: dict[str, Loss] = {
    "InfoNCE": losses.create("info_nce", temperature=TAU),
    "InfoNCE, margin 0.1": losses.create("info_nce", temperature=TAU, negative_margin=0.1),
    "InfoNCE, margin 0": losses.create("info_nce", temperature=TAU, negative_margin=0.0),
    "InfoNCE, margin −0.1": losses.create("info_nce", temperature=TAU, negative_margin=-0.1),
    "Hard negatives, β 1, τ⁺ 0": losses.create("hard_negative", temperature=TAU, beta=1.0, tau_plus=0.0),
    "Hard negatives, β 1, τ⁺ 0.1": losses.create("hard_negative", temperature=TAU, beta=1.0, tau_plus=0.1),
    "Hard negatives, β 0, τ⁺ 0.001": losses.create("hard_negative", temperature=TAU, beta=0.0, tau_plus=0.001),
    "Decoupled": losses.create("decoupled", temperature=TAU),
    "Robust InfoNCE, q 0.5": losses.create("robust_info_nce", temperature=TAU, q=0.5),
}


def planted(similarity: float, anchors: int, negatives: int, seed: int) -> tuple[Pairs, torch.Tensor]:
    """Anchors with their keys and a queue, and the row of the queue (n) that duplicates each anchor."""
    draw = torch.Generator().manual_seed(seed)

    def rows(n: int) -> torch.Tensor:
        return normalize(torch.randn(n, D, generator=draw, dtype=torch.float64), dim=1)

    def at_cosine(z: torch.Tensor, cosine: float) -> torch.Tensor:
        other = rows(len(z))
        across = normalize(other - (other * z).sum(1, keepdim=True) * z, dim=1)
        return cosine * z + (1 - cosine**2) ** 0.5 * across

    q = rows(anchors)
    queue, place = rows(anchors + negatives), torch.randperm(anchors + negatives, generator=draw)[:anchors]
    queue[place] = at_cosine(q, similarity)
    return pairs.from_queue(q, at_cosine(q, OF_KEY), queue), anchors + place  # keys stand before the queue


def pushes(loss: Loss, made: Pairs, place: torch.Tensor) -> tuple[float, float, float]:
    """Mean share of the false negative in the push on negatives, mean push on it over the pull on the key, and the
    share of true negatives that get none."""
    found = loss.anatomy(made)
    push = found.grad_scores.abs() * found.negative  # (n, m)
    own = push[torch.arange(len(place)), place]
    share = own / push.sum(1).clamp_min(1e-300)
    pull = (found.grad_scores.abs() * found.positive).sum(1)
    left_out = (push == 0) & found.negative
    left_out[torch.arange(len(place)), place] = False
    return float(share.mean()), float((own / pull).mean()), float(left_out.sum() / (found.negative.sum() - len(place)))


def text(values: Sequence[float], digits: int) -> str:
    mean, low, high = statistics.fmean(values), min(values), max(values)
    return f"{mean:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--anchors", type=int, default=256)
    options.add_argument("--negatives", type=int, default=1024)
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = options.parse_args()
    found: dict[tuple[str, float], list[tuple[float, float, float]]] = {}
    for similarity in SIMILARITIES:
        for seed in args.seeds:
            made = planted(similarity, args.anchors, args.negatives, seed)
            for name, loss in LOSSES.items():
                found.setdefault((name, similarity), []).append(pushes(loss, *made))
    print("| share of the push on negatives, % | " + " | ".join(f"cosine {s}" for s in SIMILARITIES) + " |")
    print("|---|" + "---:|" * len(SIMILARITIES))
    for name in LOSSES:
        shares = [text([100 * share for share, _, _ in found[name, s]], 1) for s in SIMILARITIES]
        print(f"| {name} | " + " | ".join(shares) + " |")
    print("\n| push ÷ pull | " + " | ".join(f"cosine {s}" for s in SIMILARITIES) + " | true negatives without push |")
    print("|---|" + "---:|" * (len(SIMILARITIES) + 1))
    for name in LOSSES:
        times = [text([push for _, push, _ in found[name, s]], 2) for s in SIMILARITIES]
        lost = statistics.fmean(found[name, s][k][2] for s in SIMILARITIES for k in range(len(args.seeds)))
        print(f"| {name} | " + " | ".join(times) + f" | {100 * lost:.2f} % |")


if __name__ == "__main__":
    main()
