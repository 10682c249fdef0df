"""Why a run ended, and what to try: one sentence each."""

import errno
import math

import torch

from contrastive_core.messages import N_, message, sentence
from contrastive_core.training import gradient_cache
from contrastive_core.training.setup import TrainSetup


def diverged(step: int, loss: float, norm: float, lr: float) -> str:
    """The sentence for a loss or a gradient that is not finite at, or just before, `step`."""
    what = message("the loss is {loss}", loss=loss)
    if math.isfinite(loss):
        what = message("the gradient norm is {norm}", norm=norm)
    values = {"what": what, "step": step, "lr": f"{lr / 3:.2g}"}
    return message(
        "{what} at step {step}; the last good state is kept. Try a lower learning rate (--set lr={lr}), clipped "
        "gradients (--set clip=1), or a higher temperature",
        **values,
    )


def reason_of(error: Exception, setup: TrainSetup) -> str:
    """Why training ended, in a sentence."""
    if isinstance(error, torch.OutOfMemoryError):
        size, tip = setup.config.batch_size or 0, N_("not even two fit")
        if setup.world.size > 1:  # a trial would wait for processes that have ended
            tip = message("try half of it: --set batch_size={half}", half=max(2, size // 2))
        elif fits := _fitting_batch_size(setup):
            tip = _tip(setup, fits)
        values = {"device": setup.device, "size": size, "tip": tip}
        return message("{device} has too little memory for batch_size {size}; {tip}", **values)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return message(
            "the disk is full ({filename}); free some space and resume", filename=error.filename or "run folder"
        )
    return sentence(error)


def _tip(setup: TrainSetup, fits: int) -> str:
    """What to try where `fits` images fit into memory."""
    if setup.config.micro_batch:
        return message("try --micro-batch {fits}", fits=fits)
    if gradient_cache.misfit(setup.method):
        return message("a batch of {fits} fits: --set batch_size={fits}", fits=fits)
    return message(
        "a batch of {fits} fits: --set batch_size={fits}, or keep yours with --micro-batch {fits}", fits=fits
    )


def _fitting_batch_size(setup: TrainSetup) -> int:
    """The largest halving of the batch size whose step fits into memory; 0 if none does."""
    size = (setup.config.micro_batch or setup.config.batch_size or 0) // 2
    while size >= 2:
        torch.cuda.empty_cache()
        try:
            batch = setup.loader.batch(setup.loader.epoch(0)[0][:size])
            with torch.autocast(setup.device.type, torch.bfloat16, enabled=bool(setup.config.amp)):
                pairs = setup.method.pairs(batch, setup.generator)
            setup.loss(pairs).value.backward()
            return size
        except torch.OutOfMemoryError:
            size //= 2
    return 0
