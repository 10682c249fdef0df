"""Registries that discover their entries: one file per loss, method or metric; the file name is the key. An entry is a
class whose dataclass fields, made by `knob`, are its settings. The app builds its sliders from them and the command
line checks `--set` against them, so a new file needs no other edit. A loss and a method have a card, a TOML file: its
title, sources and the texts on its page."""

import dataclasses
import importlib
import pkgutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

from contrastive_core.base.errors import BadSetting, UnknownName
from contrastive_core.base.messages import N_, message
from contrastive_core.base.storage import ROOT

T = TypeVar("T")
Knobs = Mapping[str, Any]  # chosen settings of a loss, a method, an encoder or a head, by name


@dataclass(frozen=True)
class Knob:
    """A setting: its default, its range or choices, and a sentence that explains it."""

    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    help: str = ""
    log: bool = False

    def check(self, name: str, value: Any) -> Any:
        """Convert `value` to the type of the setting. Raises BadSetting (a ValueError) if it does not fit."""
        if getattr(value, "requires_grad", False):
            text = N_("{name} is a plain setting: a tensor would lose its gradient")
            if name == "temperature":
                text = N_(
                    "{name} is a plain setting: a tensor would lose its gradient. Pass a learned value with the pairs: "
                    "loss(pairs, temperature=tau)"
                )
            raise BadSetting(text, name=name)
        if self.choices:
            if value in self.choices:
                return value
            values = {"choices": ", ".join(self.choices), "value": repr(value)}
            raise BadSetting("{name} must be one of {choices}; got {value}", name=name, **values)
        if isinstance(self.default, bool):
            words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
            if (word := str(value).lower()) in words:
                return words[word]
            raise BadSetting("{name} must be on or off; got {value}", name=name, value=repr(value))
        if value is None and self.default is None:
            return None
        return str(value) if isinstance(self.default, str) else self._number(name, value)

    def _number(self, name: str, value: Any) -> float:
        """Convert `value` to a number within the range, an integer if the default is one. Raises BadSetting."""
        shown = repr(value)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise BadSetting("{name} must be a number; got {value}", name=name, value=shown) from None
        if self.low is not None and not number >= self.low:
            low = f"{self.low:g}"
            raise BadSetting("{name} must be at least {low}; got {value}", name=name, low=low, value=shown)
        if self.high is not None and not number <= self.high:
            high = f"{self.high:g}"
            raise BadSetting("{name} must be at most {high}; got {value}", name=name, high=high, value=shown)
        if not isinstance(self.default, int):
            return number
        if number != int(number):
            raise BadSetting("{name} must be a whole number; got {value}", name=name, value=shown)
        return int(number)

    def describe(self) -> str:
        """Return the default, the range or choices, and the help sentence as text."""
        if self.choices:
            scope = " | ".join(self.choices)
        elif self.low is not None and self.high is not None:
            scope = message("{low} to {high}", low=f"{self.low:g}", high=f"{self.high:g}")
        else:
            scope = N_("on | off") if isinstance(self.default, bool) else ""
        return f"{self.default!r}  ({scope}) {self.help}".replace("() ", "").rstrip()


def knob(
    default: Any,
    low: float | None = None,
    high: float | None = None,
    help: str = "",
    *,
    choices: tuple[str, ...] = (),
    log: bool = False,
) -> Any:
    """Return a dataclass field that the app shows as a slider. `log` selects a logarithmic scale."""
    entry = Knob(default, low, high, tuple(choices), help, log)
    return dataclasses.field(default=default, metadata={"knob": entry})


def knobs_of(cls: type) -> dict[str, Knob]:
    """Return the settings of a registered class by name, in the order of its fields."""
    fields = dataclasses.fields(cls)
    return {f.name: f.metadata["knob"] for f in fields if "knob" in f.metadata}


class Registry(Generic[T]):
    """The classes defined by the modules of a package, imported on first use. Every public module `key.py` of the
    package must define exactly one subclass of `base`."""

    def __init__(self, package: str, base: type[T], what: str) -> None:
        self.package, self.base, self.what = package, base, what
        self._cache: dict[str, type[T]] = {}

    def names(self) -> list[str]:
        """Return the sorted keys of all entries, from the file names, without importing them."""
        path = importlib.import_module(self.package).__path__
        modules = (m.name for m in pkgutil.iter_modules(path))
        return sorted(n for n in modules if not n.startswith("_"))

    def get(self, name: str) -> type[T]:
        """Return the class registered under `name`. Raises UnknownName."""
        if name not in self._cache:
            if name not in (names := self.names()):
                values = {"what": self.what, "name": repr(name), "choices": ", ".join(names)}
                raise UnknownName("unknown {what} {name}; known: {choices}", **values)
            module = importlib.import_module(f"{self.package}.{name}")
            own = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
            classes = [v for v in own if issubclass(v, self.base)]
            if len(classes) != 1:
                base = self.base.__name__
                raise TypeError(message("{name} must define exactly one {base}", name=name, base=base))
            self._cache[name] = classes[0]
        return self._cache[name]

    def knobs(self, name: str) -> dict[str, Knob]:
        """Return the settings of entry `name`. Raises UnknownName."""
        return knobs_of(self.get(name))

    def create(self, name: str, **settings: Any) -> T:
        """Return an instance of entry `name` with checked settings. Raises UnknownName, BadSetting."""
        knobs = self.knobs(name)
        for key in settings.keys() - knobs.keys():
            values = {"what": self.what, "name": repr(name), "key": repr(key), "choices": ", ".join(knobs) or "none"}
            raise BadSetting("{what} {name} has no setting {key}; it has: {choices}", **values)
        return self.get(name)(**{k: knobs[k].check(k, v) for k, v in settings.items()})

    def describe(self) -> str:
        """Describe every entry and its settings for the command `help`: name, default, range or choices, purpose."""
        lines = []
        for name in self.names():
            cls = self.get(name)
            lines.append(f"{name}: {getattr(getattr(cls, 'card', cls), 'title', name)}")
            lines += [f"    {key} = {one.describe()}" for key, one in self.knobs(name).items()]
        return "\n".join(lines)


# --- cards ------------------------------------------------------------------------------------------

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
