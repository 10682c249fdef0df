"""The base of all widgets: a component's module, its packed data, and the browser's report. Also converts and checks
the user's arrays, tensors and lists; each error has one sentence."""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets

from contrastive_core.base.registry import Knobs
from contrastive_core.lab.view import about_loss
from contrastive_lab.components.shared.mount import bundle, style_sheet
from contrastive_lab.loss_setting import further_knobs, knob_of, live_knob


class LabWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A browser component in a notebook; shared/notebook.js is its counterpart."""

    data = traitlets.Bytes(b"").tag(sync=True)  # what the part's `pack_…` gives
    sheet = traitlets.Unicode("").tag(sync=True)
    reported = traitlets.Dict().tag(sync=True)  # {name, value}: what was last let go

    def __init__(self, part: str, style: str) -> None:
        super().__init__(sheet=style_sheet(style), _esm=bundle(f"{part}/notebook.js"))
        self._is_quiet = False

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Set traits that the browser already shows, without sending them."""
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

    def hear(self, said: Mapping[str, object]) -> None:
        """Take over the values that the user released."""
        raise NotImplementedError


class KnobWidget(LabWidget):
    """A component with a loss's knob, which is read and set as `temperature` or `margin`."""

    temperature = traitlets.Float(None, allow_none=True).tag(sync=True)
    margin = traitlets.Float(None, allow_none=True).tag(sync=True)

    def __init__(self, part: str, loss: str, knobs: Knobs) -> None:
        self.loss, self.about = loss, about_loss(loss, knobs)
        self.live = live_knob(self.about)
        super().__init__(part, "lab")
        with self.quietly():
            if self.live:
                setattr(self, self.live, self.about["values"][self.live])

    @property
    def knobs(self) -> Knobs:
        """Return every knob of the loss with its current value."""
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

    def hear(self, said: Mapping[str, object]) -> None:
        value = said.get("value")
        if self.live and isinstance(value, int | float) and math.isfinite(value):
            setattr(self, self.live, value)
        if isinstance(more := said.get("more"), Mapping):
            self.about["values"].update({name: more[name] for name in further_knobs(self.about) if name in more})

    def draw(self) -> None:
        """Send the current data to the browser."""
        raise NotImplementedError


def digest(*parts: Any) -> str:
    """Return a hash of arrays and plain values; when it changes, the browser reads its data again."""
    out = hashlib.sha256()
    for part in parts:
        out.update(part.tobytes() if hasattr(part, "tobytes") else repr(part).encode())
    return out.hexdigest()[:16]


def rows_of(z: Any, least: int = 2) -> np.ndarray:
    """Return rows (n, d), or views (n, v, d), as float32. Raises ValueError with the reason."""
    rows = _array(z, "z")
    if rows.ndim not in (2, 3) or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"z must be numbers: rows (n, d), or views (images, views, d); got {rows.dtype} of shape {rows.shape}"
        )
    if len(rows) < least:
        raise ValueError(f"z needs at least {least} rows; got {len(rows)}")
    if not rows.shape[-1] or not rows.shape[1]:
        raise ValueError(f"z has no columns: its shape is {rows.shape}")
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(rows, np.float32)
    bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(1))
    if len(bad):
        raise ValueError(
            f"{len(bad)} of the {len(rows)} rows of z hold values that are not finite in "
            f"float32, the first is row {bad[0]}: leave them out"
        )
    return rows


def labels_of(labels: Any, n: int, classes: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the class (n) int64 of each row, −1 for none, and the classes' names. Args: labels: whole numbers, −1 for
    none; or names. Raises ValueError with the reason."""
    if labels is None:
        return np.full(n, -1), ()
    given = _array(labels, "labels")
    if given.shape != (n,):
        raise ValueError(f"labels must be ({n},), one for each row; got shape {given.shape}")
    if given.dtype.kind in "USO":
        distinct, number = np.unique(given.astype(str), return_inverse=True)
        return number.astype(np.int64), tuple(distinct.tolist())
    whole = given.astype(np.int64) if np.isfinite(given).all() else np.empty(0)
    if not np.array_equal(whole, given):
        raise ValueError(f"labels must be whole numbers, -1 for none, or names; got {given.dtype}")
    count = int(whole.max(initial=-1)) + 1
    names = [str(c) for c in classes] if classes is not None else list(map(str, range(count)))
    if len(names) < count:
        raise ValueError(f"labels go up to {count - 1}, but there are {len(names)} classes")
    return whole, tuple(names)


def images_of(images: Any, n: int, views: int = 1) -> np.ndarray | None:
    """Return images (n · views, c, h, w) uint8, image-major. Args: images: (n, c, h, w) or (n, h, w), or as many for
    each view; uint8, or 0 to 1. Raises ValueError with the reason."""
    if images is None:
        return None
    given = _array(images, "images")
    if given.ndim == 3:
        given = given[:, None]
    if given.ndim != 4 or given.shape[1] not in (1, 3) or len(given) not in (n, n * views):
        raise ValueError(f"images must be ({n}, 1 or 3, h, w), one for each row of z; got shape {given.shape}")
    if given.dtype.kind == "f":
        given = (255 * np.nan_to_num(given).clip(0, 1)).round()
    elif given.dtype != np.uint8:
        given = given.clip(0, 255)
    given = given.astype(np.uint8)
    return given if len(given) == n * views else np.repeat(given, views, axis=0)


def _array(given: Any, name: str) -> np.ndarray:
    """Convert anything array-like to an array, including a tensor on any device."""
    if hasattr(given, "detach"):
        given = given.detach().cpu()
        given = (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
    try:
        return np.asarray(given)
    except ValueError:
        raise ValueError(f"the rows of {name} are not equally long") from None
