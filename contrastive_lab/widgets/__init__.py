"""Widgets of the lab for notebooks: Jupyter, VS Code, marimo. They import no Streamlit and send no data anywhere.

>>> from contrastive_lab.widgets import loss_view >>> view = loss_view(z, labels=y, loss="sup_con")   # the last line of
a cell shows it >>> view.temperature                                # the last released value; it can also be set"""

try:
    import anywidget as _  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "the widgets need anywidget, which is missing: pip install 'contrastive-lab[notebook]'"
    ) from None

from contrastive_lab.widgets.loss_widgets import CircleWidget, LossViewWidget, ScatterWidget, circle, loss_view, scatter

__all__ = ["CircleWidget", "LossViewWidget", "ScatterWidget", "circle", "loss_view", "scatter"]
