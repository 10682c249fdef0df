"""The similarity of two samples, an image or a text each, explained as a sum over pairs of patches or words.

An encoder that averages its last feature map, x_i (p, d) of one sample and y_j of the other, has the cosine
s = Σ_ij ⟨x_i, y_j⟩ / (‖Σ_i x_i‖ ‖Σ_j y_j‖). The sum is exact, without gradients or approximations.

With a head or another pooling, x_i is the integrated Jacobian times the patch: ∫ J(r + α (X − r)) dα (X − r)_i, on the
line from a reference r to the feature map X (Möller et al., arXiv 2310.05703, eq. 4, and 2408.14153). Then Σ_i x_i is
f(X) − f(r), so the parts sum to the similarity less the terms with f(r). We deviate in r: zeros, or for tokens of an
image, which a LayerNorm would scale back, those of an image of one color.

A patch is a position of a layer; it also depends on its surroundings, up to the encoder's receptive field.

The images of a run that are most similar to a sentence, or to a picture of the user, are found here too."""

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from PIL import Image
from torch import Tensor, nn

from contrastive_core.base.errors import BadSetting, CannotScore
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.score import over_seeds
from contrastive_core.compare.embed import data_of, embed_run, encode_texts, load_model
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.captions import PADDING, split_words
from contrastive_core.data.image_cache import StreamedImages
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.models.text_tower import TextTower
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.ops.similarity import full_precision
from contrastive_core.runs.run import Run
from contrastive_core.spaces.towers import Towers

ORDERS, COVERINGS = 20, 8  # random orders in which patches are covered, and images of each
STEPS, TOKEN_STEPS = 32, 8  # points of an integral; fewer in a transformer, whose blocks follow
DIRECTIONS = 64  # of wider rows, so many are differentiated
ENOUGH = 0.5  # share of a row that is lost without the patches of a layer of tokens, to take that layer
PREFIX = 8  # tokens of an image without a place (class, registers), at most
POOLS = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)  # whose input is the layer
CHUNK = 256  # small images per forward pass
SIDE, GAP = 240, 8  # pixels of a picture in the figure, and between two
BLUE = np.array([47, 111, 208], np.float32)  # the color of pulls in the app


@dataclass(frozen=True, eq=False)
class Likeness:
    """The similarity of two samples and the contribution of each pair of patches.

    `patches` (p, q) sums to `similarity` if `is_exact`. `shapes`: (rows, columns) of an image, (words,) of a text.
    `gap` is the mean similarity with random patches covered minus that with the patches of the largest contributions
    covered, the area between the two curves; `interval` is its 95 % interval over the random orders."""

    similarity: float
    patches: Float[np.ndarray, "p q"]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    is_exact: bool
    gap: float
    interval: tuple[float, float]

    @property
    def maps(self) -> list[np.ndarray]:
        """The contribution of each patch of both samples; each map has the sum of `patches`."""
        return [self.patches.sum(1 - k).reshape(shape) for k, shape in enumerate(self.shapes)]


class Picture:
    """An image (c, h, w) uint8, and the encoder of its row in evaluation mode."""

    def __init__(self, encoder: nn.Module, image: UInt8[np.ndarray, "c h w"]) -> None:
        device = next(encoder.parameters()).device
        self.encode = self.layers = encoder
        self.x = to_float(torch.from_numpy(np.array(image))[None].to(device))

    def shape_of(self, places: int, output: Tensor) -> tuple[int, ...]:
        """Return rows and columns of the last `places` of a layer."""
        side = math.isqrt(places)
        return (int(output.shape[2]), int(output.shape[3])) if output.dim() == 4 and _is_map(output) else (side, side)

    def hide(self, hidden: Bool[Tensor, "m p"], shape: tuple[int, ...]) -> Tensor:
        """Return copies (m, c, h, w) of the image with patches in its mean color."""
        height, width = self.x.shape[2:]
        row, column = (torch.arange(n) * count // n for n, count in ((height, shape[0]), (width, shape[1])))
        covered = hidden[:, row[:, None] * shape[1] + column].to(self.x.device)[:, None]  # (m, 1, h, w)
        return torch.where(covered, self.x.mean((2, 3), keepdim=True), self.x)


class Words:
    """A text and its row of a method with a text tower of its own. Raises CannotScore for a pretrained tower."""

    def __init__(self, method: Any, text: str) -> None:
        self.layers: nn.Module = method.text_tower
        if not isinstance(self.layers, TextTower):
            raise CannotScore("a pretrained text tower has tokens of its own, so a text is not split into words")
        self.head, self.x = method.text_head, self.layers.encode([text])
        self.words = split_words(text)[: self.x.shape[1]]

    def encode(self, tokens: Tensor) -> Tensor:
        """Return z (m, e) of tokens."""
        return self.head(self.layers(tokens))

    def shape_of(self, places: int, output: Tensor) -> tuple[int, ...]:
        """Return the number of words."""
        return (places,)

    def hide(self, hidden: Bool[Tensor, "m p"], shape: tuple[int, ...]) -> Tensor:
        """Return the tokens (m, length) without words."""
        return self.x.masked_fill(hidden.to(self.x.device), PADDING)


@dataclass(frozen=True, eq=False)
class _Layer:
    """The layer whose patches explain the row of a sample: its output, and what it is compared with."""

    side: Picture | Words
    module: nn.Module
    output: Tensor
    reference: Tensor
    row: Float[Tensor, " d"]
    is_exact: bool

    @property
    def places(self) -> int:
        return _count(self.side, self.output)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.side.shape_of(self.places, self.output)

    def parts(self, directions: Float[Tensor, "d k"]) -> Float[Tensor, "p k"]:
        """Return the part of each patch in the row, in some directions. Raises CannotScore."""
        if self.is_exact:
            return _rows(self.output)[0, -self.places :].to(directions.dtype) @ directions / self.places
        steps = TOKEN_STEPS if self.output.dim() == 3 and isinstance(self.side, Picture) else STEPS
        at = (torch.arange(steps, device=self.output.device) + 0.5) / steps
        change = self.output - self.reference
        line = (self.reference + at.view(-1, *[1] * (change.dim() - 1)) * change).requires_grad_(True)
        with torch.enable_grad():
            rows = _replaced(self.side, self.module, line)  # (s, d)
            if not rows.requires_grad:
                raise CannotScore(
                    "the last layer with patches cannot be replaced while the encoder runs, so its similarity cannot "
                    "be split"
                )
            sums = (rows @ directions.to(rows.dtype)).sum(0)  # (k)
            jacobian = (torch.autograd.grad(one, line, retain_graph=True)[0].mean(0, keepdim=True) for one in sums)
            found = [_rows(slope * change)[0, -self.places :].sum(1) for slope in jacobian]
        return torch.stack(found, 1).to(directions.dtype)


def explain(sides: tuple[Picture | Words, Picture | Words]) -> Likeness:
    """Split the similarity of two samples into pairs of patches or words, and check the contributions by covering some.

    Args: sides: with encoders in evaluation mode, and samples of their data set.
    Raises: CannotScore for an encoder without patches, or an embedding of zeros."""
    with torch.no_grad():
        layers = [_layer_of(side) for side in sides]
        rows = torch.stack([layer.row for layer in layers]).double()  # (2, d)
        lengths = rows.norm(dim=1)
        if not bool((lengths > 0).all()):
            raise CannotScore("a sample has an embedding of zeros, so it has no similarity")
        width, device = rows.shape[1], rows.device
        directions = torch.eye(width, dtype=torch.float64, device=device)
        if width > DIRECTIONS and not all(layer.is_exact for layer in layers):
            # those of the two changes and random ones: sums over one sample stay exact, and each pair is unbiased
            drawn = torch.from_numpy(np.random.default_rng(0).standard_normal((width, DIRECTIONS - 2)))
            changes = [
                layer.row if layer.is_exact else layer.row - _replaced(layer.side, layer.module, layer.reference)[0]
                for layer in layers
            ]
            directions = torch.linalg.qr(torch.cat([torch.stack(changes, 1).double().cpu(), drawn], 1))[0]
            directions[:, 2:] *= math.sqrt((width - 2) / (DIRECTIONS - 2))
            directions = directions.to(device)
        parts = [layer.parts(directions) for layer in layers]
        patches = (parts[0] @ parts[1].T / lengths.prod()).cpu().numpy()
        unit = (rows / lengths[:, None]).float()
        generator, named, at_random = np.random.default_rng(0), 0.0, np.zeros(ORDERS)
        for k, layer in enumerate(layers):
            orders = [np.argsort(-patches.sum(1 - k), kind="stable")]
            orders += [generator.permutation(layer.places) for _ in range(ORDERS)]
            first, *others = _covered(layer, orders, unit[1 - k])
            named, at_random = named + first / 2, at_random + np.array(others) / 2
    interval = over_seeds((at_random - named).tolist())
    assert interval is not None  # at least three draws
    return Likeness(
        similarity=float(rows[0] @ rows[1] / lengths.prod()),
        patches=patches,
        shapes=(layers[0].shape, layers[1].shape),
        is_exact=all(layer.is_exact for layer in layers),
        gap=float(at_random.mean() - named),
        interval=interval,
    )


def _is_map(x: Tensor) -> bool:
    """Return whether a layer's output (n, …) has the channels before the places."""
    return x.shape[2] == x.shape[3] or x.shape[1] != x.shape[2]


def _rows(x: Tensor) -> Float[Tensor, "n p d"]:
    """Return a layer's output as rows of its places."""
    if x.dim() == 3:
        return x
    return x.flatten(2).transpose(1, 2) if _is_map(x) else x.flatten(1, 2)


def _count(side: Picture | Words, x: Tensor) -> int:
    """Return how many of the rows have a place: all, but for the first tokens of an image."""
    n = _rows(x).shape[1]
    return math.isqrt(n) ** 2 if x.dim() == 3 and isinstance(side, Picture) else n


def _replaced(side: Picture | Words, module: nn.Module, output: Tensor) -> Float[Tensor, "n d"]:
    """Return the rows if a layer has another output (n, …)."""
    is_pool = isinstance(module, POOLS)
    hook = (module.register_forward_pre_hook if is_pool else module.register_forward_hook)(lambda *_: output)
    try:
        return side.encode(side.x.expand(len(output), *[-1] * (side.x.dim() - 1)))
    finally:
        hook.remove()


def _outputs(side: Picture | Words, x: Tensor) -> tuple[Tensor, list[tuple[nn.Module, Tensor]]]:
    """Return the row of an input, and the layers that keep its places, with their outputs, in their order."""
    seen: list[tuple[nn.Module, Tensor]] = []

    def keep(module: nn.Module, given: Any, output: Any) -> None:
        output = given[0] if isinstance(module, POOLS) else output
        is_layer = isinstance(output, Tensor) and output.dim() in (3, 4) and len(output) == 1
        if is_layer and _rows(output).shape[1] - _count(side, output) <= PREFIX:
            seen.append((module, output))

    hooks = [module.register_forward_hook(keep) for module in side.layers.modules()]
    try:
        rows = side.encode(x)
        several = [one for one in seen if _count(side, one[1]) > 1] or seen
        return rows, [one for one in several if one[1].dim() == several[-1][1].dim()]  # no matrices of attention
    finally:
        for hook in hooks:
            hook.remove()


def _layer_of(side: Picture | Words) -> _Layer:
    """Return the last layer whose mean is the row; else the last feature map; else the last layer of tokens without
    whose patches the row loses enough. Raises CannotScore."""
    rows, seen = _outputs(side, side.x)
    blank = _outputs(side, side.x.mean((2, 3), keepdim=True).expand_as(side.x))[1] if side.x.dim() == 4 else []
    if not seen:
        raise CannotScore("no layer of this encoder keeps the places of an image, so its similarity cannot be split")
    best, most = None, -math.inf
    for k, (module, output) in reversed([*enumerate(seen)]):
        places = _rows(output)[:, -_count(side, output) :]
        mean = places.mean(1)
        is_exact = mean.shape == rows.shape and torch.allclose(mean, rows, atol=1e-5)
        reference = torch.zeros_like(output)
        if is_last := is_exact or output.dim() == 4 or isinstance(side, Words):
            lost = math.inf
        else:
            reference, without = blank[k][1], output.clone()
            without[:, -places.shape[1] :] = reference[:, -places.shape[1] :]
            lost = 1 - float(_replaced(side, module, without)[0] @ rows[0] / rows[0].square().sum())
        if lost > most:
            best, most = _Layer(side, module, output, reference, rows[0], is_exact), lost
        if is_last or lost >= ENOUGH:
            break
    assert best is not None
    if best.places == 1 and isinstance(side, Picture):
        raise CannotScore("the encoder's last feature map has only one patch, which holds all of the similarity")
    return best


def _covered(layer: _Layer, orders: Sequence[np.ndarray], other: Float[Tensor, " d"]) -> list[float]:
    """Return the mean similarity of a sample to another one, for each order, while the first half of its patches is
    covered in steps. `other`: the unit row of the other sample, unchanged."""
    half = max(1, layer.places // 2)
    counts = np.unique(np.linspace(1, half, min(half, COVERINGS)).round().astype(int))
    ranks = torch.from_numpy(np.stack([np.argsort(order) for order in orders]))  # (o, p)
    hidden = (ranks[:, None] < torch.from_numpy(counts)[:, None]).flatten(0, 1)  # (o · c, p)
    size = forward_batch_size(CHUNK, layer.side.x) if layer.side.x.dim() == 4 else CHUNK
    rows = torch.cat([layer.side.encode(layer.side.hide(part, layer.shape)) for part in hidden.split(size)])
    similar = nn.functional.normalize(rows.float(), dim=1) @ other
    return similar.view(len(orders), -1).mean(1).tolist()


def figure(
    images: Sequence[np.ndarray] | np.ndarray, maps: Sequence[Float[np.ndarray, "rows columns"]]
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


def nearest_images(method: Any, towers: Towers, text: str, most: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the row numbers (k) of the images most similar to a sentence, their cosines (k), and its unknown words; no
    rows if every word is unknown."""
    unknown = method.text_tower.unknown_words(text)
    if not method.text_tower.known_words(text):
        return np.array([], np.int64), np.array([]), unknown
    (usable, _), _ = towers.usable_sides()
    s = unit_rows(towers.rows.features[usable]) @ unit_rows(encode_texts(method, [text]))[0]
    order = np.argsort(-s, kind="stable")[:most]
    return usable[order], s[order].astype(np.float64), unknown


def nearest_to_picture(run: Run, split: str, picture: bytes, count: int) -> list[tuple[str, float]]:
    """Return the ids of the `count` images of a split whose h is most similar to the picture's, with their cosines.
    Raises BadSetting if it is not an image, ValueError without weights or data."""
    dataset = data_of(run, split)
    channels, height, width = dataset.images.shape[1:]
    form = (min(height, width), channels, dataset.form.resize if dataset.form else "crop")
    with scratch_folder() as folder:  # it is decoded in a separate process
        path = folder / "picture"
        path.write_bytes(picture)
        images = StreamedImages([str(path)], form)
        with contextlib.closing(images.pool):
            image = images[0]
        if images.failed:
            raise BadSetting("This file cannot be read as an image: {reason}", reason=images.failed[str(path)])
    model, rows = load_model(run, dataset), embed_run(run, split, "h")
    device = next(model.parameters()).device
    with torch.no_grad(), full_precision(device):
        h = model.features(to_float(torch.from_numpy(image[None]).to(device)))[0].float().cpu().numpy()
    cosines = rows.features @ h / (rows.lengths * max(float(np.linalg.norm(h)), 1e-12))
    return [(rows.ids[row], float(cosines[row])) for row in np.argsort(-cosines, kind="stable")[:count]]
