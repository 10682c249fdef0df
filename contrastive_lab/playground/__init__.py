"""The playground: a small image encoder that is trained in the browser, in the app or in an offline file."""

from collections.abc import Mapping
from typing import Any

from contrastive_core.spaces.small_samples import SmallImages
from contrastive_lab.components.shared.mount import bundle, pack

LOSSES = ("nt_xent", "sup_con", "info_nce", "triplet")  # whose kernels the browser has


def pack_playground(
    small: SmallImages, kernels: Mapping[str, Mapping[str, object]], settings: str = "", **more: Any
) -> bytes:
    """Return the data of the playground for the browser, in any host, including the training worker. Args: kernels:
    each loss's `kernel()`; settings: what an address holds of it (setting.js)."""
    return pack(
        images=small.images,
        labels=small.labels,
        classes=small.classes,
        shape=small.images.shape[1:],  # a height of 1: rows of numbers
        learned=small.learned,  # the first so many are learned from, the others held out
        kernels={name: kernels[name] for name in LOSSES},
        settings=settings,
        worker=bundle("playground/worker.js").rpartition("export default")[0],  # file:// refuses workers of modules
        **more,
    )
