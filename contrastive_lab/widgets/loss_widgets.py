"""Widgets: the live loss view on the user's rows, points on a circle that follow a loss's gradient, and a map of many
rows with images, whose selection is returned as row numbers."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets

from contrastive_core.base.registry import Knobs
from contrastive_core.lab.lab_view import LabBatch
from contrastive_core.lab.view import about_loss, compute_view
from contrastive_core.spaces.space import pca
from contrastive_lab.components.circle import CircleStart, CircleView, pack_circle
from contrastive_lab.components.loss_view import LossView, PairAxes
from contrastive_lab.components.scatter import MAX_IMAGES, MAX_POINTS, ScatterData, pack_scatter
from contrastive_lab.components.scatter import rows_of as rows_reported
from contrastive_lab.components.shared.mount import bundle, pack, style_sheet, thumbnail_sheet
from contrastive_lab.loss_setting import dragged, further_knobs_of, knob_of, live_knob, setting_of

MOST = 1024  # rows that stay smooth under a drag
SHOWN = ("view", "stage", "order", "masks")  # of the browser, kept when the data change


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
        self._is_quiet = True
        try:
            yield
        finally:
            self._is_quiet = False

    @traitlets.observe("reported")
    def _hear(self, change: Any) -> None:
        if isinstance(value := change["new"].get("value"), dict):
            with self.quietly():
                self.hear(value)

    def hear(self, said: Mapping[str, Any]) -> None:
        """Take over the values that the user released."""

    def draw(self) -> None:
        """Send the current data to the browser, which computes what it can."""


class KnobWidget(LabWidget):
    """A component with a loss's knob, which is read and set as `temperature` or `margin`."""

    temperature = traitlets.Float(None, allow_none=True).tag(sync=True)
    margin = traitlets.Float(None, allow_none=True).tag(sync=True)

    def __init__(self, part: str, loss: str, knobs: Knobs) -> None:
        self.loss, self.about = loss, about_loss(loss, knobs)
        self.live = live_knob(self.about)
        super().__init__(part, "lab")
        if self.live:
            with self.quietly():
                setattr(self, self.live, self.about["values"][self.live])

    @property
    def knobs(self) -> Knobs:
        """Return every knob of the loss with its current value."""
        return self.about["values"] | ({self.live: getattr(self, self.live)} if self.live else {})

    @traitlets.validate("temperature", "margin")
    def _check(self, proposal: Any) -> float | None:
        name, value = proposal["trait"].name, proposal["value"]
        if name != self.live:
            raise traitlets.TraitError(f"{self.about['title']} has no {name}")
        limits = knob_of(self.about, name, 1.0)
        if value is None or not limits.low <= value <= limits.high:  # also catches NaN
            raise traitlets.TraitError(f"{name} must be from {limits.low:g} to {limits.high:g}; got {value!r}")
        return float(value)

    @traitlets.observe("temperature", "margin")
    def _set_from_python(self, change: Any) -> None:
        if not self._is_quiet:
            self.draw()

    def hear(self, said: Mapping[str, Any]) -> None:
        value = said.get("value")
        if self.live and isinstance(value, int | float) and math.isfinite(value):
            setattr(self, self.live, value)
        if isinstance(more := said.get("more"), Mapping):
            self.about["values"].update({name: more[name] for name in dragged(self.about) if name in more})


def loss_view(
    z: Any,
    labels: Any = None,
    loss: str = "nt_xent",
    *,
    images: Any = None,
    classes: Sequence[str] | None = None,
    anchor: int = 0,
    **knobs: Any,
) -> LossViewWidget:
    """Show a loss on rows: drag the knob to see the weight and gradient of every pair.

    Args:
        z: rows (n, d), or views (images, views, d): arrays, tensors or lists, at most 1,024 rows.
        labels: (n) whole numbers, −1 for none, or names: rows of one class are positives. Without
            them, the views of one image are positives.
        images: (n, c, h, w) or (n, h, w), shown beside the rows. classes: names of the labels.
        anchor: the initial anchor. knobs: of the loss, as `losses.knobs` lists them.
    Raises: ValueError with the reason for rows, labels or knobs that cannot be used."""
    rows = rows_of(z)
    rows = rows if rows.ndim == 3 else rows[:, None]  # (b, v, d)
    b, v = rows.shape[:2]
    if b * v > MOST:
        raise ValueError(f"the live view draws at most {MOST:,} rows; got {b * v:,}: give some")
    if labels is None and v == 1:
        raise ValueError("these rows have no positives: give labels, or views (images, views, d) of each image")
    (numbers, names), pictures = labels_of(labels, b, classes), images_of(images, b, v)
    batch = LabBatch(rows, numbers, pictures, names, list(map(str, range(b))))
    return LossViewWidget(batch, "views" if labels is None else "classes", loss, knobs, anchor)


class LossViewWidget(KnobWidget):
    """Live loss view. Read or set `temperature` or `margin`, and `anchor`: the values when the mouse was last
    released."""

    anchor = traitlets.Int(0).tag(sync=True)

    def __init__(self, batch: LabBatch, pairing: str, loss: str, knobs: Knobs, anchor: int = 0) -> None:
        super().__init__("loss_view", loss, knobs)
        self._batch, self._pairing = batch, pairing
        self._sheet = thumbnail_sheet(batch.thumbs)
        self._view = compute_view(batch, pairing, loss, self.knobs)
        self._shown, self._moves = dict[str, Any](), 0  # moves of the anchor from Python: the browser reads it anew
        with self.quietly():
            self.anchor = anchor
        self.draw()

    @traitlets.validate("anchor")
    def _check_anchor(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < (n := len(self._view.names)):
            raise traitlets.TraitError(f"anchor must be from 0 to {n - 1}")
        return int(proposal["value"])

    @traitlets.observe("anchor")
    def _move(self, change: Any) -> None:
        if not self._is_quiet:
            self._moves += 1
            self.draw()

    def hear(self, said: Mapping[str, Any]) -> None:
        super().hear(said)
        if isinstance(anchor := said.get("anchor"), int):
            self.anchor = anchor
        self._shown = {name: said[name] for name in SHOWN if name in said}
        if self._view.kernel is None:
            self.draw()

    def draw(self) -> None:
        if self._view.kernel is None:  # a loss that the browser cannot compute
            self._view = compute_view(self._batch, self._pairing, self.loss, self.knobs)
        shown = LossView(
            first=setting_of(self._view, self.about, self.knobs, self._moves),
            axes=PairAxes.of(self._view, self._sheet),
            name=self.loss,
            title=self.about["title"],
            anchor=self.anchor,
            start=self._shown,
        )
        self.data = pack(shown)


def circle(loss: str = "nt_xent", *, points: int = 24, groups: int = 2, scatter: int = 0, **knobs: Any) -> CircleWidget:
    """Show points on a circle that follow the gradient of a loss.

    Args:
        points: 2 to 400. groups: of positives, 1 to 20. scatter: seed of the initial positions.
        knobs: of the loss, as `losses.knobs` lists them.
    Raises: ValueError with the reason, for example for a loss without a browser kernel."""
    for name, value, low, high in (("points", points, 2, 400), ("groups", groups, 1, 20)):
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high}; got {value!r}")
    return CircleWidget(loss, knobs, CircleStart(int(groups), int(points), int(scatter)))


class CircleWidget(KnobWidget):
    """Points on a circle. Read or set `temperature` or `margin`: the value when the mouse was last released."""

    def __init__(self, loss: str, knobs: Knobs, start: CircleStart) -> None:
        super().__init__("circle", loss, knobs)
        if self.about["kernel"] is None:
            text = "choose a loss of the softmax, hinge or sigmoid kind; the app's Loss Lab shows BYOL and SimSiam"
            raise ValueError(f"the browser cannot move points under {self.about['title']} with these knobs: {text}")
        self._start = start
        self.draw()

    def draw(self) -> None:
        kernel = {**(self.about["kernel"] or {}), **{name: self.knobs[name] for name in dragged(self.about)}}
        knob = knob_of(self.about, self.live, self.knobs[self.live]) if self.live else None
        more = further_knobs_of(self.about, self.knobs)
        self.data = pack_circle(CircleView(kernel, self.about["score"], knob, self._start, more=more))


def scatter(
    z: Any,
    labels: Any = None,
    *,
    color: Any = None,
    images: Any = None,
    ids: Sequence[Any] | None = None,
    classes: Sequence[str] | None = None,
    title: str = "map",
    height: int = 520,
) -> ScatterWidget:
    """Show a map with lasso, box, zoom, images on hover and search, of at most 1,000,000 rows.

    Args:
        z: positions (n, 2); wider rows (n, d) are reduced to two principal components.
        labels: (n) whole numbers, −1 for none, or names: a color for each class. color: (n)
            numbers instead, in eight steps. images: (n, c, h, w) or (n, h, w). ids: (n) texts.
        classes: names of the labels 0, 1, … title: of a saved picture. height: in pixels.
    Raises: ValueError with the reason."""
    rows = rows_of(z, least=1)
    if rows.ndim != 2:
        raise ValueError(f"z must be rows (n, d); got shape {rows.shape}: a map has one row each")
    n, d = rows.shape
    if n > MAX_POINTS:
        raise ValueError(f"a map draws at most {MAX_POINTS:,} rows; got {n:,}: give some of them")
    if images is not None and n > MAX_IMAGES:
        raise ValueError(f"a map holds at most {MAX_IMAGES:,} images; got {n:,}: leave them out")
    texts = list(map(str, range(n) if ids is None else ids))
    if len(texts) != n:
        raise ValueError(f"ids must be {n}, one for each row; got {len(texts)}")
    numbers, names = labels_of(labels, n, classes)
    values = None if labels is None else numbers
    if labels is None and color is not None:
        values = np.asarray(color)
        if values.shape != (n,) or values.dtype.kind not in "fiub":
            raise ValueError(f"color must be ({n},) numbers, one for each row; got {values.shape}")
    sheet = thumbnail_sheet(images_of(images, n))
    xy = rows if d == 2 else pca(rows)
    data = ScatterData(
        xy, ids=texts, content=digest(xy, sheet.picture), color=values, names=names, thumbnails=sheet, title=title
    )
    return ScatterWidget(data, height)


class ScatterWidget(LabWidget):
    """Map of rows. Read or set `selection`, the list of row numbers that are highlighted."""

    selection: Any = traitlets.List()  # travels within `reported` and `data`, packed

    def __init__(self, data: ScatterData, height: int = 520) -> None:
        super().__init__("scatter", "map")
        self._data, self._height, self._turns = data, height, 0
        self.draw()

    @traitlets.validate("selection")
    def _check(self, proposal: Any) -> list[int]:
        n, rows = len(self._data.xy), np.asarray(proposal["value"])
        if rows.size and (rows.ndim != 1 or rows.dtype.kind not in "iu"):
            raise traitlets.TraitError(f"rows are whole numbers; got {proposal['value']!r:.80}")
        if len(outside := rows[(rows < 0) | (rows >= n)]):
            raise traitlets.TraitError(f"rows are 0 to {n - 1}; got {outside[0]}")
        return list(rows.tolist())

    @traitlets.observe("selection")
    def _light(self, change: Any) -> None:
        if not self._is_quiet:
            self._turns += 1
            self.draw()

    def hear(self, said: Mapping[str, Any]) -> None:
        self.selection = rows_reported(said).tolist()

    def draw(self) -> None:
        self.data = pack_scatter(self._data, self.selection, str(self._turns), self._height)


# --- the user's rows ---


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
        raise ValueError(f"z must be numbers: rows (n, d), or views (images, views, d); got {rows.dtype} {rows.shape}")
    if len(rows) < least:
        raise ValueError(f"z needs at least {least} rows; got {len(rows)}")
    if not rows.shape[-1] or not rows.shape[1]:
        raise ValueError(f"z has no columns: its shape is {rows.shape}")
    with np.errstate(over="ignore"):  # reported below
        rows = np.ascontiguousarray(rows, np.float32)
    if len(bad := np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(1))):
        values = f"{len(bad)} of the {len(rows)} rows of z hold values that are not finite in float32"
        raise ValueError(f"{values}, the first is row {bad[0]}: leave them out")
    return rows


def labels_of(labels: Any, n: int, classes: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the class (n) int64 of each row, −1 for none, and the classes' names. Raises ValueError."""
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
    names = tuple(map(str, range(count) if classes is None else classes))
    if len(names) < count:
        raise ValueError(f"labels go up to {count - 1}, but there are {len(names)} classes")
    return whole, names


def images_of(images: Any, n: int, views: int = 1) -> np.ndarray | None:
    """Return images (n · views, c, h, w) uint8, image-major, from uint8 or 0 to 1. Raises ValueError."""
    if images is None:
        return None
    given = _array(images, "images")
    if given.ndim == 3:
        given = given[:, None]
    if given.ndim != 4 or given.shape[1] not in (1, 3) or len(given) not in (n, n * views):
        raise ValueError(f"images must be ({n}, 1 or 3, h, w), one for each row of z; got shape {given.shape}")
    if given.dtype.kind == "f":
        given = (255 * np.nan_to_num(given)).round()
    given = given.clip(0, 255).astype(np.uint8)
    return given if len(given) == n * views else np.repeat(given, views, axis=0)


def _array(given: Any, name: str) -> np.ndarray:
    """Convert anything array-like to an array, including a tensor on any device."""
    try:
        if hasattr(given, "detach"):
            given = given.detach().cpu()
            given = (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
        return np.asarray(given)
    except ValueError:
        raise ValueError(f"the rows of {name} are not equally long") from None
