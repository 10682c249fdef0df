"""How many images one pass takes, so that memory does not grow with their size. Torch-free."""

from __future__ import annotations

from typing import Any

__all__ = ["images_at_once"]

PIXELS = 64 * 64  # of an image up to which as many are taken as may be


def images_at_once(most: int, images: Any, encoder: Any = None) -> int:
    """Images (n, c, h, w) of one pass: `most` where they have up to PIXELS; of larger ones so many
    as have as many pixels together, but one at least. They are as large as they lie there, or as
    the encoder takes them: 500 of 64 pixels are 40 of 224, for which the first layer of a ResNet-50
    needs 0.13 GB instead of 1.6."""
    h, w = images.shape[-2:]
    own = int(getattr(encoder, "pixels", 0))
    return max(1, most * PIXELS // max(PIXELS, h * w, own * own))
