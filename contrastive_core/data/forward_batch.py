"""Batch size of a forward pass."""

from __future__ import annotations

from typing import Any

PIXELS = 64 * 64  # of the largest images that are taken `most` at a time


def forward_batch_size(most: int, images: Any, encoder: Any = None) -> int:
    """Return how many images (n, c, h, w) one forward pass takes, so that memory is bounded for
    large images: `most` up to PIXELS, of larger ones as many as have that many pixels together.

    `encoder.pixels`, the size to which an encoder scales its images, counts too. For example, 500
    images of 64 pixels are 40 of 224, whose first ResNet-50 layer needs 0.13 GB instead of 1.6 GB.
    """
    h, w = images.shape[-2:]
    own = int(getattr(encoder, "pixels", 0))
    return max(1, most * PIXELS // max(PIXELS, h * w, own * own))
