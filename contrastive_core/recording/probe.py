"""Embedding a fixed probe set in the middle of somebody's training, and leaving no trace in it. Whatever is drawn
meanwhile (a `DataLoader` draws from torch's generator when it is iterated), the generators of torch, NumPy and Python
are put back; modules that were training are in evaluation mode inside, and in their own mode afterwards."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import RandomSampler

from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import N_, message
from contrastive_core.recording.step_copies import ProbeCopy, to_numpy

MOST = 2000  # samples of the probe set, as many as of our own runs
LABELS, IDS = ("labels", "label", "y"), ("ids", "id", "index", "idx")


def embed_probe(step: int, encode: Callable[[Any], Any], loader: Iterable[Any], model: nn.Module | None) -> ProbeCopy:
    """h and z of at most 2,000 samples. Raises ValueError for what gives no rows, or rows that cannot be followed."""
    if isinstance(encode, DistributedDataParallel):
        encode = encode.module  # on one process alone it would wait for the others
    owner = encode if isinstance(encode, nn.Module) else getattr(encode, "__self__", None)
    modules = [m for m in (model, owner) if isinstance(m, nn.Module)]
    h, z, labels, ids = [], [], [], []
    with _without_trace(modules), torch.no_grad():
        for batch in loader:
            inputs, label, name = parts_of(batch)
            rows = encode(inputs)
            first, second = rows if isinstance(rows, tuple) else (rows, rows)
            h.append(_rows(first))
            z.append(_rows(second))
            labels.append(label)
            ids.append(name)
            if sum(map(len, z)) >= MOST:
                break
    if not z:
        raise ValueError(N_("the probe's loader gives no batches"))
    names, known = _together(ids, np.str_), _together(labels, np.int64)
    if names is None and isinstance(getattr(loader, "sampler", None), RandomSampler):
        raise ValueError(
            N_(
                "the probe's loader shuffles and returns no ids, so its samples cannot be followed; set "
                "shuffle=False or return ids"
            )
        )
    n = min(MOST, sum(map(len, z)))
    names = np.arange(n).astype(np.str_) if names is None else names[:n]
    known = np.full(n, -1) if known is None else np.maximum(known[:n], -1)
    return ProbeCopy(step, np.concatenate(h)[:n], np.concatenate(z)[:n], known, names)


def parts_of(batch: Any) -> tuple[Any, Any, Any]:
    """Return input, labels and ids of a batch: a tensor, (x, labels, ids), or a mapping."""
    if isinstance(batch, Mapping):
        label, name = (next((batch[k] for k in keys if k in batch), None) for keys in (LABELS, IDS))
        return batch, label, name
    if isinstance(batch, (tuple, list)) and batch:
        more = [*batch[1:3], None, None]
        return batch[0], more[0], more[1]
    return batch, None, None


def _rows(z: Any) -> np.ndarray:
    if not isinstance(z, Tensor) or z.ndim != 2:
        shape = message(" of shape {shape}", shape=tuple(z.shape)) if isinstance(z, Tensor) else ""
        values = {"name": type(z).__name__, "shape": shape}
        raise UnusableEmbedding("encode must give rows (n, d), or (h, z); got a {name}{shape}", **values)
    return z.detach().float().cpu().numpy()


def _together(parts: list[Any], dtype: Any) -> np.ndarray | None:
    """One array of what the batches brought along; None where one brought nothing usable."""
    if any(part is None for part in parts):
        return None
    arrays = [np.asarray(to_numpy(part)) for part in parts]
    if any(a.ndim != 1 or (dtype is np.int64 and a.dtype.kind not in "iub") for a in arrays):
        return None
    return np.concatenate([a.astype(dtype) for a in arrays])


@contextmanager
def _without_trace(modules: list[nn.Module]) -> Iterator[None]:
    """Modules in evaluation mode while inside; their modes and the global generators are put back."""
    before = {part: part.training for module in modules for part in module.modules()}
    python, array = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()):
        try:
            for module in modules:
                module.eval()
            yield
        finally:
            random.setstate(python)
            np.random.set_state(array)
            for part, training in before.items():
                part.training = training
