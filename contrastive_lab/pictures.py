"""The images behind the rows of an embedding, as the maps and galleries show them."""

import numpy as np

from contrastive_core.data import datasets
from contrastive_core.data.image_form import form_of
from contrastive_core.engine import jobs
from contrastive_core.spaces.space import Space
from contrastive_lab import cache
from contrastive_lab.locale import message
from contrastive_lab.progress import follow


def are_decoded(space: Space) -> bool:
    """Whether there are images to be shown; while they are being made the page says so."""
    run = space.run
    if run is None:
        return cache.images(space) is not None
    if not datasets.is_made(str(run.config.get("dataset")), space.split, form_of(run.config)):
        follow(jobs.decoding(run.config, space.split), message("The images behind the points (once)"))
        return False
    return True


def of(space: Space) -> np.ndarray:
    """Images (n, c, h, w) in the order of the rows."""
    images = cache.images(space)
    assert images is not None
    return images
