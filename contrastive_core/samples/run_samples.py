"""Table of all samples of a run's split, with their losses and issues.

A supervised method's rows are paired by class, a self-supervised one's by two augmented views of each image (evaluation
mode). Augmentations are drawn twice in both cases, to separate their variance from that between samples. The loss uses
z, as in training; the lists use h, which holds more information. `explain_sample` breaks down the loss of one sample:
its pairs, its margin, its neighbors."""

import dataclasses
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrastive_core import methods, runs
from contrastive_core.base.cards import Kernel
from contrastive_core.base.device import enough_memory
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.memory import write_npz
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import (
    OnFraction,
    OnProgress,
    fraction_of,
    ignore_fraction,
    ignore_progress,
    one_bar,
)
from contrastive_core.compare.embed import data_of, embed_run, load_model
from contrastive_core.data import datasets
from contrastive_core.data.augmentations import make_views
from contrastive_core.data.overrides import training_set
from contrastive_core.methods import Method
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.ops.similarity import normalize
from contrastive_core.runs.run import Run
from contrastive_core.samples import sample_table
from contrastive_core.samples.issues import Pixels, SampleInputs, build_table
from contrastive_core.samples.losses import LossInputs
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, knobs_of, path_of
from contrastive_core.spaces.embedding_set import EmbeddingSet

Images = Any  # (n, c, h, w) uint8: an array, a memory map, or some rows of one

CHUNK = 256  # images whose views are made at a time, at most
DRAWS = 2  # of augmentations: the least that shows what augmentation does
WIDEST = 4096  # numbers of an image that are looked at for outliers
MOST = 1 << 26  # of all images: 256 MB in float32


def samples_of_run(
    run: Run,
    loss: str | None = None,
    split: str = "train",
    on_progress: OnProgress = ignore_progress,
    device: str = "auto",
    by: str = "",
) -> SampleTable:
    """Return the table of a run's split, cached by weights, loss and split, together with its views.

    The labels are those of the training (`--relabel`); excluded samples stay excluded.
    Args: by: a run on the same images whose encoder is used for the lists; the loss stays the run's. Raises ValueError
    with one sentence if it cannot be used."""
    loss = loss or str(run.config.get("loss"))
    path = path_of(run, "samples", loss, split, by)
    table = sample_table.read_table(path, loss)
    if table is None:
        on_progress = one_bar(on_progress, 8 if by else 7)
        inputs = _gather(run, loss, split, device, on_progress)
        table = build_table(_by_another(inputs, by, split, device, on_progress) if by else inputs, on_progress)
        sample_table.keep_table(table, path)
    return table


def _by_another(inputs: SampleInputs, name: str, split: str, device: str, on_progress: OnProgress) -> SampleInputs:
    """Return the same samples and labels, with features of another run's encoder. Raises BadSetting if that run is
    on other images."""
    assert inputs.features is not None
    on_fraction = fraction_of(on_progress, message("embedding {name}", name=name))
    by, far = runs.load(name), "test" if split == "train" else "train"
    every = embed_run(by, split, "h", device, on_fraction)
    at = {name: i for i, name in enumerate(every.ids)}
    if missing := next((one for one in inputs.features.ids if one not in at), None):
        raise BadSetting("{name} is a run on different images and has no {missing}", name=name, missing=missing)
    index = [at[one] for one in inputs.features.ids]
    rows = dataclasses.replace(every.take(index), labels=inputs.features.labels)
    other = None if inputs.other is None else embed_run(by, far, "h", device, on_fraction)
    on_fraction, each = fraction_of(on_progress, N_("augmented views")), 2 - is_paired_by_class(by, rows)
    views = _views(by, data_of(by, split), device, each, on_fraction)[1][index]
    return dataclasses.replace(inputs, features=rows, other=other, view_features=views)


def samples_of_vectors(
    request: SampleRequest,
    rows: EmbeddingSet,
    pixels: np.ndarray | None,
    on_progress: OnProgress = ignore_progress,
    device: str = "auto",
) -> SampleTable:
    """Return the cached table of loaded vectors, by class if they have labels. `pixels`: (n, c, h, w) uint8."""
    place = request.space.recorded
    if (table := request.table()) is not None:
        return table
    knobs = knobs_of(place.run, request.loss) if place else None
    thin = None if pixels is None else pixel_rows(pixels)
    table = build_table(SampleInputs(rows, request.loss, knobs, pixels=thin, device=device), on_progress)
    sample_table.keep_table(table, request.path())
    return table


def _gather(run: Run, loss: str, split: str, device: str, on_progress: OnProgress) -> SampleInputs:
    """Collect the inputs of the table of a run's split; the views are stored for explanations."""
    embedding = fraction_of(on_progress, message("embedding the {split} images", split=split))
    embedding(0.0)
    dataset, h, z = rows_of(run, split, device, embedding)
    by_class = is_paired_by_class(run, h)
    draws, view_features = _views(run, dataset, device, 2 - by_class, fraction_of(on_progress, N_("augmented views")))
    if not by_class:
        write_npz(path_of(run, "views", "z", split), views=draws[0])
    other, other_images = _other(run, split, device, on_progress)
    pixels, batch_size = pixel_rows(dataset.images, other_images), int(run.config.get("batch_size") or 0)
    augmented = [draw[:, 0] for draw in draws] if by_class else None
    views = None if by_class else draws
    return SampleInputs(
        rows=z,
        loss=loss,
        knobs=knobs_of(run, loss),
        views=views,
        augmented=augmented,
        features=h,
        view_features=view_features,
        other=other,
        pixels=pixels,
        batch_size=batch_size,
        device=device,
    )


def kept_views(run: Run, split: str, dataset: datasets.Dataset) -> np.ndarray:
    """Return the views of z (n, v, d) in a table's losses: stored, or drawn again from the seeds (shipped runs)."""
    path = path_of(run, "views", "z", split)
    if (arrays := sample_table.read_arrays(path)) is None:
        arrays = {"views": _views(run, dataset, "auto", 2, ignore_fraction)[0][0]}
        write_npz(path, **arrays)
    return arrays["views"]


def rows_of(
    run: Run, split: str, device: str = "auto", on_fraction: OnFraction = ignore_fraction
) -> tuple[datasets.Dataset, EmbeddingSet, EmbeddingSet]:
    """Return a split's data set, h and z as in the run's training, if its exclusion and relabel files still exist."""
    dataset = data_of(run, split)
    if split == "train":
        files = (run.config.get(k) for k in ("exclude", "relabel"))
        dataset = training_set(dataset, run.has_towers, *(f if f and Path(f).exists() else None for f in files))
    h, z = (_take(embed_run(run, split, layer, device, on_fraction), dataset) for layer in "hz")
    return dataset, h, z


def is_paired_by_class(run: Run, rows: EmbeddingSet) -> bool:
    """Return whether rows are paired by class: the method is supervised and there are classes."""
    return rows.labels is not None and methods.get(str(run.config["method"])).card.needs_labels


def _take(rows: EmbeddingSet, dataset: datasets.Dataset) -> EmbeddingSet:
    """Return the rows of the samples of `dataset`, with its labels; no copy if these are all samples."""
    if rows.ids != tuple(dataset.ids):
        at = {name: i for i, name in enumerate(rows.ids)}
        rows = rows.take([at[name] for name in dataset.ids])
    labels = np.asarray(dataset.labels, np.int64)
    return dataclasses.replace(rows, labels=labels if (labels >= 0).any() else None)


def _other(
    run: Run, split: str, device: str, on_progress: OnProgress
) -> tuple[EmbeddingSet, np.ndarray] | tuple[None, None]:
    """Return the other split and its images, or None if the data have no other split."""
    far = "test" if split == "train" else "train"
    try:
        on_fraction = fraction_of(on_progress, message("embedding the {far} images", far=far))
        return embed_run(run, far, "h", device, on_fraction), data_of(run, far).images
    except (ValueError, FileNotFoundError):
        return None, None


def pixel_rows(images: Images, other: Images | None = None) -> Pixels:
    """Return images (n, c, h, w) uint8 of one or two splits as rows (n, p) float32: all pixels, or a grid of them
    within WIDEST and MOST. Only those are copied from a memory map."""
    step = 1
    n = max(len(images), 0 if other is None else len(other))
    while (p := images[0, :, ::step, ::step].size) > WIDEST or p * n > MOST:
        if p <= images.shape[1]:
            break
        step += 1

    def rows(of: Images) -> np.ndarray:
        thin = np.asarray(of[:, :, ::step, ::step])
        return thin.reshape(len(thin), -1).astype(np.float32) / 255

    return rows(images), None if other is None else rows(other)


def _views(
    run: Run, dataset: datasets.Dataset, device: str, each: int, on_fraction: OnFraction
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return draws of z (n, each, d): `each` augmented views per image, in evaluation mode; and the mean (n, d) of the
    unit h of all views. Raises CannotGoOn if the device has too little memory."""
    method = load_model(run, dataset, device)
    where = next(method.parameters()).device
    chunk = forward_batch_size(CHUNK, dataset.images, method.encoder)
    starts = range(0, len(dataset), chunk)
    chunks, means = [torch.empty(0, each * DRAWS, method.head.out_dim)], list[torch.Tensor]()
    count = min(chunk, len(dataset)) * each * DRAWS
    memory = enough_memory(where, count, *dataset.images.shape[-2:])
    with torch.no_grad(), memory:
        for start in starts:
            x = _augmented(method, dataset, start, each * DRAWS)
            h = method.features(x.flatten(0, 1))
            chunks.append(method.project(h).unflatten(0, x.shape[:2]).float().cpu())
            means.append(normalize(h.float()).unflatten(0, x.shape[:2]).mean(1).cpu())
            on_fraction(len(chunks) / (len(starts) + 1))
    z = torch.cat(chunks).numpy()  # (n, each · draws, d)
    return [np.ascontiguousarray(z[:, each * d : each * (d + 1)]) for d in range(DRAWS)], torch.cat(means).numpy()


def _augmented(method: Method, dataset: datasets.Dataset, start: int, views: int) -> torch.Tensor:
    """Return views (b, views, c, h, w) of a chunk of images. Every chunk has its own seed."""
    chunk = forward_batch_size(CHUNK, dataset.images, method.encoder)
    images = torch.from_numpy(np.array(dataset.images[start : start + chunk]))
    generator = torch.Generator().manual_seed(start)
    return make_views(images.to(next(method.parameters()).device), method.recipe, views, generator)


def shown_views(run: Run, dataset: datasets.Dataset, sample: int) -> np.ndarray:
    """Return the two views (2, c, h, w) uint8 of an image that `kept_views` embeds, drawn again from their seed."""
    method = load_model(run, dataset, "cpu")
    row = sample % forward_batch_size(CHUNK, dataset.images, method.encoder)
    x = _augmented(method, dataset, sample - row, 2 * DRAWS)[row, :2]
    return (255 * x).round().to(torch.uint8).numpy()


@dataclass(frozen=True)
class PairShare:
    """Another sample that the loss compares with the anchor, and its share of the total pull or push."""

    id: str
    label: int  # −1: none
    score: float
    share: float  # of Σ|∂L_i/∂score|
    column: int  # among all that the loss compares


@dataclass(frozen=True, eq=False)
class Explanation:
    """Breakdown of one sample's loss."""

    loss: float  # NaN where it is undefined
    score_kind: str
    hardest_negatives: list[PairShare]
    weakest_positives: list[PairShare]
    pull: float  # share of the gradient that positives have; the rest pushes
    margin: float  # cosine to the nearest positive less that to the nearest negative; NaN: no pair
    neighbors: list[PairShare]  # the nearest by cosine, whatever their relation
    scores: np.ndarray  # (m) float32, what the loss compares
    mask: np.ndarray  # (m) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Kernel | None  # how the browser computes the loss; None: it cannot
    views: np.ndarray | None = None  # (2, c, h, w) uint8: the anchor and its positive, where the loss pairs views


def explain_sample(request: SampleRequest, sample: str) -> Explanation:
    """Explain a sample's loss. Raises ValueError for an unknown sample."""
    run, place, dataset, views = request.run, request.space.recorded, None, None
    of = run or (place.run if place else None)
    if run is None:
        rows = request.space.rows()
        assert rows is not None
    else:
        dataset, h, rows = rows_of(run, request.split)
        if not is_paired_by_class(run, h):
            views = kept_views(run, request.split, dataset)
    if sample not in rows.ids:
        values = {"sample": repr(sample), "id": repr(rows.ids[0])}
        raise ValueError(message("no sample {sample}; ids look like {id}", **values))
    row, knobs = rows.ids.index(sample), knobs_of(of, request.loss) if of else None
    found = explain_row(LossInputs(rows, request.loss, knobs, views, "cpu"), row)
    return (
        found
        if run is None or dataset is None or views is None
        else replace(found, views=shown_views(run, dataset, row))
    )


def explain_row(inputs: LossInputs, sample: int, most: int = 8) -> Explanation:
    """Explain the loss of row `sample` (its first view). Raises ValueError as `per_sample` does; IndexError."""
    rows, views, criterion = inputs.rows, inputs.views, inputs.criterion
    if not 0 <= sample < len(rows):
        raise IndexError(message("no row {sample}; there are {count} rows", sample=sample, count=len(rows)))
    v = 1 if views is None else views.shape[1]
    anchor = inputs.pairs().take_anchors(slice(sample * v, sample * v + 1))
    anatomy = criterion.anatomy(anchor)
    score, grad = (x[0].double().numpy() for x in (anatomy.scores, anatomy.grad_scores))
    positive, negative = (x[0].numpy() for x in (anatomy.positive, anatomy.negative))
    share = np.abs(grad) / max(float(np.abs(grad).sum()), 1e-30)
    mask = positive + 2 * negative + 3 * anatomy.self_pair[0].numpy()
    unit, others = normalize(anchor.anchors)[0], normalize(anchor.candidates)
    near = (others @ unit).double().numpy()  # (m) cosine of the one anchor with all candidates
    labels = np.full(len(rows), -1) if rows.labels is None else rows.labels
    nearness = score if anatomy.score_kind == "dot" else -score

    def listed(mask: np.ndarray, by: np.ndarray) -> list[PairShare]:
        columns = np.flatnonzero(mask)
        ordered = columns[np.argsort(by[columns])].tolist()
        return [PairShare(rows.ids[j // v], int(labels[j // v]), float(score[j]), float(share[j]), j) for j in ordered]

    other = np.arange(len(near)) // v != sample
    defined = bool(anatomy.output.weight[0] > 0)
    return Explanation(
        loss=float(anatomy.output.per_anchor[0]) if defined else float("nan"),
        score_kind=anatomy.score_kind,
        hardest_negatives=listed(negative, -nearness)[:most],
        weakest_positives=listed(positive, nearness)[:most],
        pull=float(share[positive].sum()),
        margin=_highest(near, positive) - _highest(near, negative),
        neighbors=listed(other, -near)[:most],
        scores=score.astype(np.float32),
        mask=mask.astype(np.uint8),
        kernel=criterion.kernel(),
    )


def _highest(near: np.ndarray, mask: np.ndarray) -> float:
    return float(near[mask].max()) if mask.any() else float("nan")
