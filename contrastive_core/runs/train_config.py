"""The settings of a training run: plain values, read from the command line and stored in run.json.

A field with the value None takes the method's default for the data set. `loss.temperature=0.2`, `method.momentum=0.99`,
`recipe.crop_low=0.4` and `encoder.stem=small` set knobs of the loss, the method, the recipe and the encoder; every
other key names a field."""

import dataclasses
import json
import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_
from contrastive_core.data.dataset import ImageForm

GROUPS = {"loss": "loss_knobs", "method": "method_knobs", "recipe": "recipe", "encoder": "encoder_knobs"}
IMAGE_SIZE = N_(
    "side length in pixels for a folder's images (default: the encoder's size, otherwise the median side, at most 64)"
)
RECIPE = N_("training recipe: short, cifar or imagenet (default: chosen from encoder, image size and epochs)")
CACHE = N_(
    "storage of a folder's decoded images: auto (default), memory-map, or stream, which decodes them during training"
)
CACHES = ("auto", "memory-map", "stream")
RECIPES = ("short", "cifar", "imagenet")
EPOCHS = 20  # of a training, where its method needs no more
SLOW = {("byol", "digits"): 100, ("simsiam", "digits"): 60}  # epochs, by method and data set: measured, three seeds
FLAGS = {"training_recipe": "recipe"}  # `recipe` is the field of the augmentations
MICRO_BATCH = N_("number of images encoded at a time: it determines memory use; the loss still sees the whole batch")


def _setting(default: Any, help: str = "", metavar: str | None = None, **limits: float) -> Any:
    """Define a field with its smallest and largest value, `low` and `high`; with `help`, it has its own option."""
    option = {"option": {"help": help, "metavar": metavar}} if help else {}
    return field(default=default, metadata={**limits, **option})


def flag(name: str) -> str:
    """Return the command-line option of a field: `--micro-batch` for `micro_batch`."""
    return f"--{FLAGS.get(name, name).replace('_', '-')}"


@dataclass(frozen=True)
class TrainConfig:
    """All settings of one training run, serializable as JSON."""

    method: str = _setting("simclr", "default: simclr")
    dataset: str = _setting("digits", N_("data set: digits (default), shapes, cifar10, …, folder:PATH or csv:PATH"))
    root: str | None = _setting(None, N_("folder of downloaded data sets"), metavar="FOLDER")
    image_size: int | None = _setting(None, IMAGE_SIZE, metavar="PIXELS")
    resize: str = _setting("crop", N_("method that makes a folder's images square: crop (default) or pad"))
    cache: str = _setting("auto", CACHE)
    epochs: int = _setting(
        EPOCHS, N_("number of epochs (default: 20; on digits, 100 for byol and 60 for simsiam)"), low=1
    )
    batch_size: int | None = _setting(None, low=1)
    micro_batch: int | None = _setting(None, MICRO_BATCH, metavar="IMAGES", low=2)
    encoder: str = _setting("small", N_("encoder: small (default), resnet18, resnet50 or timm:NAME"))
    encoder_knobs: JsonObject = field(default_factory=dict)
    loss: str | None = _setting(None, N_("loss to use instead of the method's own"))
    loss_knobs: JsonObject = field(default_factory=dict)
    method_knobs: JsonObject = field(default_factory=dict)
    training_recipe: str | None = _setting(None, RECIPE, metavar="RECIPE")
    recipe: JsonObject = field(default_factory=dict)  # what differs from the method's recipe
    optimizer: str | None = None
    lr: float | None = _setting(None, low=0)
    weight_decay: float | None = _setting(None, low=0)
    momentum: float = _setting(0.9, low=0)  # of SGD; the papers all use it
    schedule: str | None = None
    warmup: float | None = _setting(None, low=0)  # epochs
    clip: float = _setting(0.0, low=0)  # largest gradient norm; 0: not clipped
    seed: int = _setting(0, "default: 0", low=0, high=2**32 - 1)
    device: str = "auto"  # an option of most commands
    threads: int | None = _setting(None, low=1, high=1024)  # None: as found, or as before a resume
    amp: bool | None = None  # bf16 autocast; None: where it helps
    channels_last: bool = True
    compile: bool = False
    capture: bool = False  # launch the encoder's kernels as CUDA graphs
    exclude: str | None = _setting(None, N_("file with the ids of samples to leave out"), metavar="FILE")
    relabel: str | None = _setting(None, N_("CSV or JSON file of ids and their new classes"), metavar="FILE")
    layer_decay: float = _setting(1.0, low=0, high=1)  # of the rate, per layer towards the images
    start: str | None = _setting(None, N_("start from this run's encoder"), metavar="RUN")
    start_head: bool = False  # take that run's head, too
    freeze: bool = False  # train the head only
    monitor_every: int | None = _setting(None, low=1)  # epochs between scores of the fixed sample; None: at most 100
    snapshot_every: int | None = _setting(
        None, low=0
    )  # epochs between its snapshots; None: with its scores; 0: the last
    sample: int = _setting(2000, low=2, high=2000)  # images in the fixed sample
    save_seconds: float = _setting(20.0, low=0)  # at least this long between saved states
    collapse_patience: int = _setting(5, low=0)  # epochs collapsed before the run stops; 0: never

    def __post_init__(self) -> None:
        for name, entry in FIELDS.items():
            value, low, high = getattr(self, name), entry.metadata.get("low"), entry.metadata.get("high")
            values = {"name": name, "low": low, "high": high, "value": value}
            if value is not None and high is not None and not low <= value <= high:
                raise BadSetting("{name} must lie in {low}..{high}; got {value}", **values)
            if value is not None and low is not None and not value >= low:  # also catches NaN
                raise BadSetting("{name} must be at least {low}; got {value}", **values)
        ImageForm(self.image_size, self.resize)  # checks both
        recipe = RECIPES[0] if self.training_recipe is None else self.training_recipe
        for name, value, choices in (("cache", self.cache, CACHES), ("recipe", recipe, RECIPES)):
            if value not in choices:
                text = N_("{name} must be one of {choices}; got {value}")
                raise BadSetting(text, name=name, choices=", ".join(choices), value=repr(value))
        if self.layer_decay == 0:
            raise BadSetting(N_("layer_decay must be above 0; 1 gives every layer the same rate"))
        if self.momentum >= 1:
            raise BadSetting("momentum must be below 1; got {momentum}", momentum=self.momentum)

    def to_dict(self) -> JsonObject:
        """Return the settings as plain values, for run.json."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Resolved:
    """The settings of a training with all defaults filled in, the reason for each default, notes, and `refusal`: why
    they cannot be trained ("" if they can)."""

    config: TrainConfig
    reasons: dict[str, str]
    notes: tuple[str, ...] = ()
    refusal: str = ""


def usual_epochs(method: str, dataset: str, encoder: str = "small", is_start: bool = False) -> int:
    """Return the default number of epochs: a measured value for slow methods with new weights of the small encoder,
    otherwise EPOCHS. `is_start`: the training starts from trained weights."""
    return EPOCHS if is_start or encoder != "small" else SLOW.get((method, dataset), EPOCHS)


FIELDS = {f.name: f for f in dataclasses.fields(TrainConfig)}
OPTIONS = {name: f.metadata["option"] for name, f in FIELDS.items() if "option" in f.metadata}
SINGLE = [name for name in FIELDS if name not in GROUPS.values()]  # settings that are one value
_HINTS = typing.get_type_hints(TrainConfig)


def from_dict(values: Mapping[str, Any]) -> TrainConfig:
    """Return the config written by `to_dict`. Raises BadSetting for unknown keys."""
    if unknown := values.keys() - FIELDS.keys():
        raise BadSetting("unknown setting {name}; known: {fields}", name=repr(min(unknown)), fields=", ".join(FIELDS))
    return TrainConfig(**values)


def with_settings(config: TrainConfig, settings: Iterable[str]) -> TrainConfig:
    """Return the config with each `key=value` of `settings` applied. Raises BadSetting."""
    changed: JsonObject = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise BadSetting("settings must be written as key=value; got {setting}", setting=repr(setting))
        group, dot, knob = key.partition(".")
        key = _field_of(key)
        if dot and group in GROUPS:
            name = GROUPS[group]
            changed[name] = {**changed.get(name, getattr(config, name)), knob: knob_literal(text)}
        elif key in SINGLE:
            changed[key] = _typed(key, text)
        else:
            fields, dotted = ", ".join(SINGLE), ", ".join(f"{g}.KNOB" for g in GROUPS)
            text = N_("unknown setting {key}; known: {fields}, {dotted}")
            raise BadSetting(text, key=repr(key), fields=fields, dotted=dotted)
    return dataclasses.replace(config, **changed)


def _field_of(key: str) -> str:
    return next((name for name, short in FLAGS.items() if short == key), key)


def settings_of(config: Mapping[str, Any]) -> list[str]:
    """Return the arguments of `train` that reproduce these settings; None and missing values are skipped."""
    arguments: list[str] = []
    for name in (*OPTIONS, "device"):
        if config.get(name) is not None:
            arguments += [flag(name), str(config[name])]
    for group, name in GROUPS.items():
        for knob, value in (config.get(name) or {}).items():
            is_plain = isinstance(value, str) and knob_literal(value) == value  # it is read as the same text
            arguments += ["--set", f"{group}.{knob}={value if is_plain else json.dumps(value)}"]
    for name in SINGLE:
        if name not in (*OPTIONS, "device") and (value := config.get(name)) is not None:
            arguments += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return arguments


def as_options(lines: Iterable[str]) -> list[str]:
    """Return the arguments of `train` for `key=value` lines."""
    arguments: list[str] = []
    for line in lines:
        key, _, value = line.partition("=")
        name = _field_of(key)
        arguments += [flag(name), value] if name in OPTIONS else ["--set", line]
    return arguments


def literal(text: str) -> Any:
    """Parse a value as JSON, or return the text itself; none, on and off are accepted."""
    words = {"none": None, "on": True, "off": False}
    text = text.strip()
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text


def knob_literal(text: str) -> Any:
    """Parse like `literal`, but keep "none" as text: it is a choice of some knobs."""
    return text.strip() if text.strip().lower() == "none" else literal(text)


def _typed(name: str, text: str) -> Any:
    value, kinds = literal(text), typing.get_args(_HINTS[name]) or (_HINTS[name],)
    if value is None and type(None) in kinds:
        return None
    if str in kinds:
        return text.strip()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if bool in kinds:
        problem, is_valid = N_("{name} must be on or off; got {text}"), value in (0, 1)  # True and False among them
    elif int in kinds:
        problem = N_("{name} must be a whole number; got {text}")
        is_valid = is_number and math.isfinite(value) and value == int(value)
    else:
        problem, is_valid = N_("{name} must be a number; got {text}"), is_number
    if not is_valid:
        raise BadSetting(problem, name=name, text=repr(text))
    return next(kind for kind in (bool, int, float) if kind in kinds)(value)
