"""Compute every loss on one batch and show which anchors contribute most.

python examples/losses_on_a_batch.py
"""

import torch

from contrastive_core import losses, pairs


def make_views(images: int = 32, views: int = 2, width: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Return embeddings (images, views, width) of four classes, and the class of each image."""
    torch.manual_seed(0)
    labels = torch.arange(images) % 4
    centers = torch.randn(4, width)[labels]
    return centers[:, None] + 0.7 * torch.randn(images, views, width), labels


def main() -> None:
    z, labels = make_views()
    rows, row_labels = z.flatten(0, 1), labels.repeat_interleave(z.shape[1])
    print(f"{'loss':<22} {'value':>8} {'anchors':>8}  hardest anchor")
    for name in losses.names():
        loss = losses.create(name)
        # A loss that pairs rows by class takes labels. The others treat the views of an image as positives.
        batch = pairs.from_labels(rows, row_labels) if loss.card.by_label else pairs.from_views(z)
        if problem := loss.check(batch):
            print(f"{name:<22} {problem}")
            continue
        out = loss(batch)
        hardest = int((out.weight * out.per_anchor).argmax())
        print(
            f"{name:<22} {float(out.value):8.3f} {out.n_valid:8d}  row {hardest}: {float(out.per_anchor[hardest]):.3f}"
        )

    print("\nA lower temperature concentrates the gradient of NT-Xent on the most similar negatives:")
    for temperature in (1.0, 0.5, 0.1, 0.05):
        anatomy = losses.create("nt_xent", temperature=temperature).anatomy(pairs.from_views(z))
        push = anatomy.grad_scores.clamp_min(0)  # (n, m), without the pull on positives
        share = push.max(1).values / push.sum(1)
        print(f"  temperature {temperature:<5} {100 * float(share.mean()):.0f} % of the push is on one negative")


if __name__ == "__main__":
    main()
