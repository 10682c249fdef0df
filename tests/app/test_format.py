"""Records and settings as text and tables: figures with their unit, words, and nothing a spreadsheet would run."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from contrastive_core.base.score import ClassShare, Score
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import format
from contrastive_lab.explore import export
from contrastive_lab.setting_names import shown_name, shown_value


def test_shares_are_per_cent_and_the_missing_is_a_dash() -> None:
    share = Score("kNN", value=0.9876, unit="share", interval=(0.97, 0.996))
    assert format.figure_of(share) == "98.8 %"
    assert format.interval_of(share) == "97.0 to 99.6"
    assert format.interval_of(ClassShare("disc", 3, 0.5, (0.25, 0.75), (3,))) == "25.0 to 75.0"
    number = Score("Uniformity", value=-1.706, unit="nats", interval=(-1.8, -1.6123))
    assert format.figure_of(number) == "-1.71"
    assert format.interval_of(number) == "-1.80 to -1.61"
    rank = Score("RankMe", value=60.295, unit="dimensions", interval=(9.5, 61.04))
    assert (format.figure_of(rank), format.interval_of(rank)) == ("60.3", "9.5 to 61.0")
    assert format.figure_of(Score("Alignment", value=0.00042)) == "0.000420"
    assert format.figure_of(None) == format.figure_of(Score("kNN", missing="no labels")) == "–"
    assert format.interval_of(Score("kNN", value=0.5)) == ""


def test_how_far_a_map_can_be_believed_and_what_it_is_made_of() -> None:
    quality = {"trustworthiness": 0.95, "continuity": 0.9, "k": 15}
    exact = "Trustworthiness 0.950, continuity 0.900 (k = 15; 1 is best). "
    assert format.quality_of(quality) == exact
    told = format.quality_of({**quality, "recall": 0.985})
    assert told == exact.replace("best)", "best; approximate neighbors, recall 98.5 %)")
    assert format.quality_of({}) == ""
    of_some = {**quality, "judged": 500, "n": 300_000, "trustworthiness_of_landmarks": 0.97}
    more = "Both are computed on 500 of 300,000 rows. The trustworthiness of the landmarks is 0.970. "
    assert format.quality_of(of_some) == exact + more


def test_a_map_of_landmarks_says_so() -> None:
    settings = {"kind": "umap", "seed": 0, "min_dist": 0.1}
    assert format.map_of(settings, "test set") == "UMAP of the test set: seed 0, min_dist 0.1. "
    told = format.map_of({**settings, "landmarks": 150_000})
    assert told.endswith("the other points are placed among their nearest landmarks. ")
    assert format.map_of({"kind": "pca"}) == "PCA. "


def test_headers_of_tables_are_no_formulas(tmp_path) -> None:
    from contrastive_core.base.storage import write_table
    from contrastive_lab import format

    name, value = "=HYPERLINK(1)", "@SUM(1)"
    assert format.table_csv([{name: value}]).split() == [f"'{name}", f"'{value}"]
    write_table(tmp_path / "a.csv", {name: [value, "-1.5"]})
    assert (tmp_path / "a.csv").read_text().split() == [f"'{name}", f"'{value}", "-1.5"]


def test_rows_of_a_table_are_asked_for_one_after_the_other() -> None:
    asked: list[int] = []

    def rows() -> Iterator[dict[str, Any]]:
        for number in range(3):
            asked.append(number)
            yield {"number": number, "none": None}

    assert format.table_csv(rows()).splitlines() == ["number,none", "0,", "1,", "2,"]
    assert asked == [0, 1, 2]
    assert format.table_csv([]) == ""


def test_a_table_has_every_field_and_numbers_as_numbers() -> None:
    rows = [{"run": "a", "95 %": format.interval((1, 2))}, {"run": "raw", "kNN": None}, {"run": "b", "kNN": 3}]
    lines = ["run,95 % low,95 % high,kNN", "a,1.0,2.0,", "raw,,,", "b,,,3"]
    assert format.table_csv(rows).splitlines() == lines
    assert format.number_of(Score("kNN", "", 0.935, unit="share")) == {"value": 93.5, "unit": "%"}
    assert format.number_of(None) == {"value": None, "unit": None}


def test_a_row_without_a_label_is_empty_in_every_file() -> None:
    rows = EmbeddingSet(np.eye(3, dtype=np.float32), np.array([1, -1, 0]), classes=("one", "two"))
    assert format.csv_of(rows, [1]).splitlines() == ["id,label,x0,x1,x2", "1,,0.0,1.0,0.0"]
    assert rows.label_columns == {"label": [1, None, 0], "class": ["two", None, "one"]}
    assert export.table(rows, np.zeros((3, 2)), [1, 2], "csv").decode().splitlines()[1].startswith("1,,,0.0,0.0,")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("there is no predictor; use --set method.predictor=on", "use “Further settings” method.predictor=on"),
        ("use --set batch_size=64 or more", "use “Batch size” 64 or more"),
        ("a lower learning rate (--set lr=1e-05), clipped gradients (--set clip=1), or", "(“Learning rate” 1e-05)"),
        ("use --set loss.trade_off=0.05. Then", "“Further settings” loss.trade_off=0.05. Then"),
        ("no option here: --set", "no option here: --set"),
    ],
)
def test_a_remedy_names_the_field_of_the_form(text: str, shown: str) -> None:
    assert shown in format.in_form(text)


def test_what_a_step_is_like_is_told_where_the_step_is_on() -> None:
    recipe = {
        "crop": 1.0,
        "crop_aspect": 4 / 3,
        "rotation": 0.0,
        "rotation_degrees": 15.0,
        "blur": 0.5,
        "blur_low": 0.1,
        "solarize": 0.0,
        "solarize_from": 0.5,
    }
    said = "crop 1; crop's aspect ratio 1.333; blur 0.5; smallest blur, pixels 0.1"
    assert shown_value(recipe) == said
    assert shown_value({"blur_low": 0.1}) == "smallest blur, pixels 0.1"  # of a part of a recipe


def test_names_are_words() -> None:
    assert shown_name("recipe.crop_low") == "augmentations: smallest crop"
    assert shown_name("batch_size") == "batch size"
