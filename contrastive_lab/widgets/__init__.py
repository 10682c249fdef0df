"""The lab in a notebook: Jupyter, VS Code, marimo. Imports no Streamlit; sends nothing anywhere.

>>> from contrastive_lab.widgets import loss_view
>>> view = loss_view(z, labels=y, loss="sup_con")   # the last line of a cell shows it
>>> view.temperature                                # what was last let go; it can be set, too
"""

try:
    import anywidget as _  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "the widgets need anywidget, which is missing: pip install 'contrastive-lab[notebook]'"
    ) from None

from contrastive_lab.widgets.loss_widgets import CircleWidget, LossViewWidget, ScatterWidget, circle, loss_view, scatter

__all__ = ["CircleWidget", "LossViewWidget", "ScatterWidget", "circle", "loss_view", "scatter"]
