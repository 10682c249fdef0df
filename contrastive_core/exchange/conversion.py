"""Conversion of a checkpoint's tensors to safetensors, in the child process of `base/sandbox.py`.
Only `torch.load(weights_only=True)` is used. It gets a few classes that only hold settings, each replaced by an inert
shell that runs no code; any other class ends the import."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from contrastive_core.base.errors import Refused
from contrastive_core.base.messages import N_
from contrastive_core.base.safe_files import expands, open_regular, thousands

LIMIT = 4 << 30  # maximum bytes of the file, unpacked, and of its tensors
MAX_TENSORS = 100_000
STATES = ("state_dict", "model", "model_state_dict", "net", "teacher", "student", "encoder")
SETTINGS = (  # classes that hold settings in Lightning's, solo-learn's and SupContrast's files
    *"argparse.Namespace typing.Any collections.defaultdict".split(),
    *(f"builtins.{kind}" for kind in "dict list str int float bool".split()),
    *(f"omegaconf.{kind}" for kind in "dictconfig.DictConfig listconfig.ListConfig".split()),
    *(f"omegaconf.base.{kind}" for kind in "ContainerMetadata Metadata".split()),
    *(f"omegaconf.nodes.{kind}Node" for kind in "Any String Integer Float Boolean Enum Bytes Path".split()),
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning_fabric.utilities.data.AttributeDict",
)


class _Shell(dict[Any, Any]):
    """Inert replacement for a class of settings: accepts any arguments and does nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> _Shell:
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()


def convert(source: str | Path, out: str | Path) -> list[str]:
    """Write the tensors of `source` to `out`; return its top-level names. Raises: Refused, NotRegular, OSError."""
    with open_regular(source) as file:
        start = file.read(9)
        is_safetensors = start[8:] == b"{"
        if not is_safetensors and not start.startswith((b"PK", b"\x80")):  # a zip file; an old pickle
            raise Refused(N_("it is neither a safetensors file nor one that torch.save wrote"))
        file.seek(0)
        value = load_file(source) if is_safetensors else _torch(file)
        stored = os.fstat(file.fileno()).st_size
    save_file({k: v.contiguous().clone() for k, v in _state(value, stored).items()}, out)
    return [str(k)[:80] for k in list(value)[:50]] if isinstance(value, dict) else []


def _torch(file: BinaryIO) -> Any:
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
        _check_size(total, os.fstat(file.fileno()).st_size)
    file.seek(0)
    with torch.serialization.safe_globals([(_Shell, name) for name in SETTINGS]):
        return torch.load(file, map_location="cpu", weights_only=True)


def _check_size(total: int, stored: int) -> None:
    if total > LIMIT:
        raise Refused(
            "it would unpack to {total} bytes; at most {limit} are read", **thousands(total=total, limit=LIMIT)
        )
    if expands(total, stored):
        raise Refused("it would unpack from {stored} to {total} bytes", **thousands(total=total, stored=stored))


def _state(value: Any, stored: int) -> dict[str, Tensor]:
    """Return the dense tensors of a checkpoint by name. Raises: Refused if there are none or too many."""
    state: dict[str, Tensor] = {}
    if isinstance(value, dict):
        nested = [value[k] for k in STATES if isinstance(value.get(k), dict)]
        state = next((tensors for part in (*nested, value) if (tensors := _tensors(part))), {})
    if not state:
        raise Refused(N_("it contains no named tensors; a checkpoint or a state dict is needed"))
    if len(state) > MAX_TENSORS:
        counts = thousands(state=len(state), max_tensors=MAX_TENSORS)
        raise Refused("it contains {state} tensors; at most {max_tensors} are read", **counts)
    # a stored number may be expanded to a large tensor
    _check_size(sum(t.numel() * t.element_size() for t in state.values()), stored)
    return {k: t for k, t in state.items() if t.layout is torch.strided}


def _tensors(value: dict[Any, Any]) -> dict[str, Tensor]:
    tensors = {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, torch.Tensor)}
    return {k: v.detach() for k, v in tensors.items() if not v.is_quantized}
