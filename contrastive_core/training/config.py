"""What a training run is told: plain settings, read from the command line and kept in run.json.

A field that is None takes the method's default for the data set. `loss.temperature=0.2`,
`method.momentum=0.99`, `recipe.crop_low=0.4` and `encoder.stem=small` reach the knobs of the loss,
the method, the recipe and the encoder; every other key names a field.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.errors import BadSetting

__all__ = ["GROUPS", "TrainConfig", "from_dict", "settings_of", "with_settings"]

OPTIONS = (  # that the command line has a name of their own for
    "method", "dataset", "epochs", "seed", "loss", "encoder",
    "exclude", "relabel", "root", "device",
)  # fmt: skip

GROUPS = {
    "loss": "loss_knobs",
    "method": "method_knobs",
    "recipe": "recipe",
    "encoder": "encoder_knobs",
}


@dataclass(frozen=True)
class TrainConfig:
    """All settings of one training run. JSON in, JSON out."""

    method: str = "simclr"
    dataset: str = "digits"
    root: str | None = None  # folder of data sets that torchvision downloads
    epochs: int = 20
    batch_size: int | None = None
    encoder: str = "small"
    encoder_knobs: dict[str, Any] = field(default_factory=dict)
    loss: str | None = None
    loss_knobs: dict[str, Any] = field(default_factory=dict)
    method_knobs: dict[str, Any] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)  # what differs from the method's recipe
    optimizer: str | None = None
    lr: float | None = None
    weight_decay: float | None = None
    momentum: float = 0.9  # of SGD; the papers all use it
    schedule: str | None = None
    warmup: float | None = None  # epochs
    clip: float = 0.0  # largest gradient norm; 0: not clipped
    seed: int = 0
    device: str = "auto"
    threads: int | None = None  # None: as torch finds them, or as the resumed run had them
    amp: bool | None = None  # bf16 autocast; None: where it helps
    channels_last: bool = True
    compile: bool = False
    exclude: str | None = None  # file of sample ids to leave out
    relabel: str | None = None  # file of sample ids with the classes they should have
    start: str | None = None  # run whose encoder this one starts from
    freeze: bool = False  # train the head only
    snapshot_every: int = 1  # epochs between snapshots of the fixed sample; 0: only the last
    sample: int = 2000  # images in the fixed sample
    save_seconds: float = 20.0  # at least this long between saved states
    collapse_patience: int = 5  # epochs with all embeddings alike before the run stops; 0: never

    def __post_init__(self) -> None:
        self._at_least("epochs", 1)
        for name in ("batch_size", "threads", "lr", "weight_decay", "warmup"):
            if getattr(self, name) is not None:
                self._at_least(name, 1 if name in ("batch_size", "threads") else 0)
        for name in ("clip", "snapshot_every", "save_seconds", "collapse_patience", "momentum"):
            self._at_least(name, 0)
        if self.momentum >= 1:
            raise BadSetting(f"momentum must be below 1; got {self.momentum}")
        if not 0 <= self.seed < 2**32:
            raise BadSetting(f"seed must lie in 0..{2**32 - 1}; got {self.seed}")
        if not 2 <= self.sample <= 2000:
            raise BadSetting(f"sample must lie in 2..2000; got {self.sample}")

    def _at_least(self, name: str, low: float) -> None:
        if not getattr(self, name) >= low:  # also catches NaN
            raise BadSetting(f"{name} must be at least {low}; got {getattr(self, name)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for run.json."""
        return dataclasses.asdict(self)


_TYPES = {f.name: str(f.type).split(" | ")[0] for f in dataclasses.fields(TrainConfig)}


def from_dict(values: Mapping[str, Any]) -> TrainConfig:
    """The config that `to_dict` wrote. Raises BadSetting for keys this version does not know."""
    for name in values:
        if name not in _TYPES:
            raise BadSetting(f"unknown setting {name!r}; known: {', '.join(_TYPES)}")
    return TrainConfig(**values)


def with_settings(config: TrainConfig, settings: Iterable[str]) -> TrainConfig:
    """The config with each `key=value` of `settings` applied. Raises BadSetting."""
    changed: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise BadSetting(f"a setting is written key=value; got {setting!r}")
        group, dot, knob = key.partition(".")
        if dot and group in GROUPS:
            name = GROUPS[group]
            changed[name] = {**changed.get(name, getattr(config, name)), knob: knob_literal(text)}
        elif key in _TYPES and key not in GROUPS.values():
            changed[key] = _typed(key, text)
        else:
            fields = ", ".join(k for k in _TYPES if k not in GROUPS.values())
            dotted = ", ".join(f"{g}.KNOB" for g in GROUPS)
            raise BadSetting(f"unknown setting {key!r}; known: {fields}, {dotted}")
    return dataclasses.replace(config, **changed)


def settings_of(config: Mapping[str, Any]) -> list[str]:
    """Arguments of `train` that give these settings again: the inverse of `with_settings`.

    Settings that are None, or missing, are left to their defaults.
    """
    made: list[str] = []
    for name in OPTIONS:
        if config.get(name) is not None:
            made += [f"--{name}", str(config[name])]
    for group, name in GROUPS.items():
        for knob, value in (config.get(name) or {}).items():
            made += ["--set", f"{group}.{knob}={_written(value)}"]
    for name in _TYPES:
        if name not in OPTIONS and name not in GROUPS.values() and config.get(name) is not None:
            value = config[name]
            made += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return made


def _written(value: Any) -> str:
    """A knob's value so that `knob_literal` reads it again."""
    plain = isinstance(value, str) and knob_literal(value) == value
    return str(value) if plain else json.dumps(value)


def literal(text: str) -> Any:
    """A value as JSON would read it, else the text itself; none, on and off are understood."""
    words = {"none": None, "on": True, "off": False}
    text = text.strip()
    if text.lower() in words:
        return words[text.lower()]
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text


def knob_literal(text: str) -> Any:
    """Like `literal`, but "none" stays a word: for some knobs it is one of the choices."""
    return text.strip() if text.strip().lower() == "none" else literal(text)


def _typed(name: str, text: str) -> Any:
    value, kind = literal(text), _TYPES[name]
    optional = " | None" in str(TrainConfig.__dataclass_fields__[name].type)
    if value is None and optional:
        return None
    if kind == "str":
        return text.strip()
    if kind == "bool":
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
        raise BadSetting(f"{name} must be on or off; got {text!r}")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or (kind == "int" and value != int(value)):
        raise BadSetting(f"{name} must be a {'whole ' * (kind == 'int')}number; got {text!r}")
    return int(value) if kind == "int" else float(value)
