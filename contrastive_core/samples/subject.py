"""What the Samples page looks at: a split of a run, or vectors that were loaded, by one loss.

Named by plain values, so that an address can hold it and another process can make its table
(`python -m contrastive_core samples NAME --split SPLIT --loss LOSS`). Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from contrastive_core import runs
from contrastive_core.embeddings import ref
from contrastive_core.jobs import process
from contrastive_core.paths import data_home
from contrastive_core.runs import Run
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.table import VERSION, SampleTable, path_of, read_table

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """`name` is a run's, or `vectors:KEY`, whose rows need not be of any split."""

    name: str
    split: str
    loss: str

    @property
    def run(self) -> Run | None:
        """The run; None for loaded vectors. Raises ValueError when it does not exist."""
        return None if self.is_loaded else runs.load(self.name)

    @property
    def is_loaded(self) -> bool:
        return self.name.startswith(ref.PREFIX)

    def path(self, what: str = "samples") -> Path:
        """Where the table is kept, or `views` or `snapshots` beside it."""
        if run := self.run:
            return path_of(run, what, "z" if what == "views" else self.loss, self.split)
        key = ref.of_vectors(self.name.removeprefix(ref.PREFIX)).key
        name = f"{what}-{self.split}-{self.loss}-v{VERSION}.npz"
        return data_home() / "embeddings" / f"vectors-{key}" / name

    def table(self) -> SampleTable | None:
        """The table, if it has been made."""
        return read_table(self.path(), self.loss)

    @property
    def marked(self) -> Run | Path:
        """Whose marks these are: the run's, or a folder."""
        if run := self.run:
            return sample_annotations.of_split(run, self.split)
        return data_home() / "marks" / self.name.replace(ref.PREFIX, "vectors-")

    # --- the process that makes the table ---

    @property
    def task(self) -> str:
        return f"{self.name.replace(':', '-')}.{self.path().stem}"

    def start(self) -> None:
        """Have the table made by a process of its own, unless one is at it."""
        if process.pid_of(self.task) is None:
            given = ["--loss", self.loss, "--split", self.split]
            process.spawn(self.task, ["samples", self.name, *given])

    def progress(self) -> str | None:
        """What that process is doing; None when there is none."""
        if process.pid_of(self.task) is None:
            return None
        return process.log_of(self.task, 1) or "starting"

    def failed(self) -> str | None:
        """Why there is no table although its process has ended; None where none was started."""
        started = (process.folder() / f"{self.task}.log").exists()
        if process.pid_of(self.task) is not None or not started or self.path().exists():
            return None
        said = process.log_of(self.task, 200)
        last = said.splitlines()[-1] if said else ""
        if last.startswith("error: ") and "asked to stop" not in last:
            return last.removeprefix("error: ")
        return f"It broke off: {last}" if "Traceback (" in said else "It was stopped."

    def stop(self) -> None:
        """End that process; nothing half-made is left."""
        process.stop(self.task)
