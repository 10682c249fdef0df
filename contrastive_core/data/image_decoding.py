"""Decoding of pictures and `.npy` arrays to uint8 pixels of one size, in child processes.

Pillow chooses a decoder by a file's content, and one of its decoders passes PostScript to another program, so only
`FORMATS` are opened, with limits on bytes and pixels. 16-bit values are divided by 257, never clipped. Transparent
pixels get a white background; EXIF rotations are applied; only the first of several pages is read.

An array has the shape (h, w), (c, h, w) or (h, w, c). Two equal lengths of three are height and width; otherwise the
shorter of the first and last axis holds the channels. Values are booleans, 8- or 16-bit integers, other integers in
0..255 or 0..65,535, or floats in 0..1 or 0..255."""

import io
import math
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
NARROWEST = 16  # an array with a larger aspect ratio is not an image
MOST_CHANNELS = 1024  # an array with more is not one image
HEADER = 128  # bytes of a file before the first row of decoded images
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
    path, mode, planes = Path(path), "RGB" if channels == 3 else "L", list[np.ndarray]()
    images, note = _bands(path, channels) if path.suffix.lower() == ".npy" else _picture(path, side, channels)
    for image in images:
        if image.mode != mode:  # `convert` copies also when nothing changes
            image = image.convert(mode)
        if image.size != (side, side) and resize == "pad":
            image = ImageOps.pad(image, (side, side), Image.Resampling.BILINEAR, color=0)
        elif image.size != (side, side):
            image = ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)
        planes.append(np.atleast_3d(np.asarray(image)))
    return np.ascontiguousarray(np.concatenate(planes, 2).transpose(2, 0, 1)), note


def _picture(path: Path, side: int, channels: int) -> tuple[list[Image.Image], str]:
    """Return a picture, read at no less than twice the `side`, and a note on unread pages."""
    if channels not in (1, 3):
        raise Damaged("a picture; an array of {channels} channels is expected", channels=channels)
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
        image.load()
    return [image], note


def _bands(path: Path, channels: int) -> tuple[list[Image.Image], str]:
    """Return an array as one image of one or three `channels`, or as a gray image of each channel; and a note on
    unread channels."""
    array, note = _open_array(path), ""
    count = array.shape[2]
    if channels not in (1, 3):
        if count != channels:
            values = {"count": count, "channels": channels}
            raise Damaged("an array with {count} channels; the other arrays have {channels}", **values)
        return [Image.fromarray(band) for band in np.moveaxis(_scale(array), 2, 0).copy()], note
    if count > 3:
        note = message("{count} channels; only the first three were read", count=count)
    elif count == 2:
        note = message("{count} channels; only the first was read", count=count)
    return [Image.fromarray(np.ascontiguousarray(_scale(array[..., :3] if count > 2 else array[..., 0])))], note


def _open_array(path: Path) -> np.ndarray:
    """Open an array of numbers as a memory map (h, w, c). Raises: Damaged for one that is not an image; ValueError."""
    open_regular(path, MAX_BYTES).close()
    array = np.asarray(np.lib.format.open_memmap(path, mode="r"))  # no objects, and no more than the file holds
    shape = array.shape
    if array.ndim == 2:
        array = array[..., None]
    elif array.ndim == 3 and (shape[1] == shape[2] or (shape[0] != shape[1] and shape[0] <= shape[2])):
        array = np.moveaxis(array, 0, 2)
    sides, is_image = array.shape[:2], array.ndim == 3 and array.dtype.kind in "buif"
    is_image = is_image and 0 < max(sides) <= NARROWEST * min(sides) and math.prod(sides) <= MAX_PIXELS
    if not is_image or not 0 < array.shape[2] <= MOST_CHANNELS:
        text = N_("an image is an array of numbers (h, w), (c, h, w) or (h, w, c); got {kind} {shape}")
        raise Damaged(text, kind=array.dtype.name, shape=shape)
    return array


class Header(NamedTuple):
    """The size of an image in pixels and its channels: 1 for gray pictures, 3 for color, or those of an array."""

    width: int
    height: int
    channels: int


def read_header(path: Path) -> Header:
    """Read the header of an image file. Raises the errors of `decode_image`."""
    if path.suffix.lower() == ".npy":
        height, width, channels = _open_array(path).shape
        return Header(width, height, channels)
    with open_image(path) as image:
        return Header(*image.size, 1 if image.mode in GRAY_MODES else 3)


def read_error(error: Exception) -> str:
    """Return why an image cannot be read, as text that is safe to display."""
    return printable(explained(error), 200)


def _scale(array: np.ndarray) -> np.ndarray:
    """Scale values of any type to uint8. Raises Damaged for values outside the accepted ranges."""
    if array.dtype == bool:
        return array * np.uint8(255)
    if array.dtype == np.uint8:
        return array
    low, high = array.min(), array.max()
    if array.dtype.kind == "f":
        top, usual = (1 if high <= 1 else 255), N_("0 to 1 or 0 to 255")
    else:
        is_deep = array.dtype.str[1:] == "u2" or high > 255  # of either byte order
        top, usual = (65535 if is_deep else 255), N_("0 to 255 or 0 to 65,535")
    if not (low >= 0 and high <= top):  # also NaN
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
