"""A first look: planted facts are found, and what follows has its reason."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core.advice.first_look import in_words, look


def folder(path: Path, draw, classes=("a", "b"), n: int = 60, gray: bool = False) -> str:
    """Images of `draw(rng, class)` → (16, 16, 3), for train and test."""
    rng = np.random.default_rng(0)
    for split, count in (("train", n), ("test", n // 3)):
        for number, name in enumerate(classes):
            place = path / split / name
            place.mkdir(parents=True)
            for i in range(count):
                array = np.clip(draw(rng, number), 0, 255).astype(np.uint8)
                image = Image.fromarray(array)
                (image.convert("L") if gray else image).save(place / f"{i}.png")
    return f"folder:{path}"


def by_color(rng: np.random.Generator, label: int) -> np.ndarray:
    image = rng.normal(90, 30, (16, 16, 3))
    image[..., label] += 90
    return image


def by_side(rng: np.random.Generator, label: int) -> np.ndarray:
    image = rng.normal(60, 10, (16, 16, 3))
    image[:, 8 * label : 8 * label + 8] += 120
    return image


def suggested(seen, setting: str):
    return next((s for s in seen.suggestions if s.setting == setting), None)


def test_color_that_names_the_class_is_kept(tmp_path: Path) -> None:
    seen = look(folder(tmp_path, by_color), device="cpu")
    assert seen.facts["color_knn"] > 0.95
    assert suggested(seen, "recipe.hue").values == {"recipe.hue": 0.0, "recipe.gray": 0.0}
    assert suggested(seen, "recipe.flip") is None or not suggested(seen, "recipe.flip").values
    told = in_words(seen.facts)
    assert "in color; 2 classes of 60." in told
    same, other = (seen.facts[f"{of}_class_cosine"] for of in ("same", "other"))
    assert f"mean cosine of centered pixels is {same:.2f} within a class and {other:.2f} between" in told


def test_sides_that_name_the_class_are_not_mirrored(tmp_path: Path) -> None:
    seen = look(folder(tmp_path, by_side), device="cpu")
    assert seen.facts["pixels_knn"] > 0.95 > 0.05 > seen.facts["mirrored_knn"]
    assert suggested(seen, "recipe.flip").text.startswith("no mirroring")
    assert suggested(seen, "recipe.hue").values == {}


def test_two_classes_hold_many_false_negatives(tmp_path: Path) -> None:
    seen = look(folder(tmp_path, by_side), device="cpu")
    assert seen.facts["same_class_negatives"] == pytest.approx(0.5)
    assert suggested(seen, "loss.temperature").text == "0.05 to 1"
    assert "negatives" in suggested(seen, "batch_size").reason
    supervised = look(folder(tmp_path / "again", by_side), method="sup_con", device="cpu")
    assert "are its positives" in suggested(supervised, "batch_size").reason
    assert "no negative is false" in suggested(supervised, "loss.temperature").reason
    assert suggested(seen, "batch_size").values["batch_size"] <= 15  # of 120 images


def test_of_gray_images_no_color_is_suggested(tmp_path: Path) -> None:
    seen = look(folder(tmp_path, by_side, gray=True), device="cpu")
    assert seen.facts["gray"]
    assert suggested(seen, "recipe.hue") is None


def test_images_without_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(30):
        Image.fromarray(rng.integers(0, 255, (16, 16), np.uint8)).save(tmp_path / f"{i}.png")
    seen = look(f"folder:{tmp_path}", device="cpu")
    few = "Too few images to try settings: at least 40 training images are needed."
    assert in_words(seen.facts).endswith(f"without classes. {few}")
    assert in_words({**seen.facts, "train": 40}).endswith("without classes.")
    assert {s.setting for s in seen.suggestions} == {"batch_size", "loss.temperature"}
