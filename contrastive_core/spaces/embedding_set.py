"""One embedding of one set of samples, for all pages and scores. Torch-free. Native files are `.npz` (exact, arrays
only) and `.parquet` (one row per sample, for other tools); `file_formats.py` opens vectors from other sources."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float32, Int64

from contrastive_core.base import storage
from contrastive_core.base.errors import UnusableEmbedding, explained
from contrastive_core.base.messages import N_, message, printable

MAX_WIDTH = 200_000  # a row longer than this is a table laid on its side
SHORT, LARGEST = 300, 1e15  # characters of a text of the provenance, and its numbers
BLOCK = 1 << 22  # numbers that are looked at together
ROWS = 20_000  # that are a part of a Parquet file
Provenance = dict[str, str | float | list[str] | None]  # where vectors come from: texts, numbers, lists of texts
TWICE = N_("{name} contains the id {id} {times} times. Samples are matched by id, so each id must be unique")


@dataclass(frozen=True, eq=False)
class EmbeddingSet:
    """Feature vectors (n, d) of n samples with their metadata. `labels` is -1 for a sample without a label, and None if
    no sample has one. `columns` holds further values per sample (factors, text), `views` the embeddings of v augmented
    views of m of the samples. `layer` is "h" (backbone), "z" (projection), or "loaded"."""

    features: Float32[np.ndarray, "n d"]
    labels: Int64[np.ndarray, " n"] | None = None
    ids: tuple[str, ...] = ()
    split: str = ""
    layer: str = "loaded"
    classes: tuple[str, ...] = ()
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    views: Float32[np.ndarray, "m v d"] | None = None
    provenance: Provenance = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not self.features.size:
            raise UnusableEmbedding("features must be (n, d), not {shape}", shape=self.features.shape)
        n, d = self.features.shape
        if d > MAX_WIDTH:
            raise UnusableEmbedding(
                "rows of {d} numbers; at most {max_width} are supported", d=f"{d:,}", max_width=f"{MAX_WIDTH:,}"
            )
        if not self.ids:
            object.__setattr__(self, "ids", tuple(map(str, range(n))))
        for name, part in {"labels": self.labels, "ids": self.ids, **self.columns}.items():
            if part is not None and len(part) != n:
                raise UnusableEmbedding("features has {n} rows, but {name} has {part}", n=n, part=len(part), name=name)
        if self.labels is not None and not (self.labels >= 0).any():
            object.__setattr__(self, "labels", None)

    def __len__(self) -> int:
        return self.features.shape[0]

    @property
    def width(self) -> int:
        return self.features.shape[1]

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over features, labels, ids, views and pairs of towers (towers.py): the key of every cache."""
        digest = hashlib.sha256(repr((self.features.shape, self.layer)).encode())
        for array in (self.features, self.labels, self.views):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data)
        digest.update("\0".join(self.ids).encode())
        if "tower" in self.columns and "pair" in self.columns:
            digest.update(repr([self.columns[name].tolist() for name in ("tower", "pair")]).encode())
        return digest.hexdigest()

    def _blocks(self) -> Iterator[np.ndarray]:
        """Yield the rows in blocks of BLOCK numbers, so a computation needs no second copy of all rows."""
        step = max(1, BLOCK // self.width)
        yield from (self.features[i : i + step] for i in range(0, len(self), step))

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row (n), at least 1e-12."""
        norms = [np.linalg.norm(part, axis=1) for part in self._blocks()]
        return np.maximum(np.concatenate(norms), 1e-12)

    @cached_property
    def problems(self) -> dict[str, np.ndarray]:
        """The row numbers without a defined cosine: `not_finite` and `zero`."""
        bad = np.concatenate([~np.isfinite(part).all(1) for part in self._blocks()])  # (n)
        zero = ~bad & ~np.concatenate([part.any(1) for part in self._blocks()])  # (n)
        return {"not_finite": np.flatnonzero(bad), "zero": np.flatnonzero(zero)}

    @cached_property
    def texts(self) -> np.ndarray | None:
        """The text of each row (n): the longest text column whose values mostly differ; None without one."""
        columns = [v for v in self.columns.values() if v.dtype.kind == "U" and 2 * len(np.unique(v)) > len(v)]
        return max(columns, key=lambda v: float(np.char.str_len(v).mean()), default=None)

    def class_name(self, label: int) -> str:
        """Return the name of a class, its number if it has no name, "" for a row without a label."""
        return "" if label < 0 else self.classes[label] if label < len(self.classes) else str(label)

    @property
    def n_labeled(self) -> int:
        return 0 if self.labels is None else int((self.labels >= 0).sum())

    @property
    def label_columns(self) -> dict[str, list[int | None] | list[str | None]]:
        """Return `label` and `class` of each row for a file, None for a row without a label; {} without labels."""
        if self.labels is None:
            return {}
        labels = self.labels.tolist()
        return {"label": [c if c >= 0 else None for c in labels], "class": [self.class_name(c) or None for c in labels]}

    def take(self, index: np.ndarray | Sequence[int]) -> EmbeddingSet:
        """Return the rows `index`, in that order, without the views."""
        index = np.asarray(index, None if len(index) else np.int64)
        return replace(
            self,
            features=self.features[index],
            labels=None if self.labels is None else self.labels[index],
            ids=tuple(map(self.ids.__getitem__, index.tolist())),
            columns={k: v[index] for k, v in self.columns.items()},
            views=None,
        )

    @property
    def usable(self) -> np.ndarray:
        """The numbers of the rows that are finite and not zero."""
        return np.setdiff1d(np.arange(len(self)), np.concatenate([*self.problems.values()]))

    @property
    def _meta(self) -> bytes:
        values = {"layer": self.layer, "classes": list(self.classes), "provenance": self.provenance}
        return json.dumps({"split": self.split, **values}).encode()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything as plain arrays, for an `.npz`; `from_arrays` is the inverse."""
        arrays = {"features": self.features, "ids": np.array(self.ids, dtype=np.str_)}
        arrays["meta"] = np.frombuffer(self._meta, np.uint8)
        arrays |= {k: v for k in ("labels", "views") if (v := getattr(self, k)) is not None}
        return arrays | {f"column:{k}": v for k, v in self.columns.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> EmbeddingSet:
        """Create an `EmbeddingSet` from the result of `arrays`. Raises UnusableEmbedding for anything else."""
        columns = {name[7:]: column for name, column in arrays.items() if name.startswith("column:")}
        labels, views = arrays.get("labels"), arrays.get("views")
        try:
            meta, features = json.loads(arrays["meta"].tobytes()), arrays["features"]
            ids, classes, about = tuple(arrays["ids"].tolist()), tuple(meta["classes"]), meta["provenance"]
            layer = meta["layer"] if "layer" in meta else meta["which"]  # as files of version 0.1 call it
            (n, d), kinds = features.shape, "fiu"
            are_right = {
                "features": features.dtype.kind in kinds,
                "labels": labels is None or (labels.shape == (n,) and labels.dtype.kind in "iu"),
                "views": views is None or (views.ndim == 3 and views.shape[2] == d and views.dtype.kind in kinds),
                "columns": all(one.ndim == 1 and one.dtype.kind in "fiubU" for one in columns.values()),
                "texts": all(isinstance(text, str) for text in (meta["split"], layer, *ids, *classes)),
                "provenance": isinstance(about, dict),
            }
            if wrong := [name for name, is_right in are_right.items() if not is_right]:
                raise ValueError(", ".join(wrong))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            why = explained(error)
            raise UnusableEmbedding(
                "the data stored with the vectors are damaged: {explained}", explained=why
            ) from None
        return cls(
            features=np.ascontiguousarray(features, np.float32),
            labels=None if labels is None else np.maximum(labels.astype(np.int64), -1),
            ids=ids,
            split=meta["split"],
            layer=layer,
            classes=classes,
            columns=columns,
            views=None if views is None else np.ascontiguousarray(views, np.float32),
            provenance=plain_provenance(about),
        )

    def save(self, path: str | Path) -> None:
        """Write `.npz` or `.parquet` atomically. Raises ValueError for another extension."""
        path = Path(path)
        if path.suffix not in (".npz", ".parquet"):
            text = N_("embeddings are written as .npz or .parquet, not {suffix}")
            raise ValueError(message(text, suffix=repr(path.suffix)))
        with storage.writing(path) as file:
            if path.suffix == ".npz":
                np.savez(file, **self.arrays())  # type: ignore[arg-type]
            else:
                self.write_parquet(file)

    def write_parquet(self, file: BinaryIO | io.BytesIO) -> None:
        """Write a Parquet file with one row per sample, in parts."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        flat = pa.array(self.features.reshape(-1))
        columns = {"id": pa.array(self.ids), "split": pa.array([self.split] * len(self))}
        columns |= {name: pa.array(values) for name, values in self.label_columns.items()}
        columns |= {k: pa.array(v) for k, v in self.columns.items() if k not in columns}
        columns["embedding"] = pa.FixedSizeListArray.from_arrays(flat, self.width)
        table = pa.table(columns)
        table = table.replace_schema_metadata({"contrastive_core": self._meta})
        pq.write_table(table, file, row_group_size=ROWS)


def check_unique(ids: Sequence[str], name: str, splits: Sequence[str] = ()) -> None:
    """Raise UnusableEmbedding if an id occurs twice, or twice in one of the `splits`. Args: name: of the file."""
    every = [*zip(splits or [""] * len(ids), ids, strict=True)]
    if len({*every}) < len(ids):
        (_, twice), times = Counter(every).most_common(1)[0]
        raise UnusableEmbedding(TWICE, name=name, id=repr(printable(twice, 80)), times=f"{times:,}")


def plain_provenance(values: dict[str, Any]) -> Provenance:
    """Return the provenance in a file, limited to numbers, short printable texts and lists of them."""

    def is_short(value: object) -> bool:
        return isinstance(value, str) and len(value) <= SHORT and value.isprintable()

    def is_plain(value: object) -> bool:
        if isinstance(value, list):
            return len(value) <= MAX_WIDTH and all(map(is_short, value))
        return value is None or is_short(value) or (isinstance(value, (int, float)) and abs(value) < LARGEST)

    return {key: value for key, value in values.items() if is_short(key) and is_plain(value)}
