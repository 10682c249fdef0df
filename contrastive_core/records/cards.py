"""Cards of the registered losses and methods: titles, sources and the texts that their pages show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from contrastive_core.messages import N_, message


class Kernel(TypedDict, total=False):
    """How the browser computes a loss while a knob is dragged: its softmax or hinge kernel."""

    family: str  # "softmax" or "hinge"
    knob: str | None  # the one that is dragged
    temperature: float
    denominator: str  # "all" or "own_positive"
    aggregate: str  # of positives: "out", "in" or "sum"
    scale: str  # "none" or "tau_over_base"
    base: float | None
    sign: int  # of the scores
    margin: float
    form: str  # "pair" or "triplet"
    squared: bool
    mining: str
    average: str


@dataclass(frozen=True)
class LossCard:
    """A loss's title, source and formula, and the facts that decide where it can be used."""

    title: str
    year: int
    paper: str  # URL
    formula: str  # LaTeX of L_i
    summary: str  # two sentences
    family: str = "softmax"  # or "hinge", "other"
    score: str = "dot"  # or "distance", "squared_distance"
    by_label: bool = False  # the paper pairs rows of a class, not views of an image


USES = (N_("negatives"), N_("momentum encoder"), N_("memory of older rows"), N_("large batch"), N_("predictor"))


@dataclass(frozen=True)
class MethodCard:
    """A method's title and sources, its diagram, and the facts that its defaults start from."""

    title: str
    year: int
    paper: str  # URL
    idea: str  # two sentences
    compared: str  # which rows are compared with which
    flow: tuple[tuple[str, ...], ...]  # lanes of boxes
    measured_by_paper: str
    differences: str  # between the paper, its published code and this implementation
    paper_recipe: str
    default_loss: str
    updates: tuple[tuple[str, str, str], ...] = ()  # memory that changes after a step
    loss_knobs: Mapping[str, object] = field(default_factory=dict)
    needs_labels: bool = False
    batch: str = "shuffled"  # a kind of batch sampler
    least_batch: int = 2  # images, for data sets smaller than the usual batch
    uses: tuple[str, ...] = ()  # of USES
    builds_on: tuple[tuple[str, str], ...] = ()  # an older method, and what was taken from it


def fitting(size: int, reason: str, n_train: int, least: int = 2) -> tuple[int, str]:
    """`size` images for this reason; of a set of `n_train` that is too small for it a quarter, but `least`."""
    if size <= n_train // 4:
        return size, reason
    fits = max(least, n_train // 4)
    return fits, message(
        "{fits}: a quarter of the {n_train} training images, instead of {size}", fits=fits, n_train=n_train, size=size
    )
