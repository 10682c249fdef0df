"""Which methods can be tried on a data set: by its labels, its captions and how large a batch it allows."""

import contextlib

import numpy as np

from contrastive_core import methods
from contrastive_core.data.caption_sources import add_captions
from contrastive_core.data.dataset import Dataset
from contrastive_core.messages import N_, message

LARGE_BATCH = 64  # images; the least that a method of large batches is tried with
LARGE = "large batch"  # of `records.cards.USES`


def fitting_methods(dataset: Dataset, n_train: int | None = None) -> tuple[list[str], dict[str, str]]:
    """Names of the methods that can be tried, and why others cannot, by title.

    Args: n_train: images that a training has, default all."""
    has_labels = len(np.unique(dataset.labels[dataset.labels >= 0])) > 1
    has_captions = False
    with contextlib.suppress(ValueError, OSError):
        has_captions = add_captions(dataset).captions is not None
    largest = (n_train or len(dataset)) // 4
    fitting, left_out = [], {}
    for name in methods.names():
        card = methods.get(name).card
        if card.needs_labels and not has_labels:
            left_out[card.title] = N_("it needs labels")
        elif card.needs_captions and not has_captions:
            left_out[card.title] = N_("it needs captions")
        elif LARGE in card.uses and largest < LARGE_BATCH:
            left_out[card.title] = message(
                "it needs a large batch, and these images allow {largest}", largest=max(1, largest)
            )
        else:
            fitting.append(name)
    return fitting, left_out
