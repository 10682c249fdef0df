"""The playground: a small image encoder that is trained in the browser, in the app or in an offline file."""

from collections.abc import Mapping

from contrastive_core.spaces.small_samples import SmallImages
from contrastive_lab.components.playground import PlaygroundView

LOSSES = ("nt_xent", "sup_con", "info_nce", "triplet")  # whose kernels the browser has


def view_of(small: SmallImages, kernels: Mapping[str, Mapping[str, object]], settings: str = "") -> PlaygroundView:
    """Return the view of the images with the losses' kernels. `settings`: as in the URL."""
    images, labels, classes = small.images, small.labels, small.classes
    return PlaygroundView(
        images=images,
        labels=labels,
        classes=classes,
        shape=images.shape[1:],
        learned=small.learned,
        kernels={name: kernels[name] for name in LOSSES},
        settings=settings,
    )
