"""How commands answer: text or one JSON document, and files that are checked beforehand."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

__all__ = ["out_path", "say"]


def say(args: Namespace, record: dict[str, Any], text: str) -> None:
    """Print `record` as JSON if that was asked for, else `text`."""
    print(json.dumps(record, indent=1, default=str) if args.json else text)


def out_path(path: str, *endings: str) -> Path:
    """A file to write, checked before any work is done for it. Raises ValueError."""
    out = Path(path)
    if out.suffix not in endings:
        raise ValueError(f"--out must end in {' or '.join(endings)}; got {path!r}")
    if not out.resolve().parent.is_dir():
        raise ValueError(f"there is no folder {out.resolve().parent} to write {out.name} into")
    return out
