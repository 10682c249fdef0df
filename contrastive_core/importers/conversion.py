"""One checkpoint's tensors as safetensors: runs in the child that `storage/sandbox.py` starts.

`torch.load(weights_only=True)` and nothing else. A few classes that only hold settings are named to
it and become an inert shell that runs no code of theirs; any other class ends the import.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from contrastive_core.errors import Refused
from contrastive_core.messages import N_, message
from contrastive_core.storage.regular_files import open_regular

__all__ = ["LIMIT", "convert"]

LIMIT = 4 << 30  # bytes of the file, of what it unpacks to, and of its tensors
MAX_TENSORS = 100_000
STATES = ("state_dict", "model", "model_state_dict", "net", "teacher", "student", "encoder")
SETTINGS = (  # classes that hold settings in Lightning's, solo-learn's and SupContrast's files
    "argparse.Namespace",
    "omegaconf.dictconfig.DictConfig",
    "omegaconf.listconfig.ListConfig",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    *(
        f"omegaconf.nodes.{kind}Node"
        for kind in ("Any", "String", "Integer", "Float", "Boolean", "Enum", "Bytes", N_("Path"))
    ),
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning_fabric.utilities.data.AttributeDict",
    "typing.Any",
    "builtins.dict",
    "builtins.list",
    "builtins.str",
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "collections.defaultdict",
)


class _Shell(dict[Any, Any]):
    """Stands for a class of settings: takes anything, does nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> _Shell:
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()


def convert(source: str | Path, out: str | Path) -> list[str]:
    """Write the tensors of `source` to `out`; return the names at the file's top level.

    Raises: Refused, NotRegular, OSError; whatever torch raises for a damaged file.
    """
    with open_regular(source) as file:
        start = file.read(9)
        is_safetensors = start[8:] == b"{"
        if not is_safetensors and not start.startswith((b"PK", b"\x80")):  # a zip; a pickle of old
            raise Refused(N_("it is neither a safetensors file nor one that torch.save wrote"))
        file.seek(0)
        value = load_file(source) if is_safetensors else _torch(file)
    save_file({k: v.contiguous().clone() for k, v in _state(value).items()}, out)
    return [str(k)[:80] for k in list(value)[:50]] if isinstance(value, dict) else []


def _torch(file: BinaryIO) -> Any:
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
        if total > LIMIT:
            raise Refused(
                message(
                    "it would unpack to {total} bytes; at most {limit} are read", total=f"{total:,}", limit=f"{LIMIT:,}"
                )
            )
    file.seek(0)
    shells: list[Any] = [(_Shell, name) for name in SETTINGS]
    with torch.serialization.safe_globals(shells):
        return torch.load(file, map_location="cpu", weights_only=True)


def _state(value: Any) -> dict[str, Tensor]:
    """Return the tensors by name, without sparse ones."""
    if isinstance(value, dict):
        nested = [value[k] for k in STATES if isinstance(value.get(k), dict)]
        value = next((v for v in nested if _tensors(v)), value)
    state = _tensors(value) if isinstance(value, dict) else {}
    if not state:
        raise Refused(N_("it holds no tensors under names; a checkpoint or a state dict is needed"))
    if len(state) > MAX_TENSORS:
        raise Refused(
            message(
                "it holds {state} tensors; at most {max_tensors} are read",
                state=f"{len(state):,}",
                max_tensors=f"{MAX_TENSORS:,}",
            )
        )
    total = sum(t.numel() * t.element_size() for t in state.values())
    if total > LIMIT:
        raise Refused(
            message("its tensors have {total} bytes; at most {limit} are read", total=f"{total:,}", limit=f"{LIMIT:,}")
        )
    return {k: t for k, t in state.items() if t.layout is torch.strided}


def _tensors(value: dict[Any, Any]) -> dict[str, Tensor]:
    return {
        k: v.detach()
        for k, v in value.items()
        if isinstance(k, str) and isinstance(v, torch.Tensor) and not v.is_quantized
    }
