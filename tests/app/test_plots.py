"""Records as Plotly figures."""

import numpy as np
import pytest

from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import figures
from contrastive_lab.components.scatter import PALETTE, categories
from contrastive_lab.embedding_map import color_names, color_of, hints_of


def test_curves_hold_what_they_are_given() -> None:
    figure = figures.curves({"loss": ([1, 2], [3.0, 2.0])}, "step", "loss")
    assert list(figure.data[0].y) == [3.0, 2.0]
    assert figure.layout.xaxis.title.text == "step"
    assert (figure.layout.legend.y > 1, figure.layout.legend.yanchor) == (True, "bottom"), "it covers the first points"


def test_a_figure_for_a_paper_has_its_size_font_and_legend_inside() -> None:
    figure = figures.curves({"a": ([1, 2], [3.0, 2.0]), "b": ([1, 2], [1.0, 2.0])}, "τ", "loss")
    copy = figures.for_paper(figure, (85, 50), "Times", 8, (1, 0)).layout
    assert (copy.width, copy.height) == (round(85 / 25.4 * 96), round(50 / 25.4 * 96))
    assert copy.font.size == copy.xaxis.title.font.size == pytest.approx(8 / 72 * 96)
    assert "Times" in copy.font.family
    assert (copy.legend.x, copy.legend.xanchor, copy.legend.yanchor) == (0.98, "right", "bottom")
    assert figure.layout.width is None


def test_a_row_that_was_not_judged_is_no_row_without_label() -> None:
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), np.array([0, 1, 1]))
    judged = {"knn:per_sample": np.array([1.0, 0.0, np.nan])}
    values, names = color_of(rows, "right or wrong (kNN)", judged)
    assert values is not None
    assert values.tolist() == [0, 1, 2]
    assert names == ("right", "wrong", "not judged")
    judged["knn:per_sample"][2] = 1
    assert color_of(rows, "right or wrong (kNN)", judged)[1] == ("right", "wrong")


def test_two_towers_are_colored_by_tower_first() -> None:
    columns = {"text": np.array(["a", "b", "c"]), "tower": np.array(["x", "x", "y"]), "pair": np.array(["1", "2", "1"])}
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), columns=columns)
    assert color_names(rows, judged=False, is_run=False) == ["tower", "sample", "text"]
    assert color_names(rows.take([0, 1]), judged=False, is_run=False)[0] == "sample"  # rows of one tower


def test_columns_of_a_list_of_images_color_the_map_and_are_said_of_each() -> None:
    columns = {
        "site": np.array(["a", "b", "a"]),
        "age": np.array([40.0, np.nan, 61.5]),
        "class": np.array(["u", "v", "v"]),
        "same": np.array([1.0, 1.0, 1.0]),
    }
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), np.array([0, 1, 1]), columns=columns)
    offered = color_names(rows, judged=False, is_run=True)
    assert offered == ["class", "site", "age", "class (column)", "loss"]
    sites, names = color_of(rows, "site", {})
    assert sites is not None
    assert sites.tolist() == [0, 1, 0]
    assert names == ("a", "b")
    ages, scale = color_of(rows, "age", {})
    assert scale == ()  # a ramp
    group, labels, _ = categories(ages, scale, 3, PALETTE)
    assert group[0] < group[2] < 8 == group[1]
    assert labels[8] == "no value"
    assert color_of(rows, "class (column)", {})[1] == ("u", "v")
    assert hints_of(rows)[1].splitlines() == ["site: b", "class (column): v", "age: –", "same: 1"]
