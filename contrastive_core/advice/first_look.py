"""Facts about a data set before any training (sizes, classes, kNN accuracy on pixels), from at most `MOST` training
images; and the settings that follow from them."""

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

from contrastive_core import losses, methods
from contrastive_core.advice.candidates import USUAL_BATCH, batch_of, fitting_methods
from contrastive_core.advice.evidence import FEWEST
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.score import difference, wilson
from contrastive_core.compare.embed import untrained_rows
from contrastive_core.data import datasets
from contrastive_core.data.recipe import Recipe
from contrastive_core.metrics.knn import default_k, vote
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.neighbor_graphs import nearest
from contrastive_core.train.settings import usual_settings

MOST = 4000  # training images that are inspected
ASKED = 1000  # of them, queries of the kNN vote
SMALL = 16  # side in pixels to which images are reduced before they are compared
SEED = 0
LEAST_MEASURED, BEST_TEMPERATURE = 0.1, 0.05  # SimCLR's on four data sets with at least that share
MEASURED = 0.18  # largest share of same-class negatives for which temperatures were compared (benchmarks/MEASURED.md)
LABEL_SOME = N_("label some images: without labels no score shows which setting is better")
HARMFUL, HARMLESS = 0.5, 0.9  # share of the accuracy above chance that remains after mirroring


Facts = JsonObject  # by name, as `look` finds them; color scores need color, shares and cosines two classes


@dataclass(frozen=True)
class Suggestion:
    """A suggested value for a setting, the reason, and the command or page that tests it."""

    setting: str
    text: str
    reason: str
    settle: str
    values: Mapping[str, float] = field(default_factory=dict)  # in the form of `--set`; {} if it is not a setting
    best: float | None = None  # best value on measured data sets of this kind


@dataclass(frozen=True)
class Look:
    """The facts of a data set by name, and the suggestions that follow from them."""

    dataset: str
    facts: Facts
    suggestions: tuple[Suggestion, ...]
    methods: tuple[str, ...] = ()  # methods that can train on it


def look(
    name: str,
    root: str | None = None,
    method: str = "simclr",
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Look:
    """Inspect the training images of a data set without training. Raises ValueError if it cannot be loaded."""
    on_progress(N_("reading images"), None)
    train, n_test = datasets.load(name, "train", root), datasets.count(name, "test", root)
    _, channels, height, width = train.images.shape
    facts: Facts = {"train": len(train), "test": n_test, "channels": channels, "height": height, "width": width}
    counts = np.bincount(train.labels[train.labels >= 0], minlength=len(train.classes) or 1)
    share = counts[counts > 0] / max(1, counts.sum())
    facts |= {"labeled": int(counts.sum()), "classes": len(share), "left_out": train.left_out}
    if len(share) > 1:
        facts |= {
            "smallest": int(counts.min()),
            "largest": int(counts.max()),
            "same_class_negatives": float((share**2).sum()),
        }
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(train))[:MOST])
    images = np.asarray(train.images[chosen])
    rows, labels = pixels(images), train.labels[chosen]
    facts["gray"] = images.shape[1] == 1 or bool((images[:, :1] == images).all())
    if len(np.unique(labels[labels >= 0])) > 1:
        on_progress(N_("comparing classes"), 0.5)
        facts |= _by_class(images, rows, labels, device)
        asked, others = _parts(labels)
        ids = [train.ids[i] for i in chosen]
        part = dataclasses.replace(train, images=images, labels=labels, ids=ids, factors={})
        h = untrained_rows(TrainConfig(method=method, dataset=name), part, device)
        facts["random_encoder"] = float((vote_of(h[asked], h[others], labels[others], device) == labels[asked]).mean())
    on_progress(N_("conclusions"), 0.9)
    usual = {"recipe": Recipe(), "batch_size": USUAL_BATCH, **usual_settings(method, train)}
    facts["batch_size"] = int(usual["batch_size"])
    found = suggestions(name, facts, method, usual["recipe"].flip > 0)
    return Look(name, facts, tuple(found), tuple(fitting_methods(train)[0]))


def in_words(facts: Facts) -> str:
    """Describe the facts in one or two sentences, with a warning if there are too few images for the adviser."""
    text = message(
        "{train} training and {test} test images of {height} × {width} pixels, {color}",
        train=f"{facts['train']:,}",
        test=f"{facts['test']:,}",
        height=facts["height"],
        width=facts["width"],
        color=N_("in gray") if facts["gray"] else N_("in color"),
    )
    parts = [message("{text}, without classes.", text=text)]
    if facts["classes"] > 1 and "pixels_knn" in facts:
        known = {"pixels_knn": facts["pixels_knn"], "random_encoder": facts["random_encoder"]}
        shares = {name: f"{100 * share:.1f}" for name, share in {**known, "chance": facts["chance"]}.items()}
        low, high = facts["smallest"], facts["largest"]
        seen = message(
            "{text}; {classes} classes of {sizes}. kNN accuracy on {asked} of the training images, with the other "
            "images as voters, is {pixels_knn} % on pixels and {random_encoder} % with an untrained encoder; the "
            "largest class has {chance} %. The mean cosine of centered pixels is {same} within a class and {other} "
            "between classes.",
            text=text,
            classes=facts["classes"],
            sizes=f"{low:,}" if low == high else f"{low:,}–{high:,}",
            asked=f"{facts['asked']:,}",
            same=f"{facts['same_class_cosine']:.2f}",
            other=f"{facts['other_class_cosine']:.2f}",
            **shares,
        )
        parts = [seen]
    if facts["train"] < FEWEST:
        few = N_("Too few images to try settings: at least {fewest} training images are needed.")
        parts.append(message(few, fewest=FEWEST))
    return join(" ", parts)


def pixels(images: np.ndarray) -> np.ndarray:
    """Return images as centered rows (n, p), each channel reduced to at most `SMALL` × `SMALL` pixels."""
    x = torch.from_numpy(np.ascontiguousarray(images)).float()
    if max(x.shape[2:]) > SMALL:
        x = adaptive_avg_pool2d(x, SMALL)
    x = x.flatten(1)
    return (x - x.mean(1, keepdim=True)).numpy()  # type: ignore[no-any-return]


def _by_class(images: np.ndarray, rows: np.ndarray, labels: np.ndarray, device: str) -> Facts:
    """Return the kNN accuracy on pixels, on mirrored pixels and on the mean color, with intervals; and the mean cosine
    of centered pixels within a class and between classes."""
    asked, others = _parts(labels)

    def right(of: np.ndarray, among: np.ndarray) -> np.ndarray:
        return vote_of(of, among, labels[others], device) == labels[asked]

    upright = right(rows[asked], rows[others])
    mirrored = right(pixels(images[asked][..., ::-1]), rows[others])
    d, interval = difference(upright, mirrored)
    is_labeled = labels >= 0
    x, labeled, n = rows[is_labeled].astype(np.float64), labels[is_labeled], int(is_labeled.sum())
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    classes, counts = np.unique(labeled, return_counts=True)
    sums = np.stack([x[labeled == c].sum(0) for c in classes])
    squares, pairs = float((x**2).sum()), float((counts * (counts - 1)).sum())  # a pair is of two images
    same, every = float((sums**2).sum()) - squares, float((x.sum(0) ** 2).sum()) - squares
    facts: Facts = {
        "asked": len(asked),
        "pixels_knn": float(upright.mean()),
        "pixels_interval": wilson(int(upright.sum()), len(asked)),
        "mirrored_knn": float(mirrored.mean()),
        "mirroring_costs": (d, *interval),
        "chance": float(counts.max() / n),
        "same_class_cosine": same / max(1.0, pairs),
        "other_class_cosine": (every - same) / max(1.0, n * (n - 1) - pairs),
    }
    if images.shape[1] == 3 and (images[:, :1] != images).any():
        color = images.mean((2, 3), dtype=np.float64)  # (n, 3)
        color = (color - color.mean(0)) / (color.std(0) + 1e-9)
        by_color = right(_on_sphere(color[asked]), _on_sphere(color[others]))
        facts |= {"color_knn": float(by_color.mean()), "color_interval": wilson(int(by_color.sum()), len(asked))}
    return facts


def _parts(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split the labeled rows at random into queries (a fifth, at most `ASKED`) and voters."""
    order = np.random.default_rng(SEED).permutation(np.flatnonzero(labels >= 0))
    count = min(ASKED, max(1, len(order) // 5))
    return order[:count], order[count:]


def _on_sphere(x: np.ndarray) -> np.ndarray:
    """Map rows to the unit sphere so that cosine neighbors are close to the Euclidean neighbors of x."""
    scaled = x / max(1e-9, 3 * float(np.abs(x).max()))
    last = np.sqrt(np.maximum(0, 1 - (scaled**2).sum(1, keepdims=True)))
    return np.concatenate([scaled, last], 1).astype(np.float32)


def vote_of(asked: np.ndarray, among: np.ndarray, labels: np.ndarray, device: str) -> np.ndarray:
    """Predict the classes (m) of `asked` (m, d) by a kNN vote of the rows `among` (n, d) with `labels` (n)."""
    k = min(default_k(len(among)), len(among))
    neighbors = nearest(asked.astype(np.float32), among.astype(np.float32), k, device=device)
    return vote(neighbors, labels, 0.07)


# --- what follows ---


def suggestions(name: str, facts: Facts, method: str, is_mirrored: bool) -> list[Suggestion]:
    """Return the suggestions for a method that the facts of the data set `name` support. `is_mirrored`: its views are,
    by default."""
    card = methods.get(method).card
    has_temperature = "temperature" in losses.knobs(card.default_loss)
    batch, temperature, augmentation = (
        shlex.join(["contrastive-lab", "advise", name, "--choose", question, "--minutes", "30"])
        for question in ("batch", "temperature", "augmentation")
    )
    found = [
        _batch(facts, facts["batch_size"], card.needs_labels, batch),
        _temperature(facts, card.needs_labels, temperature) if has_temperature else None,
        _mirror(facts, is_mirrored, augmentation),
        _color(facts, augmentation),
    ]
    return [one for one in found if one is not None]


def _batch(facts: Facts, usual: int, needs_labels: bool, settle: str) -> Suggestion:
    n, best = facts["train"], batch_of(usual, facts["train"])
    steps = f"{max(1, n // best):,}"
    reasons = [message("An epoch of {n} images has {steps} steps", n=f"{n:,}", steps=steps)]
    if best < usual:
        value = max(1, n // usual)
        reasons.append(message("the default batch size {usual} gives only {value} steps", usual=usual, value=value))
    if (same := facts.get("same_class_negatives")) is not None:
        of, own = 2 * best - 2, f"{same * (2 * best - 2):.0f}"
        template = N_("{same} of {negatives} negatives are of the anchor's class")
        if needs_labels:
            template = N_("{same} of {negatives} views of other images are of the anchor's class and are its positives")
        reasons.append(message(template, same=own, negatives=of))
    else:
        settle = LABEL_SOME
    values = {"batch_size": best} if best < usual else {}
    return Suggestion("batch_size", f"{best}", join("; ", reasons), settle, values)


def _temperature(facts: Facts, needs_labels: bool, settle: str) -> Suggestion:
    same, best = facts.get("same_class_negatives"), None
    if same is None:
        why, settle = N_("Without labels the share of false negatives is unknown"), LABEL_SOME
    elif needs_labels:
        why = N_("With labels no negative is false, so the usual range is tried")
    else:
        share = message("{same} % of a batch's negatives are of the anchor's own class", same=f"{100 * same:.0f}")
        why = message("{share}; on four data sets where it is 10 to 17 %, SimCLR was best at τ = 0.05", share=share)
        if same > MEASURED:
            why = message(
                "{share}: more than in any measured data set, so no single value can be suggested; the search tries "
                "values from 0.05 to 1",
                share=share,
            )
        best = BEST_TEMPERATURE if LEAST_MEASURED <= same <= MEASURED else None
    return Suggestion("loss.temperature", N_("0.05 to 1"), why, settle, best=best)  # candidates.TEMPERATURES


def _mirror(facts: Facts, is_on: bool, settle: str) -> Suggestion | None:
    if "mirroring_costs" not in facts:
        return None
    figures = message(
        "kNN on pixels assigns {mirrored_knn} % of {asked} mirrored images to their class, and {pixels_knn} % of "
        "unmirrored ones",
        mirrored_knn=f"{100 * facts['mirrored_knn']:.1f}",
        asked=facts["asked"],
        pixels_knn=f"{100 * facts['pixels_knn']:.1f}",
    )
    mirrored, upright = (max(0.0, share - facts["chance"]) for share in (facts["mirrored_knn"], facts["pixels_knn"]))
    kept, values = mirrored / max(1e-9, upright), {}
    if facts["mirroring_costs"][1] <= 0 or kept >= HARMLESS:
        text = N_("mirroring, as by default") if is_on else N_("mirroring may be tried")
    elif kept >= HARMFUL:
        text = N_("mirroring is doubtful: try both")
    elif is_on:
        text, values = N_("no mirroring"), {"recipe.flip": 0.0}
    else:
        text = N_("no mirroring, as by default")
    return Suggestion("recipe.flip", text, figures, settle, values)


def _color(facts: Facts, settle: str) -> Suggestion | None:
    if facts["gray"] or "color_knn" not in facts:
        return None
    chance = facts["chance"]
    figures = message(
        "The mean color alone identifies the class of {color_knn} %; the most frequent class has {chance} %",
        color_knn=f"{100 * facts['color_knn']:.1f}",
        chance=f"{100 * chance:.1f}",
    )
    if facts["color_interval"][0] > chance + 0.25 * (1 - chance):
        values = {"recipe.hue": 0.0, "recipe.gray": 0.0}
        return Suggestion("recipe.hue", N_("no hue shift, no gray"), figures, settle, values)
    return Suggestion("recipe.hue", N_("default color augmentations"), figures, settle)
