"""Which layer of an encoder a parameter is of, and the learning rates that fall off towards the
images: decay^(L − l) for layer l of L, 1 for what stands behind the encoder (Bao et al. 2022, BEiT,
arXiv 2106.08254, after Clark et al. 2020, ELECTRA).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch import nn

__all__ = ["layer_ids", "learning_rate_scales"]

NUMBERED = re.compile(r"^(.*?\d+)(?:\.|$)")  # blocks.3 of blocks.3.attn.qkv, layer2 of layer2.0.conv1


def layer_ids(parameters: Iterable[tuple[str, nn.Parameter]]) -> list[int]:
    """Layer 0, 1, … of each named parameter of an encoder, in their order.

    A layer is what shares the first number in its name (a block of a transformer, a stage of a
    ResNet). What has no number (a patch embedding, a last norm) joins what stands before it, and so
    does what has no parameter of two or more dimensions (a batch norm).
    """
    named = [(_start(name), p) for name, p in parameters]
    with_weights = {start for start, p in named if p.ndim >= 2}
    ids: list[int] = []
    current, layer = "", 0
    for start, _ in named:
        if start and start != current and start in with_weights:
            layer += 1 if ids else 0
            current = start
        ids.append(layer)
    return ids


def learning_rate_scales(method: nn.Module, decay: float) -> dict[int, float]:
    """By the id of every trained parameter, the part of the learning rate that it takes."""
    named = list(method.get_submodule("encoder").named_parameters())
    ids = layer_ids([(n.removeprefix("body."), p) for n, p in named])
    depth = max(ids, default=-1) + 1
    scales = {id(p): 1.0 for p in method.parameters()}
    return scales | {id(p): decay ** (depth - i) for (_, p), i in zip(named, ids, strict=True)}


def _start(name: str) -> str:
    match = NUMBERED.match(name)
    return match.group(1) if match else ""
