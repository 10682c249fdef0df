"""Which recipe a training follows: its choice, or that which suits encoder, image size and epochs."""

from typing import Any, NamedTuple

import streamlit as st

from contrastive_core.records.cards import Published
from contrastive_core.records.training_recipes import RECIPES, suggested
from contrastive_lab import locale, query_params
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.train.encoder import LIBRARY, NEW

TITLES = {"short": N_("short runs"), "cifar": "CIFAR", "imagenet": "ImageNet"}
PIXELS = {"digits": 8, "mnist": 28, "fashion_mnist": 28, "shapes": 32, "cifar10": 32, "cifar100": 32, "stl10": 96}
OF_RESNETS = 224  # pixels to which a folder's images are brought for one


class FollowedRecipe(NamedTuple):
    """`own`: the choice, "" for none; `usual`: what suits the training, and why."""

    own: str
    usual: str
    why: str

    @property
    def name(self) -> str:
        return self.own or self.usual


def followed(data: str, epochs: int) -> FollowedRecipe:
    """The recipe of the fields, some of which are drawn further down."""
    own, encoder = query_params.current("recipe", RECIPES, ""), _chosen("encoder") or "small"
    if encoder in (LIBRARY, "other"):
        encoder = _chosen("model")
    pixels = int(_chosen("image_size") or PIXELS.get(data, OF_RESNETS))
    return FollowedRecipe(own, *suggested(encoder, pixels, epochs, is_start=_chosen("start") not in ("", NEW)))


def choose_recipe(recipe: FollowedRecipe, published: Published | None) -> list[str]:
    """The field, and what was published; gives the `--set` value if one was chosen."""
    titles = {"": _("{recipe} (default)").format(recipe=_(TITLES[recipe.usual]))}
    titles |= {name: _(title) for name, title in TITLES.items()}
    help = _(
        "Optimizer, learning rate, schedule, batch size, head and augmentations: for short runs as measured here, for "
        "CIFAR and ImageNet as published with the method. Your own settings take precedence. The default is chosen "
        "from encoder, image size and epochs: {why}."
    )
    chosen = query_params.one_of(
        st.selectbox,
        _("Recipe"),
        titles,
        name="recipe",
        format_func=titles.__getitem__,
        help=help.format(why=locale.text(recipe.why)),
    )
    if published:
        text = ngettext("{source}, {epochs} epoch.", "{source}, {epochs} epochs.", published.epochs)
        st.caption(text.format(source=locale.text(published.source), epochs=f"{published.epochs:,}"))
    elif recipe.name != "short":
        st.caption(_("Nothing like it was published for this method: the values for short runs are used."))
    return [f"recipe={chosen}"] if chosen else []


def _chosen(name: str) -> str:
    value: Any = query_params.page_values().get(query_params.key_of(name), query_params.requested(name))
    return str(value) if value else ""
