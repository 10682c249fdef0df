"""What settings of a training lead to, where that is known beforehand: weights of zero, more dimensions than images."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.messages import N_, message
from contrastive_core.records.cards import LossTerm

ONE_IMAGE = N_("batch_size must be at least 2: one image has nothing to compare with")


@dataclass(frozen=True)
class Weighed:
    """A loss's terms and the values of its settings, and the rows that it sees; 0 where a number is not known."""

    terms: Iterable[Sequence[Any]] = ()  # as LossTerm
    knobs: Mapping[str, object] = field(default_factory=dict)
    matrix: str = ""  # as on the loss's card
    dimensions: int = 0
    batch: int = 0

    def absent(self) -> list[LossTerm]:
        """The terms that these settings leave out."""
        return [LossTerm(*term) for term in self.terms if self.knobs.get(term[0]) == term[1]]

    def refusal(self) -> str:
        """Why nothing would be learned; "" if something is."""
        knobs = {knob for knob, _, _ in self.terms}
        if len(knobs) < 2 or {term.knob for term in self.absent()} != knobs:
            return ""
        return message(
            "{knobs} are all 0, so there is nothing to learn: set one above 0", knobs=", ".join(sorted(knobs))
        )

    def notes(self, defaults: tuple[int, int]) -> list[str]:
        """A sentence for each thing to know. `defaults`: dimensions and batch that need no note."""
        notes: list[str] = [
            message("loss.{knob} is {value}: {missing}.", knob=t.knob, value=f"{t.absent_at:g}", missing=t.missing)
            for t in self.absent()
        ]
        is_matrix = self.matrix in ("correlation", "covariance")
        if is_matrix and self.dimensions >= self.batch > 0 and (self.dimensions, self.batch) != defaults:
            values = {"d": self.dimensions, "n": self.batch, "rank": self.batch - 1}
            correlation = message(
                "z has {d} dimensions and a batch {n} images: the correlation matrix has rank {rank} at most, so the "
                "terms off its diagonal cannot reach 0.",
                **values,
            )
            covariance = message(
                "z has {d} dimensions and a batch {n} images: the covariance matrix has rank {rank} at most, so some "
                "dimensions vary together.",
                **values,
            )
            notes.append(correlation if self.matrix == "correlation" else covariance)
        return notes
