"""The similarity of two images, explained as a sum over pairs of patches.

An encoder that averages its last feature map, x_i (P, d) of one image and y_j of the other, has the cosine
s = Σ_ij ⟨x_i, y_j⟩ / (‖Σ_i x_i‖ ‖Σ_j y_j‖). The sum is exact, without gradients or approximations. A patch is a
position of the feature map; it also depends on its surroundings, up to the encoder's receptive field."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor, nn

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.score import over_seeds
from contrastive_core.data.augmentations import to_float

ORDERS = 20  # random orders in which patches are covered
SIDE, GAP = 240, 8  # pixels of a picture in the figure, and between two
BLUE = np.array([47, 111, 208], np.float32)  # the color of pulls in the app


@dataclass(frozen=True, eq=False)
class Likeness:
    """The similarity of two images and the contribution of each pair of patches.

    `patches` (p, p) sums to `similarity`; `grid` has p = rows · columns. `gap` is the mean similarity with random
    patches covered minus that with the patches of the largest contributions covered; `interval` is its 95 % interval
    over the random orders."""

    similarity: float
    patches: Float[np.ndarray, "p p"]
    grid: tuple[int, int]
    gap: float
    interval: tuple[float, float]

    @property
    def maps(self) -> Float[np.ndarray, "2 rows columns"]:
        """The contribution of each patch of both images; each map sums to the similarity."""
        return np.stack([self.patches.sum(1), self.patches.sum(0)]).reshape(2, *self.grid)


def explain_pair(encoder: nn.Module, images: UInt8[np.ndarray, "2 c h w"], seed: int = 0) -> Likeness:
    """Split the similarity of two images into pairs of patches, and check the contributions by covering patches.

    Args:
        encoder: in evaluation mode, with average pooling before its output.
        images: from the encoder's data set.
        seed: of the random orders.
    Raises: CannotScore for another pooling, a single patch, or an embedding of zeros."""
    device = next(encoder.parameters()).device
    x = to_float(torch.from_numpy(np.ascontiguousarray(images)).to(device))
    features = _before_pooling(encoder, x).double()  # (2, d, r, c)
    grid = (int(features.shape[2]), int(features.shape[3]))
    rows = features.flatten(2).transpose(1, 2)  # (2, p, d)
    lengths = rows.sum(1).norm(dim=1)
    if not bool((lengths > 0).all()):
        raise CannotScore("an image has an embedding of zeros, so it has no similarity")
    patches = (rows[0] @ rows[1].T / lengths.prod()).cpu().numpy()
    unit = (rows.sum(1) / lengths[:, None]).float()

    def covered(orders: Sequence[np.ndarray]) -> float:
        return _similarity_covered(encoder, x, unit, grid, orders)

    named = covered([np.argsort(-parts, kind="stable") for parts in (patches.sum(1), patches.sum(0))])
    generator, places = np.random.default_rng(seed), len(patches)
    drawn = [covered([generator.permutation(places) for _ in x]) - named for _ in range(ORDERS)]
    interval = over_seeds(drawn)
    assert interval is not None  # at least three draws
    return Likeness(
        similarity=float(patches.sum()), patches=patches, grid=grid, gap=float(np.mean(drawn)), interval=interval
    )


def _before_pooling(encoder: nn.Module, x: Tensor) -> Float[Tensor, "2 d r c"]:
    """Return the feature map whose mean is the encoder's output. Raises CannotScore if there is none."""
    seen: list[tuple[Tensor, Tensor]] = []
    pools = [m for m in encoder.modules() if isinstance(m, nn.AdaptiveAvgPool2d)]
    hooks = [m.register_forward_hook(lambda _m, given, out: seen.append((given[0], out))) for m in pools]
    try:
        with torch.inference_mode():
            h = encoder(x)
    finally:
        for hook in hooks:
            hook.remove()
    for given, out in reversed(seen):
        if out.flatten(1).shape == h.shape and torch.allclose(out.flatten(1), h, atol=1e-5):
            if given.shape[2] * given.shape[3] == 1:
                raise CannotScore(
                    "the encoder's last feature map has only one patch, which holds all of the similarity"
                )
            return given.float()
    raise CannotScore("the similarity is a sum over patches only if the encoder ends with average pooling")


def _similarity_covered(
    encoder: nn.Module, x: Tensor, unit: Tensor, grid: tuple[int, int], orders: Sequence[np.ndarray]
) -> float:
    """Return the mean similarity while the first half of an order's patches is covered one by one with the image's mean
    color, in one image at a time. `unit` (2, d) are the unit rows of the unchanged images."""
    count = max(1, len(orders[0]) // 2)
    rows, columns = np.divmod(np.arange(grid[0] * grid[1]), grid[1])
    height, width = x.shape[2:]
    covered = []
    for image, order in zip(x, orders, strict=True):
        steps = image.repeat(count, 1, 1, 1)
        for k, patch in enumerate(order[:count]):
            top, bottom = (height * (rows[patch] + i) // grid[0] for i in (0, 1))
            left, right = (width * (columns[patch] + i) // grid[1] for i in (0, 1))
            steps[k:, :, top:bottom, left:right] = image.mean((1, 2))[:, None, None]
        covered.append(steps)
    with torch.inference_mode():
        h = nn.functional.normalize(encoder(torch.cat(covered)).float(), dim=1)
    return float(torch.cat([h[:count] @ unit[1], h[count:] @ unit[0]]).mean())


def figure(
    images: UInt8[np.ndarray, "2 c h w"], maps: Float[np.ndarray, "2 rows columns"]
) -> UInt8[np.ndarray, "height width 3"]:
    """Draw each image next to its map, where a larger contribution is bluer."""
    tiles: list[Any] = []
    for image, parts in zip(images, maps, strict=True):
        colors = image if len(image) == 3 else image[:1].repeat(3, 0)
        plain = np.asarray(Image.fromarray(colors.transpose(1, 2, 0)).resize((SIDE, SIDE), Image.Resampling.NEAREST))
        low, high = parts.min(), parts.max()
        share = Image.fromarray(((parts - low) / max(high - low, 1e-12)).astype(np.float32))
        alpha = 0.75 * np.asarray(share.resize((SIDE, SIDE), Image.Resampling.BICUBIC)).clip(0, 1)[..., None]
        gray = plain.mean(2, keepdims=True)
        tiles += [plain, (gray * (1 - alpha) + BLUE * alpha).clip(0, 255).astype(np.uint8)]
    space = np.full((SIDE, GAP, 3), 255, np.uint8)
    return np.concatenate([part for tile in tiles for part in (tile, space)][:-1], axis=1)
