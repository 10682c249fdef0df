"""CPC for images (van den Oord et al. 2018, arXiv 1807.03748, sec. 3.3): predict later rows of patches. An image is cut
into a grid of overlapping patches, each encoded to z; a GRU reads the rows from top to bottom and returns a context c;
W_k c predicts the patch k rows below, against all other patches of the batch."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs, fitting, knob
from contrastive_core.data.augmentations import augment
from contrastive_core.data.batch_loader import Batch
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, HeadSettings, Method, Rows
from contrastive_core.models.encoders import ProjectionHead
from contrastive_core.pairs.types import Pairs

LEAST_ROWS = 4
PATCHES = 7  # maximum per side, as in the paper
LEAST_SIDE = 16  # side of a patch in pixels, if possible: smaller ones show only texture
WITHOUT_COLORS: dict[str, Any] = dict.fromkeys("jitter gray blur solarize noise sobel cutout".split(), 0.0)


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("none", help=N_("Projection from a patch's h to z."), choices=("none", "linear"))
    steps: int = knob(3, 1, 6, N_("Number of rows to predict ahead."))
    context: int = knob(128, 8, 1024, N_("Width of the context."))


class CPC(Method):
    Settings = Settings
    loss_knobs_reason = N_("a bilinear critic has no temperature")

    def make_head(self, in_dim: int) -> ProjectionHead:
        s = self.settings
        return ProjectionHead(s.head, in_dim, s.dim)

    def build(self) -> None:
        s, d = self.settings, self.head.out_dim
        self.gru = nn.GRU(d, s.context, batch_first=True)
        self.predict = nn.ModuleList(nn.Linear(s.context, d, bias=False) for _ in range(self.ahead))

    @property
    def grid(self) -> tuple[int, int, int]:
        """The patch side in pixels, the stride, and the number of rows (equal to columns)."""
        return patch_grid(min(self.image_shape[1:]))

    @property
    def ahead(self) -> int:
        return min(self.settings.steps, self.grid[2] - 1)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.patches(batch, generator)  # (b, rows, cols, c, side, side)
        return (self(x.flatten(0, 2)).unflatten(0, x.shape[:3]),)  # z (b, rows, cols, d)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        b, height, cols, d = rows[0].shape
        sequence = rows[0].transpose(1, 2).reshape(b * cols, height, d)
        with torch.autocast(sequence.device.type, enabled=False):  # its sums over rows need more precision than bf16
            c, _ = self.gru(sequence.to(next(self.gru.parameters()).dtype))  # (b · cols, height, context)
        anchors, groups = [], []
        where = torch.arange(b * cols * height, device=sequence.device).view(b * cols, height)
        for k, w_k in enumerate(self.predict, start=1):
            anchors.append(w_k(c[:, : height - k]).reshape(-1, d))  # W_k c
            groups.append(where[:, k:].reshape(-1))  # the true patch, k rows below
        candidates = sequence.reshape(-1, d)  # (m, d)
        slots = torch.arange(len(candidates), device=sequence.device)  # one per candidate: an anchor has one positive
        made = pairs.from_labels(torch.cat(anchors), torch.cat(groups), candidates, slots)
        numbers = made.anchor_rows + len(slots)
        return dataclasses.replace(made, anchor_rows=numbers, candidate_rows=slots, group_size=1)

    def patches(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return overlapping patches (b, rows, cols, c, side, side) of one view, colors drawn by patch."""
        share, recipe = batch.global_rows, self.recipe.of_view(0)
        spatial = dataclasses.replace(recipe, **WITHOUT_COLORS)
        x = self.cut(augment(batch.images, spatial, generator, share))
        each = dataclasses.replace(recipe, crop=0.0, flip=0.0, rotation=0.0)
        pixels = (x * 255).round().to(torch.uint8).flatten(0, 2)
        share = share.times(x.shape[1] * x.shape[2])
        return augment(pixels, each, generator, share).unflatten(0, x.shape[:3])

    def cut(self, x: Tensor) -> Tensor:
        """Cut images (b, c, h, w) into patches (b, rows, cols, c, side, side)."""
        side, stride, rows = self.grid
        cut = x.unfold(2, side, stride).unfold(3, side, stride)  # (b, c, r, q, side, side)
        return cut[:, :, :rows, :rows].permute(0, 2, 3, 1, 4, 5)

    def features(self, images: Tensor) -> Tensor:
        """Return h, the mean of the encoder's features over all patches."""
        cut = self.cut(images)
        return self.encoder(cut.flatten(0, 2)).unflatten(0, cut.shape[:3]).mean((1, 2))

    def forward(self, patches: Tensor) -> Tensor:
        """Return z of patches in [0, 1], not of whole images."""
        return self.project(self.encoder(patches))

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        rows = patch_grid(min(facts.image_shape[1:]))[2]
        steps = max(1, min(3, rows - 2))
        return super().defaults(facts) | {
            "batch_size": fitting(64, N_("64: one image gives thousands of patches"), facts.n_train),
            "method_knobs": ({"steps": steps}, message("{steps} of {rows} rows ahead", steps=steps, rows=rows)),
        }

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Knobs = NO_KNOBS) -> str | None:
        rows = patch_grid(min(facts.image_shape[1:]))[2]
        if rows < LEAST_ROWS:
            size = min(facts.image_shape[1:])
            values = {"least_rows": LEAST_ROWS, "size": size, "rows": rows}
            return message(
                "CPC needs at least {least_rows} rows of patches; images of {size} pixels give {rows}. Use larger "
                "images, or a method that does not cut them, such as simclr",
                **values,
            )
        return None


def patch_grid(size: int) -> tuple[int, int, int]:
    """Return patch side, stride and rows for images of `size` pixels; small images get more overlap."""
    side = max(4, min(LEAST_SIDE, size // 2), 2 * (size // (PATCHES + 1)))
    stride = max(1, min(side // 2, (size - side) // (LEAST_ROWS - 1)))
    return side, stride, max(0, (size - side) // stride + 1)
