"""A difference between two scores, whether it is shown, and how it reads with its interval and what that rests on:
the one sentence of Compare, the report, the command, sweeps and the adviser. Torch-free."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from contrastive_core.base.messages import N_, Message, join, message

__all__ = ["FEW_SEEDS", "POINTS", "Contrast", "say_best"]

ALPHA = 0.05
LISTED = 4  # names that are listed; more are counted
FEW_SEEDS = N_("fewer than three seeds cannot show a difference")
POINTS = N_("points")


@dataclass(frozen=True)
class Contrast:
    """The score of `first` less that of `second`, as a share."""

    first: str
    second: str
    difference: float
    interval: tuple[float, float] | None  # None with fewer than three seeds of either
    basis: str = ""  # of the interval, such as "images and 3 seeds"
    p: float | None = None  # of a test on the same samples, corrected for their number; None: the interval decides
    unit: str = POINTS  # of 100 times the difference

    @property
    def sign(self) -> int:
        """1 or −1 where a difference is shown, else 0."""
        low, high = self.interval or (0.0, 0.0)
        return 0 if self.p is not None and self.p >= ALPHA else int(low > 0) - int(high < 0)

    @property
    def shown(self) -> str:
        """What is shown of `first`."""
        if self.interval is None:
            return N_("not repeated")
        return {1: N_("better"), -1: N_("worse"), 0: N_("no difference shown")}[self.sign]

    def of(self, first: str) -> "Contrast":
        """The same difference with that name as the first."""
        if first == self.first:
            return self
        interval = self.interval and (-self.interval[1], -self.interval[0])
        return replace(self, first=self.second, second=self.first, difference=-self.difference, interval=interval)

    @property
    def sentence(self) -> Message:
        """The difference with its interval and basis, the higher score first."""
        if self.difference < 0:
            return self.of(self.second).sentence
        values = {"first": self.first, "second": self.second, "unit": self.unit}
        values["difference"] = f"{100 * self.difference:.1f}"
        if self.interval is None:
            template = N_("{first} scored higher than {second} by {difference} {unit}, but {reason}.")
            return message(template, **values, reason=FEW_SEEDS)
        low, high = (f"{100 * end:.1f}".replace("-", "−") for end in self.interval)
        values |= {"basis": self.basis, "low": low, "high": high}
        if self.sign:
            template = N_(
                "{first} is better than {second} by {difference} {unit} (95 % CI over {basis}: {low} to {high})."
            )
        elif self.interval[0] > 0:  # an interval that excludes zero is no contradiction: the test decides too
            template = N_(
                "{first} scored higher than {second} by {difference} {unit} (95 % CI over {basis}: {low} to {high}), "
                "but that is not significant: the corrected p value is {p}."
            )
            values["p"] = f"{self.p:.2g}"
        else:
            template = N_(
                "No significant difference between {first} and {second}: {difference} {unit} (95 % CI over {basis}: "
                "{low} to {high})."
            )
        return message(template, **values)


def say_best(found: Sequence[Contrast]) -> Message:
    """What is shown of the highest score. Args: found: it against each other one, the next highest first."""
    level, beaten = ([one for one in found if (one.sign > 0) is is_beaten] for is_beaten in (False, True))
    said = [(level or beaten)[0].sentence]
    if rest := level[1:]:
        said.append(message("Nor does it differ significantly from {names}.", names=_listed(rest)))
    if rest := beaten if level else beaten[1:]:
        text = N_("{best} is significantly better than {names}.")
        said.append(message(text, best=found[0].first, names=_listed(rest)))
    return join(" ", said)


def _listed(found: Sequence[Contrast]) -> str:
    if len(found) > LISTED:
        return message("{number} others", number=len(found))
    *first, last = (one.second for one in found)
    return message("{names} and {last}", names=", ".join(first), last=last) if first else last
