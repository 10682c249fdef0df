"""What a page shows of a run, made once by a process of its own: embeddings, scores, maps.

`make` does the work (`python -m contrastive_core present RUN`); the readers need no torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.embeddings.cache import cached
from contrastive_core.evaluation.evaluate import evaluate, read_evaluation
from contrastive_core.paths import data_home
from contrastive_core.runs import Run
from contrastive_core.storage import records

__all__ = ["is_ready", "make", "map_path", "read_map", "write_map"]

KINDS = ("pca", "umap")


def is_ready(run: Run, split: str = "test") -> bool:
    """Whether embedding, scores and the PCA map of the present weights are there."""
    if cached(run, split, "h") is None or read_evaluation(run) is None:
        return False
    return read_map(run, split, "h", "pca") is not None


def make(run: Run, split: str = "test", tell: Callable[[str], None] = lambda what: None) -> None:
    """Embed both splits, map the one asked for by PCA, score, then map by UMAP."""
    from contrastive_core.evaluation.embed import embed_run

    sets = {which: embed_run(run, split, which) for which in "hz"}
    for kind in KINDS:
        for which, rows in sets.items():
            if read_map(run, split, which, kind) is None:
                what = f"{kind.upper()} of {which}"
                tell(what)
                write_map(run, split, which, kind, rows, _share(tell, what))
        if kind == "pca" and read_evaluation(run) is None:
            evaluate(run, tell=tell)  # on the test split, whichever is shown


def read_map(run: Run, split: str, which: str, kind: str) -> dict[str, Any] | None:
    """`xy` (n, 2), `settings` and `quality` of a map, if it has been made."""
    try:
        found = records.read_npz(map_path(run, split, which, kind))
        meta = json.loads(found["meta"].tobytes())
        return {"xy": found["xy"].astype(np.float32), **meta}
    except (OSError, ValueError, KeyError):
        return None


def map_path(run: Run, split: str, which: str, kind: str) -> Path:
    """Where a map of the present weights is kept."""
    shipped = run.path / "maps" / f"{split}-{which}-{kind}.npz"
    if run.shipped and shipped.exists():
        return shipped
    name = f"{split}-{which}-{kind}-{run.weights_hash()[:16]}.npz"
    home = data_home() / "embeddings" / run.name if run.shipped else run.path / "maps"
    return home / name


def write_map(
    run: Run,
    split: str,
    which: str,
    kind: str,
    rows: Any,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Make a map ("pca" or "umap") of an embedding with its default settings, and keep it."""
    from contrastive_core.evaluation.projection import map_of

    made = map_of(rows, kind, progress=progress)
    meta = json.dumps({"settings": made.settings, "quality": made.quality}).encode()
    path = map_path(run, split, which, kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    records.write_npz(path, xy=made.xy, meta=np.frombuffer(meta, np.uint8))


def _share(tell: Callable[[str], None], what: str) -> Callable[[float], None]:
    return lambda share: tell(f"{what} {100 * share:.0f} %")
