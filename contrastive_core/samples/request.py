"""A table of samples that is asked for: an embedding and a loss; its file, its task, its marks.

Named by plain values, so that an address can hold it and another process can make its table
(`python -m contrastive_core samples NAME --split SPLIT --loss LOSS`). Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contrastive_core.embeddings import kept_vectors, recorded
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.jobs.task import Task
from contrastive_core.paths import data_home
from contrastive_core.runs import Run
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.table import VERSION, SampleTable, path_of, read_table

__all__ = ["SampleRequest", "request_of"]


@dataclass(frozen=True)
class SampleRequest:
    """Every row of an embedding, listed by one loss."""

    rows: EmbeddingRef
    loss: str

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
        """Where the table is kept, or `views` or `snapshots` beside it."""
        if run := self.run:
            return path_of(run, what, "z" if what == "views" else self.loss, self.split)
        name = f"{what}-{self.split}-{self.loss}-v{VERSION}.npz"
        place = self.rows.recorded
        folder = f"recording-{place.content}" if place else f"vectors-{self.rows.key}"
        return data_home() / "embeddings" / folder / name

    def table(self) -> SampleTable | None:
        """The table, if it has been made."""
        return read_table(self.path(), self.loss)

    @property
    def marked(self) -> Path:
        """The file of what was decided: the data set's, whichever run is looked at; of loaded
        vectors and recordings their own."""
        if run := self.run:
            return sample_annotations.of_data(run.config, self.split)
        if place := self.rows.recorded:
            name = f"recording-{place.run.manifest.get('id')}"
        else:
            name = self.name.replace(kept_vectors.PREFIX, "vectors-")
        return data_home() / "marks" / name / "marks.jsonl"

    @property
    def task(self) -> Task:
        """The task that makes the table."""
        key = f"{self.name.replace(':', '-').replace('@', '-')}.{self.path().stem}"
        split = ("--split", self.split) if self.split else ()
        arguments = ("samples", self.name, "--loss", self.loss, *split)
        return Task(key, arguments, self.path())


def request_of(name: str, split: str, loss: str) -> SampleRequest:
    """By the name of a run, of a recording, or of loaded vectors; rows of the last two need not be
    of any split."""
    if name.startswith(recorded.PREFIX):
        split = ""
    return SampleRequest(EmbeddingRef(name, split), loss)
