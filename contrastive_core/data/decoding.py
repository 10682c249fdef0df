"""One image file as uint8 pixels of one size: `.npy` arrays and what Pillow reads. Torch-free.

Values of 16 bits are scaled by 257, never clipped; what is transparent lies on white; EXIF turns
are undone; of several pages the first is taken, of more than three channels the first three. What
an array holds is told by its shape and type: (h, w), (c, h, w) or (h, w, c), where the shorter of
the first and last axis is that of the channels; integers of 8 or 16 bits as they are, others and
floats where they lie in 0..1, 0..255 or (integers) 0..65,535.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contrastive_core.data.pictures import MAX_PIXELS, opened_picture
from contrastive_core.errors import explained
from contrastive_core.storage.regular import open_regular, printable

if TYPE_CHECKING:
    import numpy as np  # imported late: a process that decodes pictures starts in half the time
    from PIL.Image import Image

__all__ = ["decoded", "is_gray", "reason_of", "row_of", "shape_of"]

GRAY_MODES = ("L", "1", "I;16", "I;16B", "I;16L", "I;16N", "I", "F", "LA", "La")
DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
PAGED = ("TIFF", "GIF", "WEBP", "PNG")  # a phone's JPEG may hold a second, smaller picture
GAP = 2  # a JPEG is decoded at a fraction of its size, at least so many times what is wanted
NARROWEST = 16  # an array this much longer than wide holds no image


def decoded(path: Path, side: int, gray: bool, resize: str = "crop") -> tuple[np.ndarray, str]:
    """One image (c, side, side) uint8, and what has to be said of it ("" for nothing).

    Raises: ValueError for what is no image; whatever Pillow raises at a damaged file.
    """
    import numpy as np

    row, note = row_of(str(path), side, gray, resize)
    return np.frombuffer(bytearray(row), np.uint8).reshape(-1, side, side), note


def row_of(filename: str, side: int, gray: bool, resize: str = "crop") -> tuple[bytes, str]:
    """As `decoded`: the values of the image, one channel after the other, without NumPy."""
    if filename.lower().endswith(".npy"):
        upright, note = _of_array(Path(filename))
        fitted = _fitted(upright, side, gray, resize)
    else:
        with opened_picture(filename) as image:
            several = image.format in PAGED and getattr(image, "is_animated", False)
            note = "of several pages the first was taken" if several else ""
            if image.format == "JPEG":
                image.draft(None, (GAP * side, GAP * side))
            fitted = _fitted(_upright(_in_8_bits(image)), side, gray, resize)
    return b"".join(fitted.tobytes("raw", band) for band in fitted.getbands()), note


def shape_of(path: Path) -> tuple[int, int]:
    """Width and height, from the head of the file. Raises as `decoded` does."""
    if path.suffix.lower() != ".npy":
        with opened_picture(path) as image:
            return image.size
    _, (height, width) = _axes(_array(path).shape)
    return width, height


def is_gray(path: Path) -> bool:
    """Whether it has no colors, from the head of the file. Raises as `decoded` does."""
    if path.suffix.lower() != ".npy":
        with opened_picture(path) as image:
            return image.mode in GRAY_MODES
    array = _array(path)
    channels, _ = _axes(array.shape)
    return channels is None or array.shape[channels] < 3


def reason_of(error: Exception) -> str:
    """Why an image cannot be read, in words that can be shown."""
    return printable(explained(error), 200)


# --- pictures ------------------------------------------------------------------------------------


def _fitted(upright: Image, side: int, gray: bool, resize: str) -> Image:
    """A square of one channel or three."""
    from PIL import Image, ImageOps

    flat, mode = _on_white(upright), "L" if gray else "RGB"
    if flat.mode != mode:  # else `convert` would copy it
        flat = flat.convert(mode)
    if flat.size == (side, side):
        return flat
    if resize == "pad":
        return ImageOps.pad(flat, (side, side), Image.Resampling.BILINEAR, color=0)
    return ImageOps.fit(flat, (side, side), Image.Resampling.BILINEAR)


def _upright(image: Image) -> Image:
    """Turned as its EXIF says; the picture itself, not a copy, where that says nothing."""
    from PIL import ImageOps

    ImageOps.exif_transpose(image, in_place=True)
    return image


def _in_8_bits(image: Image) -> Image:
    """The same picture with 8 bits a channel, its EXIF beside it."""
    if image.mode not in DEEP_MODES:
        return image
    import numpy as np
    from PIL import Image

    scaled = Image.fromarray(_scaled(np.asarray(image)))
    scaled.info = dict(image.info)
    if exif := image.getexif():
        scaled.info["exif"] = exif.tobytes()
    return scaled


def _on_white(image: Image) -> Image:
    """What is transparent, laid on white."""
    from PIL import Image

    if not image.has_transparency_data:
        return image
    above = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")


# --- arrays --------------------------------------------------------------------------------------


def _array(path: Path) -> np.ndarray:
    """The array of a file, of which only the head has been read."""
    import numpy as np

    with open_regular(path):
        pass  # an ordinary file
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "buif":
        raise ValueError("an array of numbers is expected")
    return array


def _axes(shape: tuple[int, ...]) -> tuple[int | None, tuple[int, int]]:
    """The axis of the channels (None: there is none), height and width."""
    if len(shape) == 2:
        channels, sides = None, (shape[0], shape[1])
    elif len(shape) == 3 and shape[0] <= shape[2]:
        channels, sides = 0, (shape[1], shape[2])
    elif len(shape) == 3:
        channels, sides = 2, (shape[0], shape[1])
    else:
        raise ValueError(f"an array of shape {shape}; (h, w), (c, h, w) or (h, w, c) is expected")
    low, high = min(sides), max(sides)
    if 0 in shape or high > NARROWEST * low or low * high > MAX_PIXELS:
        raise ValueError(f"an array of shape {shape}, which is that of no image")
    return channels, sides


def _of_array(path: Path) -> tuple[Image, str]:
    import numpy as np
    from PIL import Image

    array, note = _array(path), ""
    channels, _ = _axes(array.shape)
    if channels is not None:
        array = np.moveaxis(array, channels, -1)
        count = array.shape[-1]
        array = array[..., 0] if count < 3 else array[..., :3]
        if count not in (1, 3):
            note = f"of {count} channels the first {'was' if count < 3 else 'three were'} taken"
    return Image.fromarray(np.ascontiguousarray(_scaled(np.asarray(array)))), note


def _scaled(array: np.ndarray) -> np.ndarray:
    """Values of any type as uint8. Raises ValueError for values in no usual range."""
    import numpy as np

    kind, bits = array.dtype.kind, 8 * array.dtype.itemsize
    if kind == "u" and bits == 8:
        return array
    if kind == "b":
        return array * np.uint8(255)
    low, high = array.min(), array.max()
    if kind == "u" and bits == 16:
        top = 65535
    elif kind == "f":
        top = 1 if high <= 1 else 255
    else:
        top = 255 if high <= 255 else 65535
    if not (low >= 0 and high <= top):  # also NaN
        usual = "0 to 1 or 0 to 255" if kind == "f" else "0 to 255 or 0 to 65,535"
        raise ValueError(f"values from {low:g} to {high:g}; {usual} are expected")
    return np.rint(array.astype(np.float32) * np.float32(255 / top)).astype(np.uint8)
