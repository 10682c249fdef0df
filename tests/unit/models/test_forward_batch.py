"""Chunks are of pixels, not of images: as ever for small ones, few of large ones."""

from types import SimpleNamespace

import numpy as np
from cases import cases

from contrastive_core.models.encoders import forward_batch_size


@cases(
    ("side", "own", "count"),
    [
        (8, 0, 500),
        (32, 32, 500),
        (64, 0, 500),
        (64, 64, 500),  # as ever
        (65, 0, 484),
        (128, 0, 125),
        (224, 0, 40),
        (512, 0, 7),
        (32, 224, 40),  # the encoder enlarges them
        (512, 224, 7),  # and has them in memory before it makes them smaller
        (8000, 0, 1),
    ],
)
def test_images_of_one_pass(side: int, own: int, count: int) -> None:
    images = np.broadcast_to(np.uint8(0), (2, 3, side, side))
    assert forward_batch_size(500, images, SimpleNamespace(pixels=own)) == count
    if not own:
        assert forward_batch_size(500, images) == count
