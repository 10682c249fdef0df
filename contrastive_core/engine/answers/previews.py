"""Before training: views of images, image folders, decoded images, the catalog, advice."""

import dataclasses

import numpy as np

from contrastive_core.advice.candidates import AdviceRequest, plan_advice
from contrastive_core.advice.first_look import in_words
from contrastive_core.advice.first_look import look as first_look
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress
from contrastive_core.data import datasets
from contrastive_core.data.augmentations import make_views
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.folder_selection import folder_preview
from contrastive_core.data.recipe import Recipe
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.spaces.results import Result, Values
from contrastive_core.train.settings import facts_of, resolve, with_image_size

SHOWN, VIEWS = 6, 5  # images, and views of each, that a preview shows
OF_EACH = 3  # views of each kind, if the recipe's views differ


def views(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Return some images of a data set (k, c, h, w) and their views (k, v, c, h, w) in a training with these settings,
    uint8. If the recipe's views differ, they are grouped by kind, equally many of each."""
    import torch

    config = with_settings(TrainConfig(values["method"], values["dataset"]), values["set"])
    on_progress(N_("the images"), None)
    config = with_image_size(config)
    dataset = datasets.of_config(config.to_dict(), on_progress=on_progress)
    config = resolve(config, facts_of(dataset)).config
    rows = np.unique(np.linspace(0, len(dataset.images) - 1, SHOWN).round().astype(int))
    rows = np.sort((rows + config.seed) % len(dataset.images))  # another seed selects other images
    images = torch.from_numpy(np.asarray(dataset.images[rows]))
    generator = torch.Generator().manual_seed(config.seed)
    recipe = Recipe(**config.recipe)
    kinds = len(recipe.each)
    augmented = make_views(images, recipe, VIEWS if kinds == 1 else kinds * OF_EACH, generator)
    beside = sorted(range(augmented.shape[1]), key=lambda v: v % kinds)  # grouped by kind
    pixels = (255 * augmented[:, beside]).round().to(torch.uint8).numpy()
    meta = {"recipe": config.recipe, "left_out": dataset.left_out}
    return Result(meta, {"images": images.numpy(), "views": pixels})


def folder(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Return the classes of an image folder with their sizes, and some images."""
    on_progress(N_("the images"), None)
    meta = vars(folder_preview(values["path"])).copy()
    images = meta.pop("images")
    return Result(meta, {"images": images})


def decoding(values: Values, on_progress: OnProgress, device: str) -> None:
    """Decode and cache the images of a data set."""
    form = ImageForm(values.get("size"), values.get("resize", "crop"))
    datasets.load(values["dataset"], values["split"], values["root"], form=form, on_progress=on_progress)


def look(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Return the facts of a data set and the suggestions that follow from them."""
    seen = first_look(values["dataset"], None, values["method"], device, on_progress)
    return Result({**dataclasses.asdict(seen), "sentence": in_words(seen.facts)})


def advice_plan(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Return the plan of an adviser and its time. Raises ValueError if the time is too short."""
    asked = {name: value for name, value in values.items() if name != "changed"}
    made = plan_advice(AdviceRequest(device=device, **asked), on_progress)
    return Result({"plan": made.to_dict(), "sentence": made.sentence()})
