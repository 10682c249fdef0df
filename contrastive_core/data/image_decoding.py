"""Decoding of one image file, a picture or an `.npy` array, to uint8 pixels of one size.

Pillow chooses a decoder by a file's content, and one of its decoders passes PostScript to another
program, so only `FORMATS` are opened, with limits on bytes and pixels.

- 16-bit values are divided by 257, never clipped.
- Transparent pixels get a white background; EXIF rotations are applied; only the first of several pages is read.
- An array has the shape (h, w), (c, h, w) or (h, w, c). In three dimensions, two equal lengths are
  height and width; otherwise the shorter of the first and last axis holds the channels.
- Arrays may hold 8- or 16-bit integers, other integers in 0..255 or 0..65,535, or floats in 0..1 or
  0..255. An array keeps all channels if the other arrays have as many, else the first three."""

import io
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from contrastive_core.base.errors import Damaged, Refused, explained
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.sandbox import Limits, Sandbox
from contrastive_core.base.storage import open_regular

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
MAX_PIXELS = 64_000_000  # of one picture
MAX_BYTES = 512 << 20  # of its file
GRAY_MODES = ("L", "1", "I;16", "I;16B", "I;16L", "I;16N", "I", "F", "LA", "La")
DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
PAGED = ("TIFF", "GIF", "WEBP", "PNG")  # not JPEG: a phone's may hold a second, smaller picture
GAP = 2  # a JPEG is decoded at reduced size, at least this multiple of the target
NARROWEST = 16  # an array with this aspect ratio is not an image
HEADER = 128  # bytes of a file before the first row of decoded images
MOST_CHANNELS = 1024  # an array with more is not one image
DIED = N_("the image reader crashes on this file")


@contextmanager
def open_image(source: str | Path | bytes) -> Iterator[Image.Image]:
    """Open a picture. Raises NotRegular, OSError, Pillow's errors; Damaged for other formats or too large pictures."""
    with io.BytesIO(source) if isinstance(source, bytes) else open_regular(source) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if size > MAX_BYTES:
            facts = {"size": f"{size:,}", "max_bytes": f"{MAX_BYTES:,}"}
            raise Damaged("{size} bytes; an image file may have at most {max_bytes}", **facts)
        try:
            opened = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError:
            raise Damaged("not an image in one of the formats {formats}", formats=", ".join(FORMATS)) from None
        with opened as image:
            if image.width * image.height > MAX_PIXELS:
                values = {"width": f"{image.width:,}", "height": f"{image.height:,}", "max_pixels": f"{MAX_PIXELS:,}"}
                raise Damaged("{width} × {height} pixels; an image may have at most {max_pixels}", **values)
            yield image


def decode_image(path: str | Path, side: int, channels: int, resize: str = "crop") -> tuple[np.ndarray, str]:
    """Return one image (channels, side, side) uint8 and a note on unread parts ("" for none). `channels`: 1 converts to
    gray, 3 to color; other numbers are for arrays only. Raises: Damaged for files that are not images or have other
    channels; Pillow's errors for damaged files."""
    path, mode = Path(path), "RGB" if channels == 3 else "L"
    if path.suffix.lower() == ".npy":
        bands, note = _array_images(path, channels)
        fitted = [_fit(image, side, mode, resize) for image in bands]
    elif channels not in (1, 3):
        raise Damaged("a picture; an array of {channels} channels is expected", channels=channels)
    else:
        with open_image(path) as image:
            has_pages = image.format in PAGED and getattr(image, "is_animated", False)
            note = N_("several pages; only the first was read") if has_pages else ""
            if image.format == "JPEG":
                image.draft(None, (GAP * side, GAP * side))
            if image.mode in DEEP_MODES:  # to 8 bits per channel, with its EXIF data
                scaled = Image.fromarray(_scale(np.asarray(image)))
                scaled.info = dict(image.info)
                if exif := image.getexif():
                    scaled.info["exif"] = exif.tobytes()
                image = scaled
            ImageOps.exif_transpose(image, in_place=True)
            if image.has_transparency_data:
                above = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
            fitted = [_fit(image, side, mode, resize)]
    planes = [np.asarray(f)[None] if f.mode == "L" else np.asarray(f).transpose(2, 0, 1) for f in fitted]
    return np.ascontiguousarray(np.concatenate(planes)), note


class Header(NamedTuple):
    """The size of an image in pixels and its channels: 1 for gray pictures, 3 for color, or those of an array."""

    width: int
    height: int
    channels: int


def read_header(path: Path) -> Header:
    """Read the header of an image file. Raises the errors of `decode_image`."""
    if path.suffix.lower() != ".npy":
        with open_image(path) as image:
            return Header(*image.size, 1 if image.mode in GRAY_MODES else 3)
    array = _array(path)
    axis, (height, width) = _axes(array.shape)
    return Header(width, height, 1 if axis is None else array.shape[axis])


def read_error(error: Exception) -> str:
    """Return why an image cannot be read, as text that is safe to display."""
    return printable(explained(error), 200)


def _fit(image: Image.Image, side: int, mode: str, resize: str) -> Image.Image:
    """Resize to a square of `side` pixels in the mode L or RGB."""
    if image.mode != mode:  # `convert` copies also when nothing changes
        image = image.convert(mode)
    if image.size == (side, side):
        return image
    if resize == "pad":
        return ImageOps.pad(image, (side, side), Image.Resampling.BILINEAR, color=0)
    return ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)


def _array(path: Path) -> np.ndarray:
    """Open the array of a file as a memory map. Raises ValueError for other content."""
    open_regular(path, MAX_BYTES).close()
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "buif":
        raise ValueError(N_("an array of numbers is expected"))
    return array


def _axes(shape: tuple[int, ...]) -> tuple[int | None, tuple[int, int]]:
    """Return the axis of the channels (None without one), and height and width."""
    if len(shape) not in (2, 3):
        raise Damaged("an array of shape {shape}; (h, w), (c, h, w) or (h, w, c) is expected", shape=shape)
    if len(shape) == 2:
        axis, sides = None, (shape[0], shape[1])
    elif shape[1] == shape[2] or (shape[0] != shape[1] and shape[0] <= shape[2]):
        axis, sides = 0, (shape[1], shape[2])
    else:
        axis, sides = 2, (shape[0], shape[1])
    low, high = min(sides), max(sides)
    is_one = axis is None or shape[axis] <= MOST_CHANNELS
    if not is_one or 0 in shape or high > NARROWEST * low or low * high > MAX_PIXELS:
        raise Damaged("an array of shape {shape} is not an image", shape=shape)
    return axis, sides


def _array_images(path: Path, channels: int) -> tuple[list[Image.Image], str]:
    """Return one image with one or three channels, or one gray image per channel, and a note."""
    array, note = _array(path), ""
    axis, _ = _axes(array.shape)
    array = array[..., None] if axis is None else np.moveaxis(array, axis, -1)
    count = array.shape[-1]
    if channels in (1, 3):
        if count > 3:
            note = message("{count} channels; only the first three were read", count=count)
        elif count == 2:
            note = message("{count} channels; only the first was read", count=count)
        bands = [array[..., 0] if count < 3 else array[..., :3]]
    elif count == channels:
        bands = [*np.moveaxis(_scale(np.asarray(array)), -1, 0)]
    else:
        values = {"count": count, "channels": channels}
        raise Damaged("an array with {count} channels; the other arrays have {channels}", **values)
    return [Image.fromarray(np.ascontiguousarray(_scale(np.asarray(band)))) for band in bands], note


def _scale(array: np.ndarray) -> np.ndarray:
    """Scale values of any type to uint8. Raises Damaged for values outside the accepted ranges."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if (kind, size) == ("u", 1):
        return array
    if kind == "b":
        return array * np.uint8(255)
    low, high = array.min(), array.max()
    if (kind, size) == ("u", 2):
        top = 65535
    elif kind == "f":
        top = 1 if high <= 1 else 255
    else:
        top = 255 if high <= 255 else 65535
    if not (low >= 0 and high <= top):  # also NaN
        usual = N_("0 to 1 or 0 to 255") if kind == "f" else N_("0 to 255 or 0 to 65,535")
        values = {"low": f"{low:g}", "high": f"{high:g}", "usual": usual}
        raise Damaged("values from {low} to {high}; {usual} are expected", **values)
    scaled = np.empty(array.shape, np.uint8)
    for part, lines in zip(scaled, array, strict=True):  # in parts, because each byte needs 4 during conversion
        part[:] = np.rint(lines.astype(np.float32) * np.float32(255 / top))
    return scaled


class DecodedChunk(TypedDict):
    """The first row of a chunk; by row, the reasons of unreadable files and notes on others."""

    start: int
    failed: dict[str, str]
    notes: dict[str, str]


Form = tuple[int, int, str]  # pixels of a side, channels, and how images are resized


def decode_chunk(file: str, start: int, paths: list[str], form: Form) -> DecodedChunk:
    """Decode images into the rows of a file from row `start` on. Raises OSError if it cannot be written."""
    side, channels, resize = form
    rows = np.zeros((len(paths), channels, side, side), np.uint8)
    decoded = DecodedChunk(start=start, failed={}, notes={})
    for i, path in enumerate(paths):
        try:
            rows[i], note = decode_image(path, side, channels, resize)
        except Exception as error:  # Pillow raises many errors for damaged files
            decoded["failed"][str(start + i)] = read_error(error)
            continue
        if note:
            decoded["notes"][str(start + i)] = note
    with open(file, "r+b") as out:
        out.seek(HEADER + start * rows[0].nbytes)
        out.write(rows.data)
    return decoded


def decode_sandboxed(sandbox: Sandbox, file: str, start: int, paths: list[str], form: Form) -> DecodedChunk:
    """Run `decode_chunk` in the sandbox; report a file that crashes it as unreadable."""
    try:
        decoded: DecodedChunk = sandbox.call(file, start, paths, form)
        return decoded
    except Refused:  # it crashed or took too long
        if len(paths) == 1:
            return DecodedChunk(start=start, failed={str(start): DIED}, notes={})
    decoded = DecodedChunk(start=start, failed={}, notes={})
    for i, path in enumerate(paths):  # one at a time, to find the file
        one = decode_sandboxed(sandbox, file, start + i, [path], form)
        decoded["failed"] |= one["failed"]
        decoded["notes"] |= one["notes"]
    return decoded


def processes() -> int:
    """Return the number of processes that can run in parallel."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class DecodingPool:
    """Child processes with limited memory and time that decode files into the rows of a file. They start on demand and
    run until `close`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.idle: list[Sandbox] = []

    def decode(
        self, file: str, paths: Sequence[str], form: Form, starts: Sequence[int], size: int
    ) -> Iterator[DecodedChunk]:
        """Decode `size` paths from each index in `starts`; yield each finished chunk."""

        def work(start: int) -> DecodedChunk:
            try:
                sandbox = self.idle.pop()
            except IndexError:  # none idle; at most one per thread
                sandbox = Sandbox(decode_chunk, Limits(2 << 30, 600, 1 << 50, ("PIL.Image", __name__)))
            try:
                return decode_sandboxed(sandbox, file, start, list(paths[start : start + size]), form)
            finally:
                self.idle.append(sandbox)

        count = min(self.count, len(starts))
        if count < 2:
            yield from map(work, starts)
            return
        with ThreadPoolExecutor(count) as threads:
            try:
                for future in as_completed([threads.submit(work, start) for start in starts]):
                    yield future.result()
            finally:
                threads.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        while self.idle:
            self.idle.pop().close()
