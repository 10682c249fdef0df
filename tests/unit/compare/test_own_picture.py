"""A picture of the user's finds the images that are most similar; a file that is none gets a sentence."""

import io

import numpy as np
import pytest
from PIL import Image

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.compare.likeness import decode_like, nearest_to_picture
from contrastive_core.data import datasets


def as_png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0).squeeze()).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("name", ["digits", "shapes"])
def test_an_image_of_the_split_finds_itself_first(name: str) -> None:
    data = datasets.load(name, "test")
    picture = as_png(np.asarray(data.images[7]))
    np.testing.assert_array_equal(decode_like(data, picture), data.images[7])
    near = nearest_to_picture(runs.load(f"simclr-{name}"), "test", picture, 5)
    assert near[0] == (data.ids[7], pytest.approx(1.0, abs=1e-5))
    assert len({sample for sample, _cosine in near}) == 5
    assert [cosine for _sample, cosine in near] == sorted((cosine for _sample, cosine in near), reverse=True)


@pytest.mark.parametrize(
    "content", [b"", b"no image at all", as_png(np.zeros((3, 8, 8), np.uint8))[:45]], ids=["empty", "text", "cut"]
)
def test_what_is_no_image_gets_one_sentence(content: bytes) -> None:
    with pytest.raises(BadSetting, match=r"^This file cannot be read as an image: [^\n]+$"):
        decode_like(datasets.load("digits", "test"), content)
