"""One image file as uint8 pixels of one size: `.npy` arrays and what Pillow reads. Torch-free.

Values of 16 bits are scaled by 257, never clipped; what is transparent lies on white; EXIF turns
are undone; of several pages the first is taken. What an array holds is told by its shape and type:
(h, w), (c, h, w) or (h, w, c), where of three axes the two that are alike are height and width,
else the shorter of the first and the last is that of the channels; integers of 8 or 16 bits as they
are, others and floats where they lie in 0..1, 0..255 or (integers) 0..65,535. An array keeps all of
its channels where those of the others are as many, else the first three.
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

__all__ = ["channels_of", "decoded", "reason_of", "row_of", "shape_of"]

GRAY_MODES = ("L", "1", "I;16", "I;16B", "I;16L", "I;16N", "I", "F", "LA", "La")
DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
PAGED = ("TIFF", "GIF", "WEBP", "PNG")  # a phone's JPEG may hold a second, smaller picture
GAP = 2  # a JPEG is decoded at a fraction of its size, at least so many times what is wanted
NARROWEST = 16  # an array this much longer than wide holds no image
MOST_CHANNELS = 1024  # an array of more holds no image, but perhaps many


def decoded(path: Path, side: int, channels: int, resize: str = "crop") -> tuple[np.ndarray, str]:
    """One image (channels, side, side) uint8, and what has to be said of it ("" for nothing).

    Args: channels: 1 makes any image gray and 3 a color image; of another number are arrays alone.
    Raises: ValueError for what is no image, or has other channels; whatever Pillow raises at a
        damaged file.
    """
    import numpy as np

    row, note = row_of(str(path), side, channels, resize)
    return np.frombuffer(bytearray(row), np.uint8).reshape(-1, side, side), note


def row_of(filename: str, side: int, channels: int, resize: str = "crop") -> tuple[bytes, str]:
    """As `decoded`: the values of the image, one channel after the other, without NumPy."""
    mode = "RGB" if channels == 3 else "L"
    if filename.lower().endswith(".npy"):
        flat, note = _of_array(Path(filename), channels)
        fitted = [_fitted(image, side, mode, resize) for image in flat]
    elif channels not in (1, 3):
        raise ValueError(f"a picture; an array of {channels} channels is expected")
    else:
        with opened_picture(filename) as image:
            several = image.format in PAGED and getattr(image, "is_animated", False)
            note = "of several pages the first was taken" if several else ""
            if image.format == "JPEG":
                image.draft(None, (GAP * side, GAP * side))
            fitted = [_fitted(_on_white(_upright(_in_8_bits(image))), side, mode, resize)]
    return b"".join(f.tobytes("raw", band) for f in fitted for band in f.getbands()), note


def shape_of(path: Path) -> tuple[int, int]:
    """Width and height, from the head of the file. Raises as `decoded` does."""
    if path.suffix.lower() != ".npy":
        with opened_picture(path) as image:
            return image.size
    _, (height, width) = _axes(_array(path).shape)
    return width, height


def channels_of(path: Path) -> int:
    """1 for a gray picture, 3 for another, as many as an array has; from the head of the file.
    Raises as `decoded` does."""
    if path.suffix.lower() != ".npy":
        with opened_picture(path) as image:
            return 1 if image.mode in GRAY_MODES else 3
    array = _array(path)
    axis, _ = _axes(array.shape)
    return 1 if axis is None else array.shape[axis]


def reason_of(error: Exception) -> str:
    """Why an image cannot be read, in words that can be shown."""
    return printable(explained(error), 200)


# --- pictures ------------------------------------------------------------------------------------


def _fitted(flat: Image, side: int, mode: str, resize: str) -> Image:
    """A square of one channel or three."""
    from PIL import Image, ImageOps

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
    if len(shape) not in (2, 3):
        raise ValueError(f"an array of shape {shape}; (h, w), (c, h, w) or (h, w, c) is expected")
    if len(shape) == 2:
        axis, sides = None, (shape[0], shape[1])
    elif shape[1] == shape[2] or (shape[0] != shape[1] and shape[0] <= shape[2]):
        axis, sides = 0, (shape[1], shape[2])
    else:
        axis, sides = 2, (shape[0], shape[1])
    low, high = min(sides), max(sides)
    is_one = axis is None or shape[axis] <= MOST_CHANNELS
    if not is_one or 0 in shape or high > NARROWEST * low or low * high > MAX_PIXELS:
        raise ValueError(f"an array of shape {shape}, which is that of no image")
    return axis, sides


def _of_array(path: Path, channels: int) -> tuple[list[Image], str]:
    """One image of one channel or three, or a gray one of each channel."""
    import numpy as np
    from PIL import Image

    array, note = _array(path), ""
    axis, _ = _axes(array.shape)
    array = array[..., None] if axis is None else np.moveaxis(array, axis, -1)
    count = array.shape[-1]
    if channels not in (1, 3):
        if count != channels:
            raise ValueError(f"an array of {count} channels; those of the others have {channels}")
        bands = np.moveaxis(_scaled(np.asarray(array)), -1, 0)
        return [Image.fromarray(np.ascontiguousarray(band)) for band in bands], note
    array = array[..., 0] if count < 3 else array[..., :3]
    if count not in (1, 3):
        note = f"of {count} channels the first {'was' if count < 3 else 'three were'} taken"
    return [Image.fromarray(np.ascontiguousarray(_scaled(np.asarray(array))))], note


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
