"""An encoder whose kernels are launched as two CUDA graphs, one for the forward and one for the backward pass, so a
step waits less for the host. The kernels, and therefore the losses, stay the same."""

import torch
from torch import Tensor, nn

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_
from contrastive_core.ops.collectives import World
from contrastive_core.runs.train_config import TrainConfig

NEEDS = N_(
    "capture needs a CUDA GPU and a single process, and does not work with compile, micro_batch or freeze; turn it off"
)


def capture(encoder: nn.Module, config: TrainConfig, device: torch.device, world: World) -> None:
    """Make the encoder capture its graphs at the first batch. Raises BadSetting for incompatible settings."""
    if device.type != "cuda" or world.size > 1 or config.compile or config.micro_batch or config.freeze:
        raise BadSetting(NEEDS)
    encoder.forward = CapturedForward(encoder, bool(config.amp))  # type: ignore[assignment]


class CapturedForward:
    """The forward pass of an encoder as a captured graph. A graph has only one buffer for its activations. The plain
    forward pass is used for other batch sizes than the first, in evaluation, and before the previous backward pass has
    ended."""

    def __init__(self, encoder: nn.Module, amp: bool) -> None:
        self.encoder, self.amp, self.plain = encoder, amp, encoder.forward
        self.graphs, self.shape = self.plain, torch.Size()  # none yet
        self.awaits_gradient = False

    def __call__(self, images: Tensor) -> Tensor:
        if self.awaits_gradient or not (self.encoder.training and torch.is_grad_enabled()):
            return self.plain(images)
        if not self.shape:
            self._capture(images)
        if images.shape != self.shape:
            return self.plain(images)
        h: Tensor = self.graphs(images)
        self.awaits_gradient = True
        h.register_hook(self._on_gradient)  # type: ignore[no-untyped-call]
        return h.clone()  # the next replay writes over h

    def _capture(self, images: Tensor) -> None:
        buffers = [(buffer, buffer.clone()) for buffer in self.encoder.buffers()]
        self.encoder.forward = self.plain  # type: ignore[assignment]
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.amp, cache_enabled=False):
            torch.cuda.make_graphed_callables(self.encoder, (images.detach().clone(),))
        self.graphs, self.shape = self.encoder.forward, images.shape
        self.encoder.forward = self  # type: ignore[assignment]
        for buffer, before in buffers:  # batch norms have counted the passes that warm up
            buffer.copy_(before)

    def _on_gradient(self, gradient: Tensor) -> None:
        self.awaits_gradient = False
