"""A table of samples that is asked for, an embedding and a loss; its file and its marks. Torch-free."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.base.paths import data_home
from contrastive_core.runs.run import Run
from contrastive_core.samples.sample_table import VERSION, SampleTable, path_of, read_table
from contrastive_core.spaces.space import TOWERS, Space


@dataclass(frozen=True)
class SampleRequest:
    """Every row of an embedding, listed by one loss. `by`: the run on whose encoder the lists of a run's images
    rest; "" for its own. `pairs`: pairs of two towers in place of rows, which no loss changes."""

    space: Space
    loss: str
    by: str = ""
    pairs: bool = False

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def split(self) -> str:
        return self.space.split

    @property
    def run(self) -> Run | None:
        """The run; None for loaded vectors. Raises ValueError when it does not exist."""
        return self.space.run

    def path(self) -> Path:
        """Where the table is kept. Raises ValueError for what is gone."""
        what = "pairs" if self.pairs else "samples"
        if run := self.run:
            return path_of(run, what, self.loss, self.split, self.by)
        name = f"{what}-{self.split}-{self.loss}-v{VERSION}.npz"
        place = self.space.recorded
        folder = f"recording-{place.content}" if place else f"vectors-{self.space.key}"
        return data_home() / "embeddings" / folder / name

    def table(self) -> SampleTable | None:
        """The table, if it has been made."""
        return read_table(self.path(), self.loss)

    @property
    def embedding(self) -> Space:
        """The rows that its neighbors are among, of pairs those of both towers. Raises ValueError as `of_name`."""
        if self.pairs:
            return Space.of_name(self.name, self.split, TOWERS if self.run else "z")
        return Space.of_name(self.name, self.split)

    @property
    def marked(self) -> Path:
        """The file of what was decided on labels."""
        return self.decisions()

    def decisions(self, name: str = "") -> Path:
        """The file of what was decided: the data set's; of loaded vectors and recordings their own. `name`: of a list
        with its own file."""
        if run := self.run:
            return decisions_path(run.config, "-".join(filter(None, (name, self.split))))
        place = self.space.recorded
        folder = f"recording-{place.run.manifest.get('id')}" if place else f"vectors-{self.space.key}"
        return data_home() / "marks" / folder / f"{name or 'marks'}.jsonl"


def request_of(name: str, split: str, loss: str = "", by: str = "", pairs: bool = False) -> SampleRequest:
    """By the name of a run, of a recording, or of loaded vectors; rows of the last two need not be of any split."""
    space = Space(name, "" if Space(name).is_recording else split)
    return SampleRequest(space, loss, by, pairs)


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
