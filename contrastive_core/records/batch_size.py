"""The size of a batch where nobody chose one. Torch-free: a page tells it in advance."""

from __future__ import annotations

from contrastive_core.messages import message


def fitting(size: int, reason: str, n_train: int, least: int = 2) -> tuple[int, str]:
    """`size` images for this reason; of a set of `n_train` that is too small for it a quarter, but `least`."""
    if size <= n_train // 4:
        return size, reason
    fits = max(least, n_train // 4)
    return fits, message(
        "{fits}: a quarter of the {n_train} training images, instead of {size}", fits=fits, n_train=n_train, size=size
    )
