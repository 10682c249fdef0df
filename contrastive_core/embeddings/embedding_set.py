"""One embedding of one set of samples, as every page and every score reads it. Torch-free.

Native files are `.npz` (exact, arrays only) and `.parquet` (one row per sample, for other tools);
`readers.py` opens vectors that come from elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64

from contrastive_core.errors import UnusableEmbedding

__all__ = ["EmbeddingSet"]

MAX_WIDTH = 200_000  # a row longer than this is a table laid on its side


@dataclass(frozen=True, eq=False)
class EmbeddingSet:
    """Feature vectors of n samples and what is known of them.

    `labels` is -1 where a sample has none, and None when no sample has one. `columns` holds what
    else is known per sample (factors, text), `views` the embeddings of v augmented views of some
    m of the samples. `which` is "h" (backbone), "z" (projection), or "loaded".
    """

    features: Float32[np.ndarray, "n d"]
    labels: Int64[np.ndarray, " n"] | None = None
    ids: tuple[str, ...] = ()
    split: str = ""
    which: str = "loaded"
    classes: tuple[str, ...] = ()
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    views: Float32[np.ndarray, "m v d"] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not self.features.size:
            raise UnusableEmbedding(f"features must be (n, d), not {self.features.shape}")
        n, d = self.features.shape
        if d > MAX_WIDTH:
            raise UnusableEmbedding(f"rows of {d:,} numbers; at most {MAX_WIDTH:,} are supported")
        if not self.ids:
            object.__setattr__(self, "ids", tuple(str(i) for i in range(n)))
        parts = {"labels": self.labels, "ids": self.ids, **self.columns}
        for name, part in parts.items():
            if part is not None and len(part) != n:
                raise UnusableEmbedding(f"{n} rows of features but {len(part)} of {name}")
        if self.labels is not None and not (self.labels >= 0).any():
            object.__setattr__(self, "labels", None)

    def __len__(self) -> int:
        return self.features.shape[0]

    @property
    def width(self) -> int:
        return self.features.shape[1]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over features, labels, ids and views: the key of every cache."""
        digest = hashlib.sha256(repr((self.features.shape, self.which)).encode())
        digest.update(np.ascontiguousarray(self.features).data)
        if self.labels is not None:
            digest.update(np.ascontiguousarray(self.labels).data)
        if self.views is not None:
            digest.update(np.ascontiguousarray(self.views).data)
        digest.update("\0".join(self.ids).encode())
        return digest.hexdigest()

    @cached_property
    def problems(self) -> dict[str, np.ndarray]:
        """Row numbers that no cosine can be taken of: `not_finite` and `zero`."""
        bad = ~np.isfinite(self.features).all(1)  # (n)
        zero = ~bad & ~self.features.any(1)  # (n)
        return {"not_finite": np.flatnonzero(bad), "zero": np.flatnonzero(zero)}

    def class_name(self, label: int) -> str:
        return self.classes[label] if 0 <= label < len(self.classes) else str(label)

    def take(self, index: np.ndarray | Sequence[int]) -> EmbeddingSet:
        """The rows `index`, in that order, without the views."""
        index = np.asarray(index)
        return replace(
            self,
            features=self.features[index],
            labels=None if self.labels is None else self.labels[index],
            ids=tuple(self.ids[i] for i in index),
            columns={k: v[index] for k, v in self.columns.items()},
            views=None,
        )

    def without_problems(self) -> EmbeddingSet:
        """The rows that are finite and not zero."""
        return self.take(
            np.setdiff1d(np.arange(len(self)), np.concatenate([*self.problems.values()]))
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything as plain arrays, for an `.npz`; `from_arrays` is the inverse."""
        meta = {
            "split": self.split,
            "which": self.which,
            "classes": list(self.classes),
            "provenance": self.provenance,
        }
        found = {"features": self.features, "ids": np.array(self.ids, dtype=np.str_)}
        found["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        if self.labels is not None:
            found["labels"] = self.labels
        if self.views is not None:
            found["views"] = self.views
        return found | {f"column:{k}": v for k, v in self.columns.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> EmbeddingSet:
        """An `EmbeddingSet` from what `arrays` gave."""
        meta = json.loads(arrays["meta"].tobytes())
        return cls(
            features=arrays["features"],
            labels=arrays.get("labels"),
            ids=tuple(arrays["ids"].tolist()),
            split=meta["split"],
            which=meta["which"],
            classes=tuple(meta["classes"]),
            columns={k[7:]: v for k, v in arrays.items() if k.startswith("column:")},
            views=arrays.get("views"),
            provenance=meta["provenance"],
        )

    def save(self, path: str | Path) -> None:
        """Write `.npz` or `.parquet`, whole or not at all. Raises ValueError for another ending."""
        path = Path(path)
        temporary = path.with_name(f".{path.name}.part")
        if path.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez(file, **self.arrays())  # type: ignore[arg-type]
        elif path.suffix == ".parquet":
            self._write_parquet(temporary)
        else:
            raise ValueError(f"embeddings are written as .npz or .parquet, not {path.suffix!r}")
        temporary.replace(path)

    def _write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        flat = pa.array(self.features.reshape(-1))
        columns = {"id": pa.array(self.ids), "split": pa.array([self.split] * len(self))}
        if self.labels is not None:
            columns["label"] = pa.array(self.labels)
            columns["class"] = pa.array([self.class_name(int(c)) for c in self.labels])
        columns |= {k: pa.array(v) for k, v in self.columns.items() if k not in columns}
        columns["embedding"] = pa.FixedSizeListArray.from_arrays(flat, self.width)
        table = pa.table(columns)
        meta = {"which": self.which, "classes": list(self.classes), "provenance": self.provenance}
        pq.write_table(table.replace_schema_metadata({"contrastive_core": json.dumps(meta)}), path)
