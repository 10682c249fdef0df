"""Records as Plotly figures."""

from __future__ import annotations

from contrastive_lab import plots


def test_curves_hold_what_they_are_given() -> None:
    figure = plots.curves({"loss": ([1, 2], [3.0, 2.0])}, "step", "loss")
    assert list(figure.data[0].y) == [3.0, 2.0]
    assert figure.layout.xaxis.title.text == "step"
