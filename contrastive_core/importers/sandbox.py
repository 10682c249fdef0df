"""Opens one checkpoint in a process of its own and writes its tensors as safetensors.

    python -m contrastive_core.foreign._child SOURCE OUT

`torch.load(weights_only=True)` and nothing else. A few classes that only hold settings are named to
it and become an inert shell that runs no code of theirs; any other class ends the import. Memory
and time are capped by the operating system.
"""

from __future__ import annotations

import contextlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from contrastive_core.errors import Refused

__all__ = ["LIMIT", "SECONDS"]

LIMIT = 4 << 30  # bytes of the file, of what it unpacks to, and of its tensors
SECONDS = 300
MOST = 100_000  # tensors
STATES = ("state_dict", "model", "model_state_dict", "net", "teacher", "student", "encoder")
SETTINGS = (  # classes that hold settings in Lightning's, solo-learn's and SupContrast's files
    "argparse.Namespace",
    "omegaconf.dictconfig.DictConfig",
    "omegaconf.listconfig.ListConfig",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    *(
        f"omegaconf.nodes.{kind}Node"
        for kind in ("Any", "String", "Integer", "Float", "Boolean", "Enum", "Bytes", "Path")
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


def main(source: Path, out: Path) -> dict[str, Any]:
    """Write the tensors of `source` to `out`; returns what else is worth knowing of it."""
    value = _safetensors(source) if _is_safetensors(source) else _torch(source)
    state, plain = _state(value)
    from safetensors.torch import save_file

    save_file({k: v.contiguous().clone() for k, v in state.items()}, out)
    return plain


def _torch(source: Path) -> Any:
    import torch

    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
        if total > LIMIT:
            raise Refused(f"it would unpack to {total:,} bytes; at most {LIMIT:,} are read")
    shells: list[Any] = [(_Shell, name) for name in SETTINGS]
    with torch.serialization.safe_globals(shells):
        return torch.load(source, map_location="cpu", weights_only=True)


def _is_safetensors(source: Path) -> bool:
    with source.open("rb") as file:
        return file.read(9)[8:] == b"{"


def _safetensors(source: Path) -> Any:
    from safetensors.torch import load_file

    return load_file(source)


def _state(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors by name, and plain values beside them."""
    import torch

    plain: dict[str, Any] = {"top": []}
    if isinstance(value, dict):
        plain["top"] = [str(k)[:80] for k in list(value)[:50]]
        for key in ("epoch", "arch"):
            if isinstance(value.get(key), (int, str)):
                plain[key] = value[key]
        nested = [value[k] for k in STATES if isinstance(value.get(k), dict)]
        value = next((v for v in nested if _tensors(v)), value)
    state = _tensors(value) if isinstance(value, dict) else {}
    if not state:
        raise Refused("it holds no tensors under names; a checkpoint or a state dict is needed")
    if len(state) > MOST:
        raise Refused(f"it holds {len(state):,} tensors; at most {MOST:,} are read")
    total = sum(t.numel() * t.element_size() for t in state.values())
    if total > LIMIT:
        raise Refused(f"its tensors have {total:,} bytes; at most {LIMIT:,} are read")
    plain["skipped"] = [k for k, t in state.items() if t.layout is not torch.strided]
    return {k: t for k, t in state.items() if k not in plain["skipped"]}, plain


def _tensors(value: dict[Any, Any]) -> dict[str, Any]:
    import torch

    return {
        k: v.detach()
        for k, v in value.items()
        if isinstance(k, str) and isinstance(v, torch.Tensor) and not v.is_quantized
    }


def _cap() -> None:
    """No more memory than torch has mapped by now plus three times the limit; no long work."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    with contextlib.suppress(OSError, ValueError):
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        cap = mapped + 3 * LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * LIMIT, 2 * LIMIT))


if __name__ == "__main__":
    import torch  # noqa: F401 - before the cap, which counts from what is mapped now

    _cap()
    try:
        print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]))))
    except Refused as error:
        sys.exit(f"refused: {error}")
    except MemoryError:
        sys.exit("refused: it needs more memory than an import may take")
    except Exception as error:
        text = " ".join(str(error).split())
        sys.exit(f"refused: {type(error).__name__}: {text}")
