"""Seven methods as lightly's documentation writes them: its transform, its heads, its loss, its training loop.

Backbone and heads have the widths of ours, so that both sides train networks of one size. The method's own settings are
those of lightly's examples (https://docs.lightly.ai/self-supervised-learning/examples/models.html): m rises from 0.996
to 1 for BYOL, SimCLR has τ 0.5, NNCLR also 4,096 older rows, the losses of Barlow Twins and VICReg have their default
weights. MoCo is that of the tutorial on CIFAR-10 (tutorials/package/tutorial_moco_memory_bank.html): m 0.99, τ 0.1, one
direction, keys shuffled; its queue is as long as ours, because 4,096 keys are more than `digits` has images.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from lightly.loss import BarlowTwinsLoss, NegativeCosineSimilarity, NTXentLoss, VICRegLoss
from lightly.models import ResNetGenerator
from lightly.models.modules import (
    BarlowTwinsProjectionHead,
    BYOLPredictionHead,
    BYOLProjectionHead,
    MoCoProjectionHead,
    NNCLRPredictionHead,
    NNCLRProjectionHead,
    NNMemoryBankModule,
    SimCLRProjectionHead,
    SimSiamPredictionHead,
    SimSiamProjectionHead,
)
from lightly.models.modules.heads import VICRegProjectionHead
from lightly.models.utils import batch_shuffle, batch_unshuffle, deactivate_requires_grad, update_momentum
from lightly.transforms.simclr_transform import SimCLRTransform
from lightly.transforms.utils import IMAGENET_NORMALIZE
from lightly.utils.scheduler import cosine_schedule
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Normalize

from contrastive_core.data.recipe import Recipe

PARTS = 1_000_000  # of a training, for lightly's schedule in steps


class Peer(nn.Module):
    """A method: `loss` of two views, the share of the training that is done being known."""

    def __init__(self, backbone: nn.Module, settings: Any) -> None:
        super().__init__()
        self.backbone = backbone
        self.build(int(backbone.out_dim), settings)  # type: ignore[arg-type]

    def build(self, width: int, s: Any) -> None:
        raise NotImplementedError

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        raise NotImplementedError


class PublishedResNet(nn.Module):
    """ResNet-18 as cifar10_benchmark.py has it: no ReLU after the stem, PyTorch's own initial weights."""

    out_dim = 512

    def __init__(self) -> None:
        super().__init__()
        parts = list(ResNetGenerator("resnet-18").children())[:-1]
        self.body = nn.Sequential(Normalize(**IMAGENET_NORMALIZE), *parts, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images.contiguous(memory_format=torch.channels_last))


class PeerSimCLR(Peer):
    def build(self, width: int, s: Any) -> None:
        self.projection_head = SimCLRProjectionHead(width, s.hidden, s.dim)
        self.criterion = NTXentLoss()

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        return self.criterion(*(self.projection_head(self.backbone(x)) for x in (x0, x1)))


class PeerMomentum(Peer):
    """A method with a slow copy of backbone and head."""

    def make_copy(self) -> None:
        self.backbone_momentum = copy.deepcopy(self.backbone)
        self.projection_head_momentum = copy.deepcopy(self.projection_head)
        deactivate_requires_grad(self.backbone_momentum)
        deactivate_requires_grad(self.projection_head_momentum)

    def follow(self, m: float) -> None:
        update_momentum(self.backbone, self.backbone_momentum, m=m)
        update_momentum(self.projection_head, self.projection_head_momentum, m=m)

    def _target(self, x: Tensor) -> Tensor:
        return self.projection_head_momentum(self.backbone_momentum(x)).detach()


class PeerMoCo(PeerMomentum):
    m, temperature = 0.99, 0.1

    def build(self, width: int, s: Any) -> None:
        self.projection_head = MoCoProjectionHead(width, s.hidden, s.dim)
        self.make_copy()
        self.criterion = NTXentLoss(self.temperature, memory_bank_size=(s.queue, s.dim))

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        self.follow(self.m)
        q = self.projection_head(self.backbone(x0))
        shuffled, order = batch_shuffle(x1)
        return self.criterion(q, batch_unshuffle(self._target(shuffled), order))


class PeerBYOL(PeerMomentum):
    def build(self, width: int, s: Any) -> None:
        self.projection_head = BYOLProjectionHead(width, s.hidden, s.dim)
        self.prediction_head = BYOLPredictionHead(s.dim, s.predictor_hidden, s.dim)
        self.make_copy()
        self.criterion = NegativeCosineSimilarity()

    def _online(self, x: Tensor) -> Tensor:
        return self.prediction_head(self.projection_head(self.backbone(x)))

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        self.follow(cosine_schedule(round(share * PARTS), PARTS, 0.996, 1))
        p0, z0 = self._online(x0), self._target(x0)
        p1, z1 = self._online(x1), self._target(x1)
        return 0.5 * (self.criterion(p0, z1) + self.criterion(p1, z0))


class PeerSimSiam(Peer):
    def build(self, width: int, s: Any) -> None:
        self.projection_head = SimSiamProjectionHead(width, s.hidden, s.dim)
        self.prediction_head = SimSiamPredictionHead(s.dim, s.predictor_hidden, s.dim)
        self.criterion = NegativeCosineSimilarity()

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        (z0, p0), (z1, p1) = ((z.detach(), self.prediction_head(z)) for z in map(self._project, (x0, x1)))
        return 0.5 * (self.criterion(z0, p1) + self.criterion(z1, p0))

    def _project(self, x: Tensor) -> Tensor:
        return self.projection_head(self.backbone(x))


class PeerBarlowTwins(Peer):
    def build(self, width: int, s: Any) -> None:
        self.projection_head = BarlowTwinsProjectionHead(width, s.hidden, s.dim)
        self.criterion: nn.Module = BarlowTwinsLoss()

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        return self.criterion(*(self.projection_head(self.backbone(x)) for x in (x0, x1)))


class PeerVICReg(PeerBarlowTwins):
    def build(self, width: int, s: Any) -> None:
        self.projection_head = VICRegProjectionHead(width, s.hidden, s.dim, s.depth)
        self.criterion = VICRegLoss()


class PeerNNCLR(Peer):
    def build(self, width: int, s: Any) -> None:
        self.projection_head = NNCLRProjectionHead(width, s.hidden, s.dim)
        self.prediction_head = NNCLRPredictionHead(s.dim, s.predictor_hidden, s.dim)
        self.memory_bank = NNMemoryBankModule(size=(4096, s.dim))
        self.criterion = NTXentLoss()

    def loss(self, x0: Tensor, x1: Tensor, share: float) -> Tensor:
        (z0, p0), (z1, p1) = ((z.detach(), self.prediction_head(z)) for z in map(self._project, (x0, x1)))
        z0, z1 = self.memory_bank(z0, update=False), self.memory_bank(z1, update=True)
        return 0.5 * (self.criterion(z0, p1) + self.criterion(z1, p0))

    def _project(self, x: Tensor) -> Tensor:
        return self.projection_head(self.backbone(x))


PEERS: dict[str, type[Peer]] = {
    "byol": PeerBYOL,
    "simsiam": PeerSimSiam,
    "barlow_twins": PeerBarlowTwins,
    "vicreg": PeerVICReg,
    "nnclr": PeerNNCLR,
    "simclr": PeerSimCLR,
    "moco_v2": PeerMoCo,
}


def peer_batches(images: Any, recipe: Recipe, batch_size: int, workers: int = 0) -> Iterator[Sequence[Tensor]]:
    """Two views (b, c, h, w) of each batch, epoch after epoch, of images (n, c, h, w) uint8 held as pictures."""
    pictures = [Image.fromarray(image[0] if len(image) == 1 else image.transpose(1, 2, 0)) for image in images]
    views = _Views(pictures, _transform(recipe, images.shape[-1]))
    loader = DataLoader(views, batch_size=batch_size, shuffle=True, drop_last=True, num_workers=workers)
    while True:
        yield from loader


def _transform(recipe: Recipe, side: int) -> SimCLRTransform:
    """The same augmentations with the same strengths; the encoder normalizes."""
    return SimCLRTransform(
        input_size=side,
        cj_prob=recipe.jitter,
        cj_bright=recipe.brightness,
        cj_contrast=recipe.contrast,
        cj_sat=recipe.saturation,
        cj_hue=recipe.hue,
        min_scale=recipe.crop_low,
        random_gray_scale=recipe.gray,
        gaussian_blur=recipe.blur,
        hf_prob=recipe.flip,
        rr_prob=recipe.rotation,
        rr_degrees=recipe.rotation_degrees,
        normalize=None,
    )


class _Views(Dataset[Any]):
    def __init__(self, pictures: Sequence[Image.Image], transform: SimCLRTransform) -> None:
        self.pictures, self.transform = pictures, transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, i: int) -> list[Tensor]:
        return [torch.as_tensor(view) for view in self.transform(self.pictures[i])]
