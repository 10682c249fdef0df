"""Cards of the registered losses and methods: titles, sources and the texts on their pages."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from contrastive_core.base.messages import N_, message
from contrastive_core.base.storage import ROOT

PACKAGE = ROOT / "contrastive_core"


class Kernel(TypedDict, total=False):
    """The parameters with which the browser computes a loss during a drag. With ℓ = sign · s/τ and G = Σ_N e^ℓ:

    - softmax: mean over p of log(e^ℓ_p + G) − ℓ_p, modified by its keys below;
    - hinge: pairs or triplets;
    - sigmoid: Σ over positives of log(1 + e^−(ℓ + bias)) plus Σ over negatives of log(1 + e^(ℓ + bias));
    - robust: mean over p of ((density_weight · (e^ℓ_p + G))^q − e^(q ℓ_p)) / q."""

    family: str  # "softmax", "hinge", "sigmoid" or "robust"
    knob: str | None  # the setting that can be dragged
    temperature: float
    sign: int  # sign of the scores
    # softmax
    denominator: str  # "all" or "own_positive"
    aggregate: str  # of positives: "out", "in" or "sum"
    scale: str  # "none" or "tau_over_base"
    base: float | None
    negative_margin: float | None  # a negative with s_k > positive_share max_p s_p + negative_margin is left out;
    positive_share: float | None  # None: 0 and 1; both None: all stay
    positive: str  # "in" or "out" of its denominator; out: mean over p of log G − c_p ℓ_p, undefined without a negative
    weighting: str  # c_p: "none" is 1; "von_mises" is 2 − e^(s_p/sigma) / mean over all positive pairs of e^(s/sigma)
    sigma: float
    negatives: str  # "plain", or "hard": G = K max((Σ_k ω_k e^ℓ_k − tau_plus e^ℓ_p) / (1 − tau_plus), e^(−1/τ))
    beta: float  # ω = softmax over negatives of beta · ℓ; K = |N|
    tau_plus: float
    # sigmoid
    bias: float
    # robust
    q: float
    density_weight: float  # the paper's λ
    # hinge
    margin: float
    form: str  # "pair" or "triplet"
    squared: bool
    mining: str
    average: str


class LossTerm(NamedTuple):
    """A weighted term of a loss: the setting of its weight, the value that disables it, and the effect of that."""

    knob: str
    absent_at: float
    missing: str


@dataclass(frozen=True)
class LossCard:
    """A loss's title, source and formula, and the facts that decide where it can be used."""

    title: str
    year: int
    paper: str  # URL
    formula: str  # LaTeX of L_i
    summary: str  # two sentences
    family: str = "softmax"  # or "hinge", "sigmoid", "robust", "other"
    by_label: bool = False  # the paper pairs rows of a class, not views of an image
    matrix: str = ""  # matrix to display: "correlation", "covariance" or "gaussian" (projections)
    per_sample: str = "whole"  # part of the loss with a value per sample: "whole", a "share" or "none"
    terms: tuple[LossTerm, ...] = ()  # weighted terms; the one that prevents collapse comes first


KnobEntry = dict[str, Any]  # the catalog's entry of a setting: the fields of `Knob`
# Of a loss: the fields of `LossCard`, `score`, `knobs` by name, `kernel` (a `Kernel` or None), `across` (whether it can
# compare two towers), and `values` of settings if some were chosen.
LossEntry = dict[str, Any]
# Of a method: the fields of `MethodCard`, `knobs`, and by data set `defaults` (each with value and why) and `problems`.
MethodEntry = dict[str, Any]


class Catalog(TypedDict):
    """The app's data about all registered losses, methods and metrics."""

    methods: dict[str, MethodEntry]
    losses: dict[str, LossEntry]
    metrics: dict[str, Any]
    recipe: dict[str, KnobEntry]
    encoders: list[str]


USES = (N_("negatives"), N_("momentum encoder"), N_("memory of older rows"), N_("large batch"), N_("predictor"))


@dataclass(frozen=True)
class Published:
    """The settings of a method's paper for one kind of images."""

    source: str
    optimizer: str
    lr: float  # for a batch of `per` images
    per: int
    weight_decay: float
    batch_size: int
    epochs: int
    schedule: str = "cosine"
    warmup: float = 0.0  # epochs
    method_knobs: Mapping[str, object] = field(default_factory=dict)
    loss_knobs: Mapping[str, object] = field(default_factory=dict)
    views: Mapping[str, object] = field(default_factory=dict)  # augmentations that differ from those of `Recipe`


@dataclass(frozen=True)
class MethodCard:
    """A method's title, sources, diagram, and the published settings behind its defaults."""

    title: str
    year: int
    paper: str  # URL
    idea: str  # two sentences
    compared: str  # which rows are compared with which
    flow: tuple[tuple[str, ...], ...]  # rows of boxes of the diagram
    measured_by_paper: str
    differences: str  # between the paper, its published code and this implementation
    paper_recipe: str
    default_loss: str
    updates: tuple[tuple[str, str, str], ...] = ()  # memory that changes after a step
    loss_knobs: Mapping[str, object] = field(default_factory=dict)
    needs_labels: bool = False
    needs_captions: bool = False
    batch: str = "shuffled"  # a kind of batch sampler
    least_batch: int = 2  # images, for data sets smaller than the usual batch
    uses: tuple[str, ...] = ()  # of USES
    builds_on: tuple[tuple[str, str], ...] = ()  # an older method, and the part reused from it
    published: Mapping[str, Published] = field(default_factory=dict)  # by the names of the recipes


def entry_of(module: str, kind: str) -> str:
    """Return the name of the loss or method that is defined in a module; "" for a base class or another module."""
    package, _, name = module.rpartition(".")
    return name if package == f"contrastive_core.{kind}" and not name.startswith("_") else ""


def read_card(kind: str, name: str) -> dict[str, Any]:
    """Read the card NAME.toml of a loss or method as plain values. `kind` is "losses" or "methods"."""
    return tomllib.loads((PACKAGE / kind / f"{name}.toml").read_text("utf-8"))


def read_loss_card(name: str) -> LossCard:
    """Read the card of a loss."""
    card = read_card("losses", name)
    terms = tuple(LossTerm(*term) for term in card.get("terms", ()))
    return LossCard(**card | {"formula": card["formula"].replace("\n", " "), "terms": terms})


def read_method_card(name: str) -> MethodCard:
    """Read the card of a method. Its published settings include those that it shares with other methods."""
    card, shared = read_card("methods", name), read_card("methods", "_published")
    lists = {key: tuple(map(tuple, card.get(key, ()))) for key in ("flow", "updates", "builds_on")}
    published = {}
    for kind, own in card.pop("published", {}).items():
        values = {**shared.get(own.pop("like", ""), {}), **own}
        views = values.get("views", {})
        published[kind] = Published(**values | {"views": shared["views"][views] if isinstance(views, str) else views})
    return MethodCard(**card | lists | {"uses": tuple(card.get("uses", ())), "published": published})


def fitting(size: int, reason: str, n_train: int, least: int = 2) -> tuple[int, str]:
    """Return a batch size and its reason: `size` images, or a quarter of a small training set, but at least `least`."""
    if size <= n_train // 4:
        return size, reason
    fits = max(least, n_train // 4)
    return fits, message(
        "{fits}: a quarter of the {n_train} training images, instead of {size}", fits=fits, n_train=n_train, size=size
    )
