"""A table of samples that is asked for, an embedding and a loss; its file and its marks. Torch-free."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.paths import data_home
from contrastive_core.records import recorded_rows
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.run import Run
from contrastive_core.records.sample_table import VERSION, SampleTable, path_of, read_table


@dataclass(frozen=True)
class SampleRequest:
    """Every row of an embedding, listed by one loss. `frozen`: the encoder that the lists of a run's images rest on;
    None for its own."""

    rows: EmbeddingRef
    loss: str
    frozen: FrozenEncoder | None = None

    @property
    def name(self) -> str:
        return self.rows.name

    @property
    def split(self) -> str:
        return self.rows.split

    @property
    def run(self) -> Run | None:
        """The run; None for loaded vectors. Raises ValueError when it does not exist."""
        return self.rows.run

    def path(self, what: str = "samples") -> Path:
        """Where the table is kept, or `views` or `snapshots` beside it. Raises ValueError for what is gone."""
        if run := self.run:
            frozen = self.frozen if what == "samples" else None
            return path_of(run, what, "z" if what == "views" else self.loss, self.split, frozen)
        name = f"{what}-{self.split}-{self.loss}-v{VERSION}.npz"
        place = self.rows.recorded
        folder = f"recording-{place.content}" if place else f"vectors-{self.rows.key}"
        return data_home() / "embeddings" / folder / name

    def table(self) -> SampleTable | None:
        """The table, if it has been made."""
        return read_table(self.path(), self.loss)

    @property
    def marked(self) -> Path:
        """The file of what was decided: the data set's; of loaded vectors and recordings their own."""
        if run := self.run:
            return decisions_path(run.config, self.split)
        return _marks_folder(self.rows) / "marks.jsonl"


def _marks_folder(rows: EmbeddingRef) -> Path:
    """The folder of what was decided on loaded vectors, or on a recording."""
    place = rows.recorded
    name = f"recording-{place.run.manifest.get('id')}" if place else f"vectors-{rows.key}"
    return data_home() / "marks" / name


def pair_decisions_path(rows: EmbeddingRef, what: str) -> Path:
    """The file of what was decided on pairs of two towers, for each list its own: the data set's, or the vectors'."""
    if run := rows.run:
        return decisions_path(run.config, f"{what}-{rows.split}")
    return _marks_folder(rows) / f"{what}.jsonl"


def request_of(name: str, split: str, loss: str, frozen: FrozenEncoder | None = None) -> SampleRequest:
    """By the name of a run, of a recording, or of loaded vectors; rows of the last two need not be of any split."""
    return SampleRequest(EmbeddingRef(name, "" if name.startswith(recorded_rows.PREFIX) else split), loss, frozen)


def decisions_path(config: Mapping[str, Any], split: str) -> Path:
    """The file of a split's decisions, by the data set that a run's settings name. A folder is
    known by where it lies, whatever size its images are brought to."""
    name = str(config.get("dataset"))
    kind, colon, path = name.partition(":")
    if colon:
        name = f"{kind}:{Path(path).expanduser().resolve()}"
    plain = "".join(c if c.isalnum() else "-" for c in name)[-40:].strip("-")
    key = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:12]}" if colon else plain
    return data_home() / "decisions" / key / f"{split}.jsonl"
