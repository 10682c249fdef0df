"""What a run keeps of its model: states to go on from, and weights to use. safetensors and JSON.

A state is a pair of files and a manifest with their hashes, written last; the last two are kept,
so a damaged or half-written one leaves the one before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from contrastive_core.errors import Damaged
from contrastive_core.runs import Run
from contrastive_core.storage import atomic, records

__all__ = ["has_begun", "load_state", "load_weights", "save_state", "save_weights"]

KEPT = 2
HASH = "sha256"  # key of the weights' own hash in their header


def save_state(run: Run, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
    """Keep all that a resume needs. Raises OSError on a full disk; the states before stay."""
    folder = run.path / "state"
    number = max([_number(p) for p in folder.glob("*.json")], default=0) + 1
    data = save(_contiguous(tensors))
    atomic.write_bytes(folder / f"{number:06d}.safetensors", data)
    manifest = {"sha256": hashlib.sha256(data).hexdigest(), "plain": plain}
    records.write_json(folder / f"{number:06d}.json", manifest)
    for path in sorted(folder.glob("*.json"))[:-KEPT]:
        path.unlink(missing_ok=True)
        path.with_suffix(".safetensors").unlink(missing_ok=True)


def has_begun(run: Run) -> bool:
    """Whether there is anything to go on from, whole or damaged; without, a run starts anew."""
    return run.weights.exists() or any((run.path / "state").glob("*.json"))


def load_state(run: Run) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The newest state that is whole. Where newer ones are damaged, `plain["damaged"]` names their
    files. Raises ValueError when there is none."""
    damaged: list[str] = []
    for path in sorted((run.path / "state").glob("*.json"), reverse=True):
        file = path.with_suffix(".safetensors")
        try:
            manifest = records.read_json(path)
            data = file.read_bytes()
            if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
                raise Damaged(f"{file} is damaged")
            return load(data), {**manifest["plain"], "damaged": damaged}
        except (Damaged, OSError, KeyError, TypeError, SafetensorError) as error:
            named = file if str(file) in str(error) else path
            damaged.append(str(named.relative_to(run.path)))
    what = f"its states are damaged ({', '.join(damaged)})" if damaged else "it has no saved state"
    raise ValueError(f"{run.name} cannot go on: {what}; train it again from the start")


def save_weights(run: Run, state: Mapping[str, Tensor], half: bool = False) -> None:
    """Write `weights.safetensors`, in float16 if `half`, with a hash of its content inside."""
    tensors = {
        k: v.half() if half and v.is_floating_point() else v for k, v in _contiguous(state).items()
    }
    atomic.write_bytes(run.weights, save(tensors, {HASH: _digest(tensors)}))


def load_weights(run: Run) -> dict[str, Tensor]:
    """Weights in float32. Raises Damaged, or ValueError when the run has none yet."""
    path = run.weights
    try:
        data = path.read_bytes()
        found, wanted = load(data), _metadata(data).get(HASH)
    except FileNotFoundError:
        raise ValueError(f"{run.name} has no weights yet") from None
    except (SafetensorError, ValueError) as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    if wanted is not None and _digest(found) != wanted:
        raise Damaged(f"{path} is damaged: its content is not what was written")
    return {k: v.float() if v.dtype == torch.float16 else v for k, v in found.items()}


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _metadata(data: bytes) -> dict[str, str]:
    """What a safetensors header holds beside the tensors."""
    size = int.from_bytes(data[:8], "little")
    return dict(json.loads(data[8 : 8 + size]).get("__metadata__") or {})


def _contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Own, dense memory for each: safetensors refuses shared storage and strides."""
    return {
        k: v.detach().cpu().clone(memory_format=torch.contiguous_format) for k, v in tensors.items()
    }


def _number(path: Path) -> int:
    return int(path.stem) if path.stem.isdigit() else 0
