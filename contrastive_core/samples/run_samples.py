"""Table of all samples of a run's split, with their losses and issues.

A supervised method's rows are paired by class, a self-supervised one's by two augmented views of each image (evaluation
mode). Augmentations are drawn twice, and the losses averaged. The loss uses z, as in training; the lists use h, which
holds more information. `explain_sample` breaks down the loss of one sample: its pairs and its margin."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from contrastive_core import methods
from contrastive_core.base.device import enough_memory
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
from contrastive_core.base.registry import Kernel
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
DRAWS = 2  # of augmentations, over which losses are averaged
STAGES = 5  # of a run's table
WIDEST = 4096  # numbers of an image that are looked at for outliers
MOST = 1 << 26  # of all images: 256 MB in float32


def make_table(request: SampleRequest, on_progress: OnProgress = ignore_progress, device: str = "auto") -> SampleTable:
    """Return the table of a run's split, of a recording or of loaded vectors (by class if they have labels), cached by
    weights, loss and split, together with the views of its images.

    The labels of a run are those of the training (`--relabel`); excluded samples stay excluded. Raises ValueError if
    the vectors are not stored."""
    if (table := request.table()) is not None:
        return table
    if (run := request.run) is not None:
        on_progress = one_bar(on_progress, STAGES)
        inputs = _inputs_of(run, request, device, on_progress)
    elif (rows := request.space.rows()) is not None:
        place, images = request.space.recorded, request.space.images()
        knobs, pixels = knobs_of(place.run, request.loss) if place else None, None
        if images is not None:
            pixels = pixel_rows(images)
        inputs = SampleInputs(rows, request.loss, knobs, pixels=pixels, device=device)
    else:
        raise ValueError(message("no vectors named {name}", name=request.name))
    table = build_table(inputs, on_progress)
    sample_table.keep_table(table, request.path())
    return table


def _inputs_of(run: Run, request: SampleRequest, device: str, on_progress: OnProgress) -> SampleInputs:
    """Collect the inputs of the table of a run's split; the views are stored for explanations."""
    split, far = request.split, "test" if request.split == "train" else "train"
    embedding = fraction_of(on_progress, message("embedding the {split} images", split=split))
    embedding(0.0)
    dataset, h, z = rows_of(run, split, device, embedding)
    each = 1 if is_paired_by_class(run, h) else 2
    draws, view_features = _views(run, dataset, device, each, fraction_of(on_progress, N_("augmented views")))
    if each == 2:
        write_npz(path_of(run, "views", "z", split), views=draws[0])
    other, other_images = None, None
    try:
        on_fraction = fraction_of(on_progress, message("embedding the {far} images", far=far))
        other, other_images = embed_run(run, far, "h", device, on_fraction), data_of(run, far).images
    except (ValueError, FileNotFoundError):  # no other split
        pass
    return SampleInputs(
        rows=z,
        loss=request.loss,
        knobs=knobs_of(run, request.loss),
        views=draws if each == 2 else None,
        features=h,
        view_features=view_features,
        other=other,
        pixels=pixel_rows(dataset.images, other_images),
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
    labels, found = np.asarray(dataset.labels, np.int64), []
    for layer in "hz":
        rows = embed_run(run, split, layer, device, on_fraction)
        if rows.ids != tuple(dataset.ids):  # no copy of all samples
            at = {name: i for i, name in enumerate(rows.ids)}
            rows = rows.take([at[name] for name in dataset.ids])
        found.append(replace(rows, labels=labels if (labels >= 0).any() else None))
    return dataset, found[0], found[1]


def is_paired_by_class(run: Run, rows: EmbeddingSet) -> bool:
    """Return whether rows are paired by class: the method is supervised and there are classes."""
    return rows.labels is not None and methods.get(str(run.config["method"])).card.needs_labels


def pixel_rows(images: Images, other: Images | None = None) -> Pixels:
    """Return images (n, c, h, w) uint8 of one or two splits as rows (n, p) float32: all pixels, or a grid of them
    within WIDEST and MOST. Only those are copied from a memory map."""
    step = 1
    n = max(len(images), 0 if other is None else len(other))
    while (p := images[0, :, ::step, ::step].size) > WIDEST or p * n > MOST:
        if p <= images.shape[1]:
            break
        step += 1
    thin = [None if of is None else np.asarray(of[:, :, ::step, ::step]) for of in (images, other)]
    own, far = (None if x is None else x.reshape(len(x), -1).astype(np.float32) / 255 for x in thin)
    assert own is not None
    return own, far


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


@dataclass(frozen=True)
class PairShare:
    """Another sample that the loss compares with the anchor, and its share of the total pull or push."""

    id: str
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
    margin: float  # cosine to the nearest positive less that to the nearest negative; not finite: no such pair
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
        views = None if is_paired_by_class(run, h) else kept_views(run, request.split, dataset)
    if sample not in rows.ids:
        values = {"sample": repr(sample), "id": repr(rows.ids[0])}
        raise ValueError(message("no sample {sample}; ids look like {id}", **values))
    row, knobs = rows.ids.index(sample), knobs_of(of, request.loss) if of else None
    explained = explain_row(LossInputs(rows, request.loss, knobs, views, "cpu"), row)
    if run is None or dataset is None or views is None:
        return explained
    method = load_model(run, dataset, "cpu")  # the two views that the loss compares are drawn again from their seed
    place_in_chunk = row % forward_batch_size(CHUNK, dataset.images, method.encoder)
    x = _augmented(method, dataset, row - place_in_chunk, 2 * DRAWS)[place_in_chunk, :2]
    return replace(explained, views=(255 * x).round().to(torch.uint8).numpy())


def explain_row(inputs: LossInputs, sample: int, most: int = 8) -> Explanation:
    """Explain the loss of row `sample` (its first view). Raises ValueError as `per_sample` does."""
    rows, criterion = inputs.rows, inputs.criterion
    v = 1 if inputs.views is None else inputs.views.shape[1]
    anchor = inputs.pairs().take_anchors(slice(sample * v, sample * v + 1))
    anatomy = criterion.anatomy(anchor)
    score, grad = (x[0].double().numpy() for x in (anatomy.scores, anatomy.grad_scores))
    positive, negative = (x[0].numpy() for x in (anatomy.positive, anatomy.negative))
    share = np.abs(grad) / max(float(np.abs(grad).sum()), 1e-30)
    near = (normalize(anchor.candidates) @ normalize(anchor.anchors)[0]).double().numpy()  # (m) cosines
    nearest = [float(near[mask].max(initial=-np.inf)) for mask in (positive, negative)]
    similarity = score if anatomy.score_kind == "dot" else -score

    def listed(mask: np.ndarray, by: np.ndarray) -> list[PairShare]:
        columns = np.flatnonzero(mask)
        ordered = columns[np.argsort(by[columns])].tolist()[:most]
        return [PairShare(rows.ids[j // v], float(score[j]), float(share[j]), j) for j in ordered]

    return Explanation(
        loss=float(anatomy.output.per_anchor[0]) if anatomy.output.weight[0] > 0 else float("nan"),
        score_kind=anatomy.score_kind,
        hardest_negatives=listed(negative, -similarity),
        weakest_positives=listed(positive, similarity),
        margin=nearest[0] - nearest[1],
        scores=score.astype(np.float32),
        mask=(positive + 2 * negative + 3 * anatomy.self_pair[0].numpy()).astype(np.uint8),
        kernel=criterion.kernel(),
    )
