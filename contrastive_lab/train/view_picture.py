"""A batch as a table of images: each image, the two views that attract each other, and the views it is compared with.
train.css sets its size on the stage."""

import base64
import html
import io
from collections.abc import Sequence

import numpy as np

from contrastive_core.data.dataset import visible
from contrastive_lab.locale import _

MOST_PIXELS = 128  # of a side of a tile
SMOOTH_FROM = 48  # pixels of a side; smaller images show their pixels
ROWS, OTHERS = 5, 8  # the fifth on a phone alone


def view_table(images: np.ndarray, views: np.ndarray, heads: Sequence[str], is_pushed: bool, note: str = "") -> str:
    """Return a table of images (k, c, h, w) and their views (k, v, c, h, w). Args: heads: for the images, the views and
    the others; is_pushed: whether the others are pushed away; note: beside the last heading."""
    kind = "push" if is_pushed else "beside"
    names = ("image", "pull", kind)
    texts = [f"<b>{html.escape(text)}</b>" for text in heads]
    texts[-1] += f"<small>{html.escape(note)}</small>" if note else ""
    head = "".join(f'<th class="{name}"><div>{text}</div></th>' for name, text in zip(names, texts, strict=True))
    rows = []
    for i in range(min(ROWS, len(images))):
        cells = ([images[i]], _two(views, i), _others(views, i))
        words = (_("image {number}"), _("view of image {number}"), _("view of an image other than {number}"))
        drawn = (
            "".join(_tile(tile, text.format(number=i + 1)) for tile in tiles)
            for tiles, text in zip(cells, words, strict=True)
        )
        rows.append(
            "".join(f'<td class="{name}"><div>{all}</div></td>' for name, all in zip(names, drawn, strict=True))
        )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="views"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _two(views: np.ndarray, i: int) -> list[np.ndarray]:
    """Return a view of each kind, or two views if there is only one kind."""
    return [views[i][0], views[i][views.shape[1] // 2]]


def _others(views: np.ndarray, i: int) -> list[np.ndarray]:
    """Return views of the other images: one of each, then the second of each."""
    k = len(views)
    every = [view for step in range(1, k) for view in _two(views, (i + step) % k)]
    return [*every[::2], *every[1::2]][:OTHERS]


def _tile(image: np.ndarray, text: str) -> str:
    """Return an image (c, h, w) uint8 as HTML, scaled down if it is large."""
    from PIL import Image

    kind = "smooth" if min(image.shape[1:]) >= SMOOTH_FROM else "pixels"
    step = max(1, -(-max(image.shape[1:]) // MOST_PIXELS))
    pixels = np.moveaxis(image[visible(len(image)), ::step, ::step], 0, -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG")
    uri = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return f'<img class="{kind}" src="{uri}" alt="{html.escape(text, quote=True)}" />'
