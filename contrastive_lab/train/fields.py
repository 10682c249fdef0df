"""The settings of a training as fields, each with its default from the catalog, the reason, and what is wrong."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from contrastive_core.engine import queue
from contrastive_core.engine.images import datasets
from contrastive_core.records import BadName, BadSetting, runs
from contrastive_core.records.cards import Published, fitting
from contrastive_core.records.recipe import view_changes
from contrastive_core.records.train_config import TrainConfig, with_settings
from contrastive_core.records.training_recipes import BatchRate, batch_of, rate_of
from contrastive_lab import locale, number_inputs, query_params
from contrastive_lab.locale import N_, _, sentence

OPTIMIZERS = {"sgd": N_("SGD with momentum"), "adamw": "AdamW", "lars": "LARS"}
VIEWS_TITLES = {"": N_("all alike (default)"), "byol": N_("two strengths, as BYOL has them")}
SIZES = {"digits": 1437, "shapes": 5000, "stl10": 100_000, "mnist": 60_000, "fashion_mnist": 60_000}
SIZES |= {"cifar10": 50_000, "cifar100": 50_000}  # training images
UNKNOWN = N_("The method's default for these data.")


@dataclass(frozen=True)
class TrainChoice:
    """What the fields are for. `loss`: one's own choice, or the method's."""

    catalog: dict[str, Any]
    method: str
    loss: str
    data: str
    optimizer: str = ""  # one's own choice, or "": the method's
    n_train: int = 0  # images of a folder; 0: not known
    recipe: str = "short"  # that it follows

    @property
    def published(self) -> Published | None:
        """The recipe with which the method was published, if it follows that."""
        found = self.catalog["methods"][self.method]["published"].get(self.recipe)
        return Published(**found) if found else None

    def usual(self, name: str) -> tuple[Any, str]:
        """The default of a setting and why it is so; None where it depends on what is not known."""
        p = self.published
        if p and name == "optimizer":
            return p.optimizer, p.source
        if p and name == "loss_knobs" and p.loss_knobs:
            return p.loss_knobs, p.source
        if p and name == "batch_size":
            n_train = self.n_train or SIZES.get(self.data, 0)
            least = self.catalog["methods"][self.method]["least_batch"]
            return batch_of(p, self.recipe, n_train, least) if n_train else (None, UNKNOWN)
        return self._of_short_runs(name)

    def _of_short_runs(self, name: str) -> tuple[Any, str]:
        by_data = self.catalog["methods"][self.method]["defaults"]
        cards = [by_data[self.data]] if self.data in by_data else list(by_data.values())
        entries = [card.get(name) for card in cards]
        first = entries[0] if entries else None
        if first is None or any(entry != first for entry in entries):
            return None, UNKNOWN
        if name == "batch_size" and datasets.is_files(self.data):
            least = self.catalog["methods"][self.method]["least_batch"]
            if not self.n_train:
                return None, UNKNOWN
            return fitting(first["value"], str(first["why"]), self.n_train, least)
        return first["value"], str(first["why"])

    def learning_rate(self, batch: int | None) -> tuple[Any, str]:
        """The default of the rate, which follows the batch. As training/defaults.py."""
        (lr, why), (usual_batch, _why) = self._of_short_runs("lr"), self._of_short_runs("batch_size")
        size = batch or self.usual("batch_size")[0]
        rate = rate_of(self.optimizer, BatchRate("adamw", lr or 0.0, usual_batch or 0, 0.0, why), self.published)
        if not size or not rate.batch or not rate.lr:
            return (lr if rate.optimizer == "adamw" and not batch else None), why
        return rate.at(size), rate.why(size)

    def temperature(self) -> tuple[Any, str] | None:
        """That of the loss; None where it has none."""
        knob = self.catalog["losses"][self.loss]["knobs"].get("temperature")
        if knob is None:
            return None
        card = self.catalog["methods"][self.method]
        if self.loss != card["default_loss"]:
            return knob["default"], _("the default of {loss}").format(loss=self.loss)
        value, why = self.usual("loss_knobs")
        if isinstance(value, dict) and "temperature" in value:
            return value["temperature"], why
        if why == UNKNOWN and any("loss_knobs" in of_data for of_data in card["defaults"].values()):
            return None, UNKNOWN
        own = (card.get("loss_knobs") or {}).get("temperature", knob["default"])
        return own, str(knob["help"])


def numbers(choice: TrainChoice) -> tuple[list[str], int, str]:
    """Temperature, batch size, learning rate, seed; gives `--set` values of those that were chosen,
    the seed, and what is wrong besides what each field says (`number_inputs.wrong_number`)."""
    settings: list[str] = []
    with st.container(key="train-numbers"):  # wide enough for their defaults (app.py)
        columns = iter(st.columns(2) + st.columns(2))
    if (usual := choice.temperature()) is not None:
        value = _field(next(columns), _("Temperature τ"), "temperature", usual, (0.001, 100.0, 0.05))
        settings += [f"loss.temperature={value:g}"] if value is not None else []
    batch = _field(next(columns), _("Batch size"), "batch", choice.usual("batch_size"), (2, 65536, 32))
    settings += [f"batch_size={batch}"] if batch is not None else []
    beside = next(columns)
    lr = _field(beside, _("Learning rate"), "lr", choice.learning_rate(batch), (0.0, 100.0, 0.001))
    settings += [f"lr={lr:g}"] if lr is not None else []
    wrong = "" if lr != 0 else _("At a learning rate of 0 nothing is learned.")
    if wrong:
        beside.error(locale.text(wrong))
    place = next(columns).number_input
    seed = number_inputs.number(place, _("Seed"), 0, 2**31 - 1, name="seed", default=0)
    return settings, seed, wrong


def optimizing(choice: TrainChoice) -> list[str]:
    """Optimizer, layer-wise decay and micro-batch; gives `--set` values of those that were chosen."""
    usual, why = choice.usual("optimizer")
    named = {name: _(text) for name, text in OPTIMIZERS.items()}
    first = _("{optimizers} (default)").format(optimizers=named[usual]) if usual in named else _("the method's own")
    titles, help = {"": first, **named}, _("{why} LARS is for batches of thousands.").format(why=why).strip()
    optimizer = query_params.one_of(
        st.selectbox, _("Optimizer"), titles, name="optimizer", format_func=titles.get, help=help
    )
    help = _(
        "Each layer learns at this fraction of the rate of the layer after it. 1 suits a new encoder; 0.65 to 0.75 "
        "preserves a pretrained one."
    )
    look: dict[str, Any] = {"step": 0.05, "format": "%.2f", "placeholder": _("1 (default)"), "help": help}
    label = _("Layer-wise decay")
    decay = number_inputs.number(st.number_input, label, 0.01, 1.0, name="layer_decay", default=None, **look)
    settings = [f"optimizer={optimizer}"] if optimizer else []
    settings += [f"layer_decay={decay:g}"] if decay is not None else []
    return settings + _micro_batch()


def _micro_batch() -> list[str]:
    help = _(
        "Number of images encoded at a time. Set it when a batch does not fit in memory: the loss still compares the "
        "whole batch, and a step takes about a third longer."
    )
    look: dict[str, Any] = {"step": 32, "placeholder": _("whole batch (default)"), "help": help}
    size = number_inputs.number(st.number_input, _("Micro-batch"), 2, 65536, name="micro_batch", default=None, **look)
    return [f"micro_batch={size}"] if size is not None else []


def views_recipe() -> list[str]:
    """Whether views are made alike; gives the `--set` value of those that are not."""
    help = _(
        "Two strengths: view 1 is always blurred, view 2 seldom, and some of view 2 have "
        "their bright pixels inverted (solarized)."
    )
    chosen = query_params.one_of(
        st.selectbox, _("Views"), list(VIEWS_TITLES), name="views", format_func=VIEWS_TITLES.__getitem__, help=help
    )
    return [f"recipe.views={chosen}"] if chosen else []


def _field(place: Any, label: str, name: str, usual: tuple[Any, str], bounds: tuple[float, float, float]) -> Any:
    """A number, its default where nothing is written, shown with the digits that are passed on."""
    low, high, step = bounds
    value, why = usual
    usually = "default" if value is None else _("{value} (default)").format(value=f"{value:g}")
    look: dict[str, Any] = {"step": step, "format": "%.6g", "placeholder": usually, "help": why}
    return number_inputs.number(place.number_input, label, low, high, name=name, default=None, **look)


def wrong_name(name: str) -> str:
    """Why a new run cannot have this name; "" if it can, or if one is made for it."""
    if not name:
        return ""
    try:
        runs.checked_name(name)
    except BadName as error:
        return sentence(error)
    taken = name in queue.taken_names()
    return _("there is a run {name} already; choose another name").format(name=f"{name!r}") if taken else ""


def wrong_settings(choice: TrainChoice, further: list[str]) -> str:
    """What is wrong with the lines of further settings, as far as it can be told without torch."""
    try:
        config = with_settings(TrainConfig(choice.method), further)
    except BadSetting as error:
        return sentence(error)
    try:
        view_changes(str(config.recipe.get("views") or ""))
    except ValueError as error:
        return sentence(error)
    card = choice.catalog["methods"][choice.method]
    if config.method != choice.method or config.dataset != TrainConfig().dataset:
        return _("method and dataset are chosen above")
    for group, values, knobs in (
        ("loss", config.loss_knobs, choice.catalog["losses"].get(config.loss or choice.loss)),
        ("method", config.method_knobs, card),
        ("recipe", config.recipe, {"knobs": choice.catalog["recipe"]}),
    ):
        for knob, value in values.items():
            if knobs and (why := _wrong_knob(group, knob, value, knobs["knobs"])):
                others = [name for name, one in choice.catalog["methods"].items() if knob in one["knobs"]]
                if group == "method" and knob not in knobs["knobs"] and others:
                    text = _("method.{knob} is a setting of {others}; {method} has: {knobs}")
                    of = {"knob": knob, "others": ", ".join(others), "method": choice.method}
                    return text.format(**of, knobs=", ".join(knobs["knobs"]))
                return why
    return ""


def _wrong_knob(group: str, knob: str, value: Any, knobs: dict[str, Any]) -> str:
    if knob not in knobs:
        text = _("{group}.{knob} is no setting here; known: {knobs}")
        return text.format(group=group, knob=knob, knobs=", ".join(knobs) or "none")
    low, high = knobs[knob].get("low"), knobs[knob].get("high")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or low is None:
        return ""
    if low <= value and (high is None or value <= high):  # never of NaN
        return ""
    text = _("{group}.{knob} must lie in {low}..{high}; got {value}")
    return text.format(group=group, knob=knob, low=f"{low:g}", high=f"{high:g}", value=f"{value:g}")
