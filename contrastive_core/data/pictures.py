"""The one way in which a picture is opened: listed formats, ordinary files, a limit on pixels.

Pillow chooses a reader by a file's content, not its name, and among its readers is one that hands
PostScript to another program; none of FORMATS runs anything. Torch-free; Pillow is imported late.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contrastive_core.storage.regular import open_regular

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ENDINGS", "FORMATS", "opened_picture"]

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
MAX_PIXELS = 64_000_000  # of one picture
MAX_BYTES = 512 << 20  # of its file


@contextmanager
def opened_picture(source: str | Path | bytes) -> Iterator[Image]:
    """A picture whose head has been read, while inside.

    Raises: NotRegular, OSError; ValueError for another format, too many pixels or bytes; whatever
    else Pillow raises.
    """
    from PIL import Image, UnidentifiedImageError

    with io.BytesIO(source) if isinstance(source, bytes) else open_regular(source) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if size > MAX_BYTES:
            raise ValueError(f"{size:,} bytes; at most {MAX_BYTES:,} are read of a picture")
        try:
            opened = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError:
            raise ValueError(f"no picture in one of the formats {', '.join(FORMATS)}") from None
        with opened as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(
                    f"{image.width:,} × {image.height:,} pixels; at most {MAX_PIXELS:,} are read"
                )
            yield image
