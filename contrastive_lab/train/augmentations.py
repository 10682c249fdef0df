"""The stage before a training: a real batch with its augmented views, and a chip for each augmentation. train.css sets
the size of the images."""

import base64
import io
from collections.abc import Sequence

import numpy as np
import streamlit as st

from contrastive_core.base.registry import MethodEntry
from contrastive_core.data import datasets
from contrastive_core.data.dataset import USUAL as USUAL_FORM
from contrastive_core.data.dataset import form_of, visible
from contrastive_core.data.named_sets import GENERATED
from contrastive_core.data.recipe import Recipe, view_changes
from contrastive_core.runs.train_config import TrainConfig
from contrastive_lab import cache, format, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.texts import Html, el
from contrastive_lab.train.folder import with_change

ASKED, LAST, DRAWS = "views asked for", "views shown last", "draws of views"  # of the session
STEPS = {  # each with its name and how often it is applied when it is switched on
    "crop": (N_("crop"), 1.0),
    "rotation": (N_("rotate"), 0.5),
    "jitter": (N_("jitter"), 0.8),
    "flip": (N_("mirror"), 0.5),
    "blur": (N_("blur"), 0.5),
    "gray": (N_("gray"), 0.2),
    "solarize": (N_("solarize"), 0.2),
    "noise": (N_("noise"), 0.5),
    "sobel": (N_("edges"), 1.0),
    "cutout": (N_("cutout"), 0.5),
}
USUAL = 6  # of the steps, whose chips are always there
MOST_PIXELS = 128  # of a side of a tile
SMOOTH_FROM = 48  # pixels of a side; smaller images show their pixels
ROWS, OTHERS = 5, 8  # the fifth on a phone alone


def choose_steps(config: TrainConfig, channels: int) -> list[str]:
    """Draw a chip for each augmentation; return the `key=value` lines of those that were switched."""
    recipe = config.recipe
    fixed = {name for change in view_changes(recipe["views"]) for name in change}  # each view has its own
    offered = [
        step
        for k, step in enumerate(STEPS)
        if step not in fixed and (recipe[step] > 0 or (k < USUAL and not (step == "gray" and channels == 1)))
    ]
    usual = [step for step in offered if recipe[step] > 0]

    def label(step: str) -> str:
        share = f" {100 * recipe[step]:.0f} %" if recipe[step] else ""
        return f"{_(STEPS[step][0])}{share}"

    key = f"steps-{cache.digest(*offered, *usual)}"  # another recipe begins anew
    help = _("The encoder must learn to ignore these changes. Click a chip to switch an augmentation on or off.")
    on = query_params.many_of(
        st.pills,
        _("Augmentations"),
        offered,
        name="augmentations",
        default=usual,
        key=key,
        selection_mode="multi",
        format_func=label,
        help=help,
        label_visibility="collapsed",
    )
    switched = {step: STEPS[step][1] * (step in on) for step in offered if (step in on) != (step in usual)}
    return [f"recipe.{step}={share:g}" for step, share in switched.items()]


def ask(data: str, is_off: bool) -> None:
    """Draw a button that shows the views of images that must be decoded first."""
    if st.button(_("See its views"), icon=":material/visibility:", key="see-views", disabled=is_off):
        st.session_state[ASKED] = data
        st.rerun()


def draw_again() -> None:
    """Draw a button for other images and views."""
    if st.button(_("Draw again"), icon=":material/refresh:", key="draw-again"):
        st.session_state[DRAWS] = st.session_state.get(DRAWS, 0) + 1


def draw(data: str, method: str, card: MethodEntry, settings: list[str] | None) -> None:
    """Draw the views of a training on these data. Args: card: of the method; settings: `key=value`; None if they are
    invalid: then the last views stay."""
    result = None
    with st.container(key="views-progress"):
        if settings is not None:
            draws = st.session_state.get(DRAWS, 0)
            lines = [*settings, f"seed={draws}"] if draws else settings
            result = answer_or_wait("views", with_change(data, method=method, set=lines), message("The views"))
    if result is not None:
        st.session_state[LAST] = (data, result)
    last_data, last = st.session_state.get(LAST, ("", None))
    if last is None or not (result or settings is None or last_data == data):
        return
    recipe = Recipe(**last.meta["recipe"])
    notes = [_("A real batch of {dataset}, augmented with this recipe.").format(dataset=format.data_of(last_data))]
    notes += said(recipe) if len(recipe.each) > 1 else []
    notes += [_("With labels, images of the same class are pulled too.")] if card["needs_labels"] else []
    notes += filter(None, [last.meta.get("left_out")])
    st.html(view_table(last.arrays["images"], last.arrays["views"], *headings(card), " ".join(notes)))


def is_quick(data: str, config: TrainConfig | None) -> bool:
    """Return whether the images are available without decoding a folder first."""
    form = form_of(config.to_dict()) if config else USUAL_FORM
    try:
        return data in GENERATED or datasets.made_path(data, "train", form).exists()
    except ValueError:  # a folder that cannot be used: the form says why
        return False


def headings(card: MethodEntry) -> tuple[list[str], bool]:
    """Return headings of the images, their views and the others, and whether the method pushes the others away."""
    views = _("two views: pull together")
    if card["needs_captions"]:
        views = _("views: pull to the caption of their image")
    if "negatives" not in card["uses"]:
        return [_("image"), views, _("others of the batch: this method does not push them")], False
    if "memory of older rows" in card["uses"]:
        return [_("image"), views, _("others, of earlier batches too: push away")], True
    return [_("image"), views, _("all others of the batch: push away")], True


def said(recipe: Recipe) -> list[str]:
    """Describe the augmentations that are on, with their probabilities; one text for each view if views differ."""
    texts = []
    for one in recipe.each:
        on = [f"{name} {100 * share:.0f} %" for name in STEPS if (share := getattr(one, name)) > 0]
        nothing = _("No augmentation is on: every view is the image.")
        texts.append(_("On: {on}.").format(on=", ".join(on)) if on else nothing)
    if len(texts) == 1:
        return texts
    return [_("View {number}: {steps}").format(number=number, steps=text) for number, text in enumerate(texts, 1)]


# --- the table of a batch ---


def view_table(images: np.ndarray, views: np.ndarray, heads: Sequence[str], is_pushed: bool, note: str = "") -> Html:
    """Return a table of images (k, c, h, w) and their views (k, v, c, h, w). Args: heads: for the images, the views and
    the others; is_pushed: whether the others are pushed away; note: beside the last heading."""
    names = ("image", "pull", "push" if is_pushed else "beside")
    words = (_("image {number}"), _("view of image {number}"), _("view of an image other than {number}"))
    notes = (None, None, el("small", note) if note else None)
    head = (
        el("th", el("div", el("b", text), small), class_=name)
        for name, text, small in zip(names, heads, notes, strict=True)
    )
    k, second = len(views), views.shape[1] // 2  # of each image a view of each kind, or two if there is only one
    rows = []
    for i in range(min(ROWS, len(images))):
        around = [(i + step) % k for step in range(1, k)]
        others = [views[j][0] for j in around] + [views[j][second] for j in around]
        cells = []
        for name, tiles, text in zip(names, ([images[i]], [views[i][0], views[i][second]], others), words, strict=True):
            drawn = (_tile(tile, text.format(number=i + 1)) for tile in tiles[:OTHERS])
            cells.append(el("td", el("div", *drawn), class_=name))
        rows.append(el("tr", *cells))
    return el("table", el("thead", el("tr", *head)), el("tbody", *rows), class_="views")


def _tile(image: np.ndarray, text: str) -> Html:
    """Return an image (c, h, w) uint8 as HTML, scaled down if it is large."""
    from PIL import Image

    kind = "smooth" if min(image.shape[1:]) >= SMOOTH_FROM else "pixels"
    step = max(1, -(-max(image.shape[1:]) // MOST_PIXELS))
    pixels = np.moveaxis(image[visible(len(image)), ::step, ::step], 0, -1)
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(buffer, "PNG")
    uri = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return el("img", class_=kind, src=uri, alt=text)
