"""Zero-shot accuracy of a run with a text tower, and images for a sentence (CLIP, arXiv 2103.00020, section 3.1).

A class vector is the mean of the unit prompts, one prompt per template. Nothing is selected on the test set: the
templates are fixed in advance and stored in the score's settings."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from contrastive_core.base.errors import BadSetting, CannotScore
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.score import Score, Scores
from contrastive_core.compare.embed import data_of, embed_run, encode_texts, load_model, tower_rows
from contrastive_core.compare.evaluation import ZERO_SHOT as TITLE
from contrastive_core.compare.towers import Share, tower_scores, zero_shot
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import TOWERS
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES, Towers, towers_of

NAME = "zero_shot"
READING = N_(
    "Share of images that are more similar to the name of their own class, put into {count} "
    "sentences, than to the names of the {others} other classes. Higher is better. Chance is "
    "{chance} %."
)
NO_CLASSES = N_("zero-shot accuracy needs at least two named classes")
UNKNOWN = N_("the text tower has not learned these class names: {names}")
SLOT = N_("a template needs one pair of braces where the class name goes; got {template}")
MOST, LONGEST = 50, 200  # templates, and characters of one


def check_templates(templates: Sequence[str]) -> tuple[str, ...]:
    """Return the templates without blank ones. Raises BadSetting for none, too many, or a template without `{}`."""
    kept = tuple(t.strip() for t in templates if t.strip())
    if not 1 <= len(kept) <= MOST:
        raise BadSetting("one to {most} templates are needed; got {n}", most=MOST, n=len(kept))
    for template in kept:
        if template.count("{}") != 1 or len(template) > LONGEST:
            raise BadSetting(SLOT, template=repr(template[:LONGEST]))
    return kept


def prompts_of(classes: Sequence[str], templates: Sequence[str]) -> list[str]:
    """Return every class name in every template, class by class."""
    words = [name.replace("_", " ") for name in classes]
    return [template.replace("{}", name) for name in words for template in templates]


def zero_shot_scores(
    towers: Towers, opened: Callable[[], Any], templates: Sequence[str] = DEFAULT_TEMPLATES
) -> tuple[Scores, Scores]:
    """Return the zero-shot accuracy of the images in a run's two towers, and its chance level, {} without an accuracy.
    Args: opened: returns the run's method. Raises BadSetting for invalid templates."""
    templates, rows = check_templates(templates), towers.rows
    try:
        share = _share(towers, templates, opened)
    except CannotScore as error:
        return {NAME: Score(TITLE, missing=sentence(error))}, {}
    values = {"count": len(templates), "others": len(rows.classes) - 1, "chance": f"{100 * share.chance:.1f}"}
    reading = message(READING, **values)
    settings, about = {"templates": list(templates)}, {"n": share.n}
    score = Score(
        title=TITLE,
        reading=reading,
        value=share.value,
        interval=share.interval,
        unit="share",
        higher_is_better=True,
        settings=settings,
        extras=about,
    )
    return {NAME: score}, {NAME: Score(TITLE, reading, share.chance, unit="share")}


def _share(towers: Towers, templates: Sequence[str], opened: Callable[[], Any]) -> Share:
    rows, classes = towers.rows, towers.rows.classes
    if len(classes) < 2 or rows.labels is None:
        raise CannotScore(NO_CLASSES)
    method = opened()
    tower = method.text_tower
    if strange := [name for name in classes if not tower.known_words(name.replace("_", " "))]:
        raise CannotScore(UNKNOWN, names=", ".join(map(repr, strange[:5])))
    prompts = encode_texts(method, prompts_of(classes, templates))
    of = np.repeat(np.arange(len(classes)), len(templates))
    return zero_shot(rows.features[towers.a], prompts, of, rows.labels[towers.a])


def scores_of_towers(run: Run, split: str, device: str = "auto", images: EmbeddingSet | None = None) -> Scores:
    """Return recall in both directions, modality gap and zero-shot accuracy of a run's split, or the reason if its
    captions cannot be read. Args: images: z of the split, to bypass the cache."""
    try:
        dataset = data_of(run, split)
        method = load_model(run, dataset, device)
        if images is None:
            rows = embed_run(run, split, TOWERS, device, method=method)
        else:
            rows = tower_rows(method, images, dataset)
        towers = towers_of(rows)
    except (ValueError, OSError) as error:
        return {NAME: Score(TITLE, missing=sentence(error))}
    assert towers is not None
    return {**zero_shot_scores(towers, lambda: method)[0], **tower_scores(towers)[0]}


def nearest_images(method: Any, towers: Towers, text: str, most: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the row numbers (k) of the images most similar to a sentence, their cosines (k), and its unknown words; no
    rows if every word is unknown."""
    unknown = method.text_tower.unknown_words(text)
    if not method.text_tower.known_words(text):
        return np.array([], np.int64), np.array([]), unknown
    (usable, _), _ = towers.usable_sides()
    s = unit_rows(towers.rows.features[usable]) @ unit_rows(encode_texts(method, [text]))[0]
    order = np.argsort(-s, kind="stable")[:most]
    return usable[order], s[order].astype(np.float64), unknown
