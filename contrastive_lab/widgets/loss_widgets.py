"""Widgets: the live loss view on the user's rows, points on a circle that follow a loss's own gradient, and a map of
many rows with images, whose selection is returned as row numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import traitlets

from contrastive_core import losses
from contrastive_core.base.cards import LossEntry
from contrastive_core.base.registry import Knobs
from contrastive_core.lab.lab_view import LabBatch, LabView
from contrastive_core.lab.view import about_loss, compute_view
from contrastive_core.spaces.nearest import pca
from contrastive_lab.components.circle import CircleStart, CircleView, pack_circle
from contrastive_lab.components.loss_view import Alternatives, LossSetting, LossView, PairAxes, pack_loss_view
from contrastive_lab.components.scatter import MAX_IMAGES, MAX_POINTS, ScatterData, pack_scatter
from contrastive_lab.components.scatter import rows_of as rows_reported
from contrastive_lab.components.shared.transport import thumbnail_sheet
from contrastive_lab.loss_setting import dragged, further_knobs, further_knobs_of, knob_of, live_knob, setting_of
from contrastive_lab.widgets.host import KnobWidget, LabWidget, digest, images_of, labels_of, rows_of

MOST = 1024  # rows that stay smooth under a drag
SHOWN = ("view", "stage", "order", "masks", "second", "second_value")


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
    rows = rows if rows.ndim == 3 else rows[:, None]
    b, v = rows.shape[:2]
    if b * v > MOST:
        raise ValueError(f"the live view draws at most {MOST:,} rows; got {b * v:,}: give some")
    if labels is None and v == 1:
        raise ValueError("these rows have no positives: give labels, or views (images, views, d) of each image")
    numbers, names = labels_of(labels, b, classes)
    pictures = images_of(images, b, v)
    batch = LabBatch(rows, numbers, pictures, names, [str(i) for i in range(b)])
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
        self._others = {f"loss:{n}": losses.get(n).card.title for n in losses.names() if n != loss}
        self._shown: dict[str, object] = {}
        self._moves = 0  # of the anchor from Python: the browser reads its place anew
        with self.quietly():
            self.anchor = anchor
        self.draw()

    @traitlets.validate("anchor")
    def _check_anchor(self, proposal: Any) -> int:
        n = len(self._view.names)
        if not 0 <= proposal["value"] < n:
            raise traitlets.TraitError(f"anchor must be from 0 to {n - 1}")
        return int(proposal["value"])

    @traitlets.observe("anchor")
    def _move(self, change: Any) -> None:
        if not self._is_quiet:
            self._moves += 1
            self.draw()

    def hear(self, said: Mapping[str, object]) -> None:
        super().hear(said)
        if isinstance(anchor := said.get("anchor"), int):
            self.anchor = anchor
        before, self._shown = self._shown, {name: said[name] for name in SHOWN if name in said}
        is_another = any(before.get(name) != self._shown.get(name) for name in ("second", "second_value"))
        if self._view.kernel is None or is_another:
            self.draw()

    def draw(self) -> None:
        """Send the view; a loss without a browser kernel is computed here."""
        if self._view.kernel is None:
            self._view = compute_view(self._batch, self._pairing, self.loss, self.knobs)
        setting = self._setting(self._view, self.about, self.knobs)
        choice, others = str(self._shown.get("second", "")), Alternatives([*self._others.items()])
        shown = LossView(
            first=setting,
            axes=PairAxes.of(self._view, self._sheet),
            name=self.loss,
            title=self.about["title"],
            anchor=self.anchor,
            start=self._shown,
            alternatives=others,
            choice=choice,
            second=self._second(choice),
        )
        self.data = pack_loss_view(shown)

    def _setting(self, view: LabView, about: LossEntry, knobs: Knobs) -> LossSetting:
        if view.kernel is not None:
            view = view.with_knobs(**{name: knobs[name] for name in dragged(about)})
        held = {k: v for k, v in knobs.items() if k not in dragged(about) or view.kernel is None}
        content = digest(view.scores, view.mask, about["title"], sorted(held.items()), self._moves)
        return setting_of(view, about, knobs, content)

    def _second(self, choice: str) -> LossSetting | None:
        """Return another loss on the same pairs, if the user asked for one."""
        if choice not in self._others:
            return None
        name, value = choice.removeprefix("loss:"), self._shown.get("second_value")
        about = about_loss(name)
        knobs, live = about["values"], live_knob(about)
        if live and isinstance(value, int | float) and np.isfinite(value):
            knobs = knobs | {live: value}
        reason = "The second setting compares different pairs, so no difference can be shown."
        try:
            view = compute_view(self._batch, self._pairing, name, knobs)
            if view.scores.shape == self._view.scores.shape:
                return self._setting(view, about, knobs)
        except ValueError as error:
            reason = str(error)
        return LossSetting(digest(reason, name), reason=reason)


LIMITS = {"groups": (1, 20), "points": (2, 400)}


def circle(loss: str = "nt_xent", *, points: int = 24, groups: int = 2, scatter: int = 0, **knobs: Any) -> CircleWidget:
    """Show points on a circle that follow the gradient of a loss.

    Args:
        points: 2 to 400. groups: of positives, 1 to 20. scatter: seed of the initial positions.
        knobs: of the loss, as `losses.knobs` lists them.
    Raises: ValueError with the reason, for example for a loss without a browser kernel."""
    for name, value in {"points": points, "groups": groups}.items():
        low, high = LIMITS[name]
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high}; got {value!r}")
    return CircleWidget(loss, knobs, CircleStart(int(groups), int(points), int(scatter)))


class CircleWidget(KnobWidget):
    """Points on a circle. Read or set `temperature` or `margin`: the value when the mouse was last released."""

    def __init__(self, loss: str, knobs: Knobs, start: CircleStart) -> None:
        super().__init__("circle", loss, knobs)
        if self.about["kernel"] is None:
            raise ValueError(
                f"the browser cannot move points under {self.about['title']} with these knobs: choose a loss of the "
                "softmax, hinge or sigmoid kind; the app's Loss Lab shows BYOL and SimSiam on the circle"
            )
        self._start = start
        self.draw()

    def draw(self) -> None:
        """Send the loss with its knob; the browser computes the positions."""
        kernel: dict[str, object] = {**(self.about["kernel"] or {})}
        knob = None
        if self.live:
            kernel = kernel | {self.live: self.knobs[self.live]}
            knob = knob_of(self.about, self.live, self.knobs[self.live])
        kernel |= {name: self.knobs[name] for name in further_knobs(self.about)}
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
    texts = [str(text) for text in (range(n) if ids is None else ids)]
    if len(texts) != n:
        raise ValueError(f"ids must be {n}, one for each row; got {len(texts)}")
    xy = rows if d == 2 else pca(rows)
    numbers, names = labels_of(labels, n, classes)
    values = None if labels is None else numbers
    if values is None and color is not None:
        values = np.asarray(color)
        if values.shape != (n,) or values.dtype.kind not in "fiub":
            raise ValueError(f"color must be ({n},) numbers, one for each row; got {values.shape}")
        values = values.astype(np.float64)
    sheet = thumbnail_sheet(images_of(images, n))
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
        outside = rows[(rows < 0) | (rows >= n)]
        if len(outside):
            raise traitlets.TraitError(f"rows are 0 to {n - 1}; got {outside[0]}")
        return list(rows.tolist())

    @traitlets.observe("selection")
    def _light(self, change: Any) -> None:
        if not self._is_quiet:
            self._turns += 1
            self.draw()

    def hear(self, said: Mapping[str, object]) -> None:
        self.selection = rows_reported(said).tolist()

    def draw(self) -> None:
        """Send the map with the selected rows."""
        self.data = pack_scatter(self._data, self.selection, str(self._turns), self._height)
