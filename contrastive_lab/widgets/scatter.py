"""A map of many rows, with their pictures; what is selected comes back as row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets

from contrastive_core.embeddings.pca import pca
from contrastive_lab.components.scatter import MAX_IMAGES, MAX_POINTS, ScatterData, pack_scatter
from contrastive_lab.components.scatter import rows_of as rows_reported
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.widgets.host import LabWidget, digest
from contrastive_lab.widgets.validation import images_of, labels_of, rows_of


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
    """A map: lasso, box, zoom, pictures on hover, search; at most 1,000,000 rows.

    Args:
        z: places (n, 2); of wider rows (n, d) the two leading principal components.
        labels: (n) whole numbers, −1 for none, or names: a color for each class. color: (n)
            numbers instead, in eight steps. images: (n, c, h, w) or (n, h, w). ids: (n) texts.
        classes: names of the labels 0, 1, … title: of a saved picture. height: in pixels.
    Raises: ValueError with the reason.
    """
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
    values = numbers if labels is not None else None if color is None else _numbers(color, n)
    sheet = thumbnail_sheet(images_of(images, n))
    content = digest(xy, sheet.picture)
    return ScatterWidget(ScatterData(xy, texts, content, values, names, thumbnails=sheet, title=title), height)


class ScatterWidget(LabWidget):
    """`selection`: the rows that are lit, a list of numbers; it can be set."""

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

    def hear(self, said: dict[str, Any]) -> None:
        self.selection = rows_reported(said).tolist()

    def draw(self) -> None:
        """Send the map with the rows that are lit."""
        self.data = pack_scatter(self._data, self.selection, str(self._turns), self._height)


def _numbers(color: Any, n: int) -> np.ndarray:
    values = np.asarray(color)
    if values.shape != (n,) or values.dtype.kind not in "fiub":
        raise ValueError(f"color must be ({n},) numbers, one for each row; got {values.shape}")
    return values.astype(np.float64)
