"""To what size the images of a folder are brought, and what that takes on the disk."""

import shutil

import streamlit as st

from contrastive_core.engine.images import allowed_space, datasets, name_of, size_of, space_of, values_of
from contrastive_core.records import data_home
from contrastive_core.records.train_config import LARGEST, RESIZES, SMALL, ImageForm, TrainConfig, with_settings
from contrastive_lab import cache, number_inputs, query_params
from contrastive_lab.locale import N_, _, sentence
from contrastive_lab.train.encoder import Encoder

HOW = {"crop": N_("crop to the middle"), "pad": N_("pad with black")}
EXAMPLES = (64, 224)


def image_form() -> list[str]:
    """`image_size` and `resize` for a folder's images, as settings NAME=VALUE."""
    size = number_inputs.number(
        st.number_input,
        _("Image size in pixels"),
        4,
        LARGEST,
        name="image_size",
        default=None,
        placeholder=_("size the encoder expects"),
        help=_(
            "224 for ImageNet and timm encoders, unless they name another size. Otherwise the median of the images' "
            "shorter sides, at most {small}."
        ).format(small=SMALL),
    )
    resize = query_params.one_of(st.selectbox, _("Resize"), RESIZES, name="resize", format_func=HOW.__getitem__)
    return [f"resize={resize}", *([f"image_size={size}"] if size else [])]


def as_options(form: list[str]) -> list[str]:
    """The same as options of `train`."""
    return [word for setting in form for word in f"--{setting.replace('_', '-')}".split("=")]


def size_of_run(folder: str, encoder: Encoder, form: list[str], further: list[str]) -> int | None:
    """Pixels of a side in a training with these arguments and settings; None while that is not known."""
    result = cache.result("folder", values_of(folder))
    if result is None or not encoder.name:
        return None
    knobs = [word for word in encoder.arguments if word.startswith("encoder.")]
    try:
        config = TrainConfig("simclr", name_of(folder), encoder=encoder.name)
        config = with_settings(config, [*knobs, *form, *further])
    except ValueError:
        return None  # what is wrong with them is said beside them
    if config.image_size:
        return config.image_size
    is_looked_up = ":" not in encoder.name or encoder.pixels or config.encoder_knobs.get("pixels")
    median = result.meta.get("side") or SMALL
    return size_of(config, lambda: median, encoder.pixels) if is_looked_up else None


def cache_setting(further: list[str]) -> str:
    """`cache` among the further settings, else its default."""
    chosen = [value.strip() for key, _is, value in (line.partition("=") for line in further) if key.strip() == "cache"]
    return chosen[-1] if chosen else TrainConfig().cache


def wrong_size(folder: str, form: list[str], side: int, setting: str) -> str:
    """Why images that are to be decoded at this size do not fit on the disk. `setting`: of `cache`."""
    free = _free_space()
    if setting != "memory-map" or not (beyond := _beyond(folder, form, side, free)):
        return ""
    return _(
        "Decoded at {side} pixels, {n} images take {needed} GB, and {free} GB are free: choose a smaller size."
    ).format(side=side, n=f"{beyond[0]:,}", needed=f"{beyond[1] / 1e9:,.1f}", free=f"{free / 1e9:,.1f}")


def streamed(folder: str, form: list[str], side: int, setting: str) -> str:
    """A sentence where the images are decoded in training; "" where they are decoded before."""
    try:
        allowed = allowed_space(data_home())
    except ValueError as error:
        return sentence(error)
    if setting == "stream" or (setting == "auto" and _beyond(folder, form, side, allowed)):
        return _("The images are decoded during training, again in each epoch. Nothing is stored.")
    return ""


def _beyond(folder: str, form: list[str], side: int, allowed: float) -> tuple[int, int] | None:
    """The number of images that would have to be decoded, and their bytes, where that is more than is allowed."""
    if (result := cache.result("folder", values_of(folder))) is None:
        return None
    parts = {split: sum(counts[i] for counts in result.meta["counts"]) for i, split in enumerate(("train", "test"))}
    channels = result.meta.get("channels") or 3
    if space_of(sum(parts.values()), side, channels) < allowed:
        return None
    wanted = ImageForm(side, form[0].removeprefix("resize="))
    n = sum(k for split, k in parts.items() if not datasets.is_made(name_of(folder), split, wanted))
    needed = space_of(n, side, channels)
    return (n, needed) if n and needed >= allowed else None


def on_disk(folder: str, side: int | None) -> str:
    """The disk space of images decoded at this size, or at two usual ones, once their number is known."""
    if (result := cache.result("folder", values_of(folder))) is None:
        return ""
    n, channels = sum(map(sum, result.meta["counts"])), result.meta.get("channels")
    template = _("{n} images of {channels} channels") if channels else _("{n} images in color")
    images, at_side = template.format(n=f"{n:,}", channels=channels), _("{space_of} MB at {side} pixels")
    sides = EXAMPLES if side is None else (side,)
    sizes = [at_side.format(space_of=f"{space_of(n, at, channels or 3) / 1e6:,.0f}", side=at) for at in sides]
    free, text = f"{_free_space() / 1e9:,.0f}", _("Decoded once, {images} take {sizes}{free}.")
    return text.format(images=images, sizes=", ".join(sizes), free=_("; {free} GB are free").format(free=free))


def _free_space() -> int:
    """Bytes that are free where decoded images go."""
    home = data_home()
    return shutil.disk_usage(next(path for path in (home, *home.parents) if path.exists())).free
