"""Why a run ended, and what to try: one sentence each."""

from __future__ import annotations

import errno
import math

import torch

from contrastive_core.device import autocast
from contrastive_core.training.setup import Prepared
from contrastive_core.training.state import TrainPosition

__all__ = ["diverged", "reason_of"]


def diverged(place: TrainPosition, loss: float, norm: float, lr: float) -> str:
    what = f"the loss is {loss}" if not math.isfinite(loss) else f"the gradient norm is {norm}"
    return (
        f"{what} at step {place.step + 1}; the last good state is kept. Try a lower learning rate "
        f"(--set lr={lr / 3:.2g}), clipped gradients (--set clip=1), or a higher temperature"
    )


def reason_of(error: Exception, p: Prepared) -> str:
    if isinstance(error, torch.OutOfMemoryError):
        fits = _fitting(p)
        tip = f"a batch of {fits} fits: --set batch_size={fits}" if fits else "not even two fit"
        return f"{p.device} has too little memory for batch_size {p.config.batch_size}; {tip}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error.filename or 'run folder'}); free some space and resume"
    return str(error)


def _fitting(p: Prepared) -> int:
    """The largest halving of the batch size whose step fits into memory; 0 if none does."""
    size = (p.config.batch_size or 0) // 2
    while size >= 2:
        torch.cuda.empty_cache()
        try:
            batch = p.batch(p.plan(0)[0][:size])
            with autocast(p.device, bool(p.config.amp)):
                pairs = p.method.pairs(batch, p.generator)
            p.loss(pairs).value.backward()
            return size
        except torch.OutOfMemoryError:
            size //= 2
    return 0
