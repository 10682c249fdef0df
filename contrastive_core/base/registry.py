"""Registries that discover their entries: one file per loss, method or metric; the file name is the key. An entry is a
class whose dataclass fields, made by `knob`, are its settings. The app builds its sliders from them and the command
line checks `--set` against them, so a new file needs no other edit."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from contrastive_core.base.errors import BadSetting, UnknownName
from contrastive_core.base.messages import N_, message

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
