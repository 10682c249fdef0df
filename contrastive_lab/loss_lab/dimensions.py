"""A loss over dimensions on a batch: the browser computes its matrix of dimensions and its terms."""

from functools import partial
from typing import Any

from contrastive_core.records.lab_view import LabView
from contrastive_lab.components.dimension_view import DimensionView, draw_dimension_view
from contrastive_lab.loss_lab.controls import reported
from contrastive_lab.loss_lab.lesson_panel import hear, panel_of
from contrastive_lab.loss_setting import further_knobs_of


def key_of_part(key: str, about: dict[str, Any]) -> str:
    """Return the key of the part that shows a loss. about: the loss's entry in the catalog."""
    return f"{key}-dimensions" if about["matrix"] else key


def draw_dimensions(
    view: LabView, loss: tuple[str, dict[str, Any]], knobs: dict[str, Any], content: str, part: str, lesson: int
) -> None:
    """Draw the view. loss: its name and entry in the catalog; content: changes when the batch or the loss does; part:
    key of the page's live part."""
    assert view.views is not None  # the library gave rows to show
    name, about = loss
    count = len(view.names) // len(view.views)  # views of each image, the first two are compared
    names = [name for row, name in enumerate(view.names) if row % count < 2]
    shown = DimensionView(
        content,
        about["matrix"],
        view.views,
        names,
        name,
        about["title"],
        further_knobs_of(about, knobs),
        reported(part).get("report"),
        panel_of(lesson),
    )
    draw_dimension_view(shown, part, partial(hear, part))
