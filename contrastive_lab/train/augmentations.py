"""The stage before a training: a real batch with its augmented views, and a chip for each augmentation."""

import dataclasses
from typing import Any

import streamlit as st

from contrastive_core.base.cards import MethodEntry
from contrastive_core.data import datasets
from contrastive_core.data.dataset import USUAL as USUAL_FORM
from contrastive_core.data.dataset import form_of
from contrastive_core.data.named_sets import GENERATED
from contrastive_core.data.recipe import Recipe, view_changes
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.results import Result
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.train.view_picture import view_table

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
    look: dict[str, Any] = {"selection_mode": "multi", "format_func": label, "help": help}
    look["label_visibility"] = "collapsed"
    on = query_params.many_of(
        st.pills, _("Augmentations"), offered, name="augmentations", default=usual, key=key, **look
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


def draw(values: dict[str, Any] | None, card: MethodEntry) -> None:
    """Draw the views of a training with these settings, for a method with this card. Args: values: None if the settings
    are invalid: then the last views stay."""
    draws = st.session_state.get(DRAWS, 0)
    if values and draws:
        values = {**values, "set": [*values["set"], f"seed={draws}"]}
    bar = st.container(key="views-progress")
    with bar:
        result = answer_or_wait("views", values, message("The views")) if values else None
    if result is not None:
        assert values is not None
        st.session_state[LAST] = (values["dataset"], result)
    data, last = st.session_state.get(LAST, ("", None))
    if last is not None and (result or values is None or values["dataset"] == data):
        _show(last, data, card)


def is_quick(data: str, config: TrainConfig | None) -> bool:
    """Return whether the images are available without decoding a folder first."""
    form = form_of(config.to_dict()) if config else USUAL_FORM
    try:
        return data in GENERATED or datasets.made_path(data, "train", form).exists()
    except ValueError:  # a folder that cannot be used: the form says why
        return False


def _show(result: Result, data: str, card: MethodEntry) -> None:
    notes = [_("A real batch of {dataset}, augmented with this recipe.").format(dataset=format.data_of(data))]
    notes += map(locale.text, said(result.meta["recipe"])) if len(Recipe(**result.meta["recipe"]).each) > 1 else []
    notes += [_("With labels, images of the same class are pulled too.")] if card["needs_labels"] else []
    notes += filter(None, [result.meta.get("left_out")])
    st.html(view_table(result.arrays["images"], result.arrays["views"], *headings(card), " ".join(notes)))


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


def said(recipe: dict[str, Any]) -> list[str]:
    """Describe the augmentations that are on, in one text for each view if views differ."""
    each = [steps(dataclasses.asdict(one)) for one in Recipe(**recipe).each]
    if len(each) == 1:
        return each
    return [_("View {number}: {steps}").format(number=number, steps=one) for number, one in enumerate(each, 1)]


def steps(recipe: dict[str, Any]) -> str:
    """Describe the augmentations that are on, with their probabilities."""
    on = [f"{name} {100 * recipe[name]:.0f} %" for name in STEPS if recipe[name] > 0]
    return _("On: {on}.").format(on=", ".join(on)) if on else _("No augmentation is on: every view is the image.")
