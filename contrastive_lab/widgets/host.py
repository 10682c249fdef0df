"""The base of every widget: a part's module, its packed data, and the browser's report."""

import contextlib
import hashlib
import math
from collections.abc import Iterator
from typing import Any

import anywidget
import traitlets

from contrastive_lab.components.shared.bundle import bundle, style_sheet
from contrastive_lab.loss_description import about_loss
from contrastive_lab.loss_setting import further_knobs, knob_of, live_knob


class LabWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A browser part in a notebook; shared/notebook.js is its other half."""

    data = traitlets.Bytes(b"").tag(sync=True)  # what the part's `pack_…` gives
    sheet = traitlets.Unicode("").tag(sync=True)
    reported = traitlets.Dict().tag(sync=True)  # {name, value}: what was last let go

    def __init__(self, part: str, style: str) -> None:
        super().__init__(sheet=style_sheet(style), _esm=bundle(f"{part}/notebook.js"))
        self._is_quiet = False

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Traits that are set here are what the browser shows already."""
        before, self._is_quiet = self._is_quiet, True
        try:
            yield
        finally:
            self._is_quiet = before

    @traitlets.observe("reported")
    def _hear(self, change: Any) -> None:
        value = change["new"].get("value")
        if isinstance(value, dict):
            with self.quietly():
                self.hear(value)

    def hear(self, said: dict[str, Any]) -> None:
        """Take over what a person let go."""
        raise NotImplementedError


class KnobWidget(LabWidget):
    """A part with a loss's knob, which is read and set as `temperature` or `margin`."""

    temperature = traitlets.Float(None, allow_none=True).tag(sync=True)
    margin = traitlets.Float(None, allow_none=True).tag(sync=True)

    def __init__(self, part: str, loss: str, knobs: dict[str, Any]) -> None:
        self.loss, self.about = loss, about_loss(loss, knobs)
        self.live = live_knob(self.about)
        super().__init__(part, "lab")
        with self.quietly():
            if self.live:
                setattr(self, self.live, self.about["values"][self.live])

    @property
    def knobs(self) -> dict[str, Any]:
        """Every knob of the loss, with its present value."""
        live = {self.live: getattr(self, self.live)} if self.live else {}
        return self.about["values"] | live

    @traitlets.validate("temperature", "margin")
    def _check(self, proposal: Any) -> float | None:
        name, value = proposal["trait"].name, proposal["value"]
        if name != self.live:
            raise traitlets.TraitError(f"{self.about['title']} has no {name}")
        limits = knob_of(self.about, name, 1.0)
        if value is None or math.isnan(value) or not limits.low <= value <= limits.high:
            raise traitlets.TraitError(f"{name} must be from {limits.low:g} to {limits.high:g}; got {value!r}")
        return float(value)

    @traitlets.observe("temperature", "margin")
    def _set_from_python(self, change: Any) -> None:
        if not self._is_quiet:
            self.draw()

    def hear(self, said: dict[str, Any]) -> None:
        value = said.get("value")
        if self.live and isinstance(value, int | float) and math.isfinite(value):
            setattr(self, self.live, value)
        for name in further_knobs(self.about):
            if name in said.get("more", {}):
                self.about["values"][name] = said["more"][name]

    def draw(self) -> None:
        """Send what is to be seen."""
        raise NotImplementedError


def digest(*parts: Any) -> str:
    """A hash of arrays and plain values: when it changes, the browser reads its data anew."""
    out = hashlib.sha256()
    for part in parts:
        out.update(part.tobytes() if hasattr(part, "tobytes") else repr(part).encode())
    return out.hexdigest()[:16]
