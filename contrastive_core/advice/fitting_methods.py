"""Which methods can be tried on a data set: by its labels, its captions and how large a batch it allows."""

import contextlib
from collections.abc import Sequence

import numpy as np

from contrastive_core import methods
from contrastive_core.data.caption_sources import add_captions
from contrastive_core.data.dataset import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.records.cards import MethodCard

LARGE_BATCH = 64  # images; the least that a method of large batches is tried with
LARGE = "large batch"  # of `records.cards.USES`


def fitting_methods(dataset: Dataset, n_train: int | None = None) -> tuple[list[str], dict[str, str]]:
    """Names of the methods that can be tried, and why others cannot, by title.

    Args: n_train: images that a training has, default all."""
    has_labels, has_captions = _has_labels(dataset), _has_captions(dataset)
    largest = (n_train or len(dataset)) // 4
    fitting, left_out = [], {}
    for name in methods.names():
        card = methods.get(name).card
        if why := _lack(card, has_labels, has_captions):
            left_out[card.title] = why
        elif LARGE in card.uses and largest < LARGE_BATCH:
            left_out[card.title] = message(
                "it needs a large batch, and these images allow {largest}", largest=max(1, largest)
            )
        else:
            fitting.append(name)
    return fitting, left_out


def check_methods(names: Sequence[str], dataset: Dataset) -> list[str]:
    """The methods that a person names to compare, each once; also one that wants a larger batch than fits.

    Raises: UnknownName; BadSetting for a method that needs labels or captions that are missing, and for fewer than
        two."""
    cards = {name: methods.get(name).card for name in names}
    if len(cards) < 2:
        titles = ", ".join(card.title for card in cards.values())
        raise BadSetting("a comparison needs at least two methods; got only {titles}", titles=titles)
    has_labels, has_captions = _has_labels(dataset), _has_captions(dataset)
    for card in cards.values():
        if why := _lack(card, has_labels, has_captions):
            raise BadSetting(
                "{title} cannot be tried on {dataset}: {why}", title=card.title, dataset=dataset.name, why=why
            )
    return list(cards)


def _lack(card: MethodCard, has_labels: bool, has_captions: bool) -> str:
    """What a method needs that the data lack; "" where they have it all."""
    if card.needs_labels and not has_labels:
        return N_("it needs labels")
    return N_("it needs captions") if card.needs_captions and not has_captions else ""


def _has_labels(dataset: Dataset) -> bool:
    return len(np.unique(dataset.labels[dataset.labels >= 0])) > 1


def _has_captions(dataset: Dataset) -> bool:
    with contextlib.suppress(ValueError, OSError):
        return add_captions(dataset).captions is not None
    return False
