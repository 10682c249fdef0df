"""Tables that other programs open: one writer, whose cells and headers no spreadsheet runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contrastive_core.storage.atomic import writing

__all__ = ["safe_cell", "write_table"]


def write_table(out: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as `.parquet` or `.csv`, whole or not at all. Raises OSError."""
    import pandas

    is_csv = out.suffix == ".csv"
    frame = pandas.DataFrame({safe_cell(k) if is_csv else k: v for k, v in columns.items()})
    with writing(out, shared=True) as file:
        if is_csv:
            for name in frame:
                if frame[name].dtype.kind not in "biuf":  # numbers are no formulas
                    frame[name] = [safe_cell(v) for v in frame[name]]
            file.write(frame.to_csv(index=False).encode())
        else:
            frame.to_parquet(file, index=False)


def safe_cell(value: Any) -> Any:
    """Text that a spreadsheet will not run as a formula."""
    text = str(value)
    return (
        f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _number(text) else text
    )


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
