"""The live loss view on rows of one's own, and points on a circle that follow a loss's own gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from contrastive_core import losses
from contrastive_core.loss_lab.view import compute_view
from contrastive_core.records.lab_view import LabBatch, LabView
from contrastive_lab.components.circle import CircleStart, CircleView, pack_circle
from contrastive_lab.components.loss_view import Alternatives, LossSetting, LossView, PairAxes, pack_loss_view
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.loss_description import about_loss
from contrastive_lab.loss_setting import dragged, further_knobs, further_knobs_of, knob_of, live_knob, setting_of
from contrastive_lab.widgets.host import KnobWidget, digest
from contrastive_lab.widgets.validation import images_of, labels_of, rows_of

MOST = 1024  # rows that stay smooth under a drag
SHOWN = ("view", "panel", "order", "masks", "second", "second_value")


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
    """A loss on rows, live: drag the knob and every pair answers.

    Args:
        z: rows (n, d), or views (images, views, d): arrays, tensors or lists, at most 1,024 rows.
        labels: (n) whole numbers, −1 for none, or names: rows of one class are positives. Without
            them the views of one image are.
        images: (n, c, h, w) or (n, h, w), shown beside the rows. classes: names of the labels.
        anchor: the row that is taken apart first. knobs: of the loss, as `losses.knobs` lists them.
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
    """`temperature` or `margin`, and `anchor`, are what was last let go, and can be set."""

    anchor = traitlets.Int(0).tag(sync=True)

    def __init__(self, batch: LabBatch, pairing: str, loss: str, knobs: dict[str, Any], anchor: int = 0) -> None:
        super().__init__("loss_view", loss, knobs)
        self._batch, self._pairing = batch, pairing
        self._sheet = thumbnail_sheet(batch.thumbs)
        self._view = compute_view(batch, pairing, loss, self.knobs)
        self._others = {f"loss:{n}": losses.get(n).card.title for n in losses.names() if n != loss}
        self._shown: dict[str, Any] = {}
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

    def hear(self, said: dict[str, Any]) -> None:
        super().hear(said)
        if isinstance(said.get("anchor"), int):
            self.anchor = said["anchor"]
        before, self._shown = self._shown, {name: said[name] for name in SHOWN if name in said}
        is_another = any(before.get(name) != self._shown.get(name) for name in ("panel", "second", "second_value"))
        if self._view.kernel is None or is_another:
            self.draw()

    def draw(self) -> None:
        """Send the view; a loss that the browser cannot compute is computed here."""
        if self._view.kernel is None:
            self._view = compute_view(self._batch, self._pairing, self.loss, self.knobs)
        setting = self._setting(self._view, self.about, self.knobs)
        choice, others = str(self._shown.get("second", "")), Alternatives([*self._others.items()])
        axes, second = PairAxes.of(self._view, self._sheet), self._second(choice)
        about = (self.loss, self.about["title"], self.anchor, self._shown)
        self.data = pack_loss_view(LossView(setting, axes, *about, others, choice, second))

    def _setting(self, view: LabView, about: dict[str, Any], knobs: dict[str, Any]) -> LossSetting:
        if view.kernel is not None:
            view = view.with_knobs(**{name: knobs[name] for name in dragged(about)})
        held = {k: v for k, v in knobs.items() if k not in dragged(about) or view.kernel is None}
        content = digest(view.scores, view.mask, about["title"], sorted(held.items()), self._moves)
        return setting_of(view, about, knobs, content)

    def _second(self, choice: str) -> LossSetting | None:
        """Another loss on the same pairs, once it is asked for."""
        if self._shown.get("panel") != "two" or choice not in self._others:
            return None
        name, value = choice.removeprefix("loss:"), self._shown.get("second_value")
        about = about_loss(name)
        knobs, live = about["values"], live_knob(about)
        if live and isinstance(value, int | float) and np.isfinite(value):
            knobs = knobs | {live: value}
        reason = "The second setting compares other pairs, so there is no difference to show."
        try:
            view = compute_view(self._batch, self._pairing, name, knobs)
            if view.scores.shape == self._view.scores.shape:
                return self._setting(view, about, knobs)
        except ValueError as error:
            reason = str(error)
        return LossSetting(digest(reason, name), reason=reason)


LIMITS = {"groups": (1, 20), "points": (2, 400)}


def circle(loss: str = "nt_xent", *, points: int = 24, groups: int = 2, scatter: int = 0, **knobs: Any) -> CircleWidget:
    """Points on a circle under a loss: run them, drag one, turn the knob.

    Args:
        points: 2 to 400. groups: of positives, 1 to 20. scatter: another number begins elsewhere.
        knobs: of the loss, as `losses.knobs` lists them.
    Raises: ValueError with the reason, for a loss that the browser has no kernel for among them."""
    for name, value in {"points": points, "groups": groups}.items():
        low, high = LIMITS[name]
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high}; got {value!r}")
    return CircleWidget(loss, knobs, CircleStart(int(groups), int(points), int(scatter)))


class CircleWidget(KnobWidget):
    """`temperature` or `margin` is what was last let go, and can be set."""

    def __init__(self, loss: str, knobs: dict[str, Any], start: CircleStart) -> None:
        super().__init__("circle", loss, knobs)
        if self.about["kernel"] is None:
            raise ValueError(
                f"the browser cannot move points under {self.about['title']} with these knobs: choose a loss of the "
                "softmax, hinge or sigmoid kind; the app's Loss Lab shows BYOL and SimSiam on the circle"
            )
        self._start = start
        self.draw()

    def draw(self) -> None:
        """Send the loss with its knob; where the points stand is the browser's."""
        kernel, knob = self.about["kernel"], None
        if self.live:
            kernel = kernel | {self.live: self.knobs[self.live]}
            knob = knob_of(self.about, self.live, self.knobs[self.live])
        kernel, more = (
            kernel | {n: self.knobs[n] for n in further_knobs(self.about)},
            further_knobs_of(self.about, self.knobs),
        )
        self.data = pack_circle(CircleView(kernel, self.about["score"], knob, self._start, more=more))
