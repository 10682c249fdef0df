"""Scores of a fixed sample of training images, and the detection of a collapse. The test set is never read.

Deviations are those of unit rows times √d, as SimSiam (arXiv 2011.10566, fig. 2) plots them: 1 for evenly spread rows,
0 for one point. A random encoder starts near 0, so a collapse is a fall, or a low value that lasts. Losses over
dimensions depend on raw rows, which can shrink or become copies of a few dimensions. Limits were measured on digits and
shapes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.memory import npz_bytes
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.registry import knobs_of
from contrastive_core.data.augmentations import make_views, to_float
from contrastive_core.data.dataset import Captions
from contrastive_core.losses import Loss
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.methods import Method
from contrastive_core.metrics import create
from contrastive_core.metrics.knn import leave_one_out
from contrastive_core.metrics.rankme import effective_rank, spectrum
from contrastive_core.models.encoders import forward_batch_size
from contrastive_core.ops import collectives
from contrastive_core.ops.partner_ranks import RightAnswers, contents, gap_of_means, partner_ranks, unit_rows
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs.records import Change
from contrastive_core.runs.run import NOW, Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

if TYPE_CHECKING:
    from contrastive_core.train.setup import TrainSetup

PACE = 33.0  # seconds of training to one of looks between two epochs: 3 % of the time
PAUSE = 1.0  # seconds between two looks, at least: pages are drawn again as often
ALIGNED = 256  # images whose two views measure alignment
CHUNK = 500  # images per forward pass, at most
CAPTIONS = 5  # of an image of the sample, at most
ROWS, COLUMNS = 256, 8192  # of the pairs whose cosines are averaged
SEED = 20_020  # of the sample and its views: the same for every run, so that maps compare


@dataclass(frozen=True, eq=False)
class MonitoredSample:
    """The fixed sample: rows in the data set, images (s, c, h, w) uint8, labels (s), and captions if there are any."""

    index: np.ndarray
    images: Tensor
    labels: np.ndarray
    captions: Captions | None = None


def fixed_sample(
    images: Any, labels: np.ndarray, size: int, device: torch.device, captions: Captions | None = None
) -> MonitoredSample:
    """Return at most `size` rows, drawn with a fixed seed, in ascending order."""
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(labels))[:size])
    of_sample = captions and captions.take(chosen).at_most(CAPTIONS)
    return MonitoredSample(chosen, torch.from_numpy(np.asarray(images[chosen])).to(device), labels[chosen], of_sample)


@torch.no_grad()
def embed(method: Method, images: Tensor, amp: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return h (s, d) and z (s, e), float32, of uint8 images in evaluation mode; the mode is restored. `amp`: bf16."""
    was_training = method.training
    method.eval()
    h, z = [], []
    for part in images.split(forward_batch_size(CHUNK, images, method.encoder)):
        with torch.autocast(images.device.type, torch.bfloat16, enabled=amp):
            features = method.features(to_float(part))
            projected = method.project(features)
        h.append(features.float())
        z.append(projected.float())
    method.train(was_training)
    return torch.cat(h).cpu().numpy(), torch.cat(z).cpu().numpy()


@torch.no_grad()
def embed_sample(method: Method, sample: MonitoredSample, amp: bool = False) -> dict[str, np.ndarray]:
    """Return `h` and `z` of the sample. With captions, also `text_z` (m, e) float16, their z, and `text_of` (m), the
    index of each caption's image in the sample."""
    h, z = embed(method, sample.images, amp)
    if sample.captions is None or not sample.captions.texts:
        return {"h": h, "z": z}
    texts, at = np.unique(np.array(sample.captions.texts), return_inverse=True)  # equal texts get equal rows
    was_training = method.training
    method.eval()
    with torch.autocast(sample.images.device.type, torch.bfloat16, enabled=amp):
        parts = [texts[i : i + CHUNK].tolist() for i in range(0, len(texts), CHUNK)]
        text_z = torch.cat([method.encode_texts(part).float() for part in parts]).cpu().numpy().astype(np.float16)
    method.train(was_training)
    return {"h": h, "z": z, "text_z": text_z[at], "text_of": sample.captions.image}


class Looks:
    """Embeddings z of the fixed sample between epochs, for a live map. They take at most 1 / PACE of the time."""

    def __init__(self, setup: TrainSetup, run: Run) -> None:
        self.setup, self.run = setup, run
        self._first = self._due = 0.0
        if setup.world.is_rank0:
            (run.path / NOW).unlink(missing_ok=True)

    def after(self, step: int) -> None:
        """Embed the sample if it is due. Only rank 0 does."""
        now, setup, sample = time.monotonic(), self.setup, self.setup.sample
        if not self._due and self._first:  # a look is shorter than steps with as many images
            steps = len(sample.index) / (setup.config.batch_size or 1)
            self._due = now + PACE * steps * (now - self._first)
        self._first = self._first or now
        if setup.world.is_rank0 and 0 < self._due < now:
            z = embed(setup.method, sample.images, bool(setup.config.amp))[1].astype(np.float16)
            data = npz_bytes(step=np.array(step), index=sample.index, labels=sample.labels, z=z)
            self.run.write(NOW, data)
            self._due = time.monotonic() + max(PAUSE, PACE * (time.monotonic() - now))


def tower_scores(z: np.ndarray, text_z: np.ndarray, text_of: np.ndarray) -> dict[str, float]:
    """Return recall@1 of the sample in both directions, and the modality gap, from rows in float16."""
    rows = [x.astype(np.float16).astype(np.float32) for x in (z, text_z)]
    a, b = map(unit_rows, rows)
    group = np.arange(len(z))
    answers = RightAnswers.of(group, text_of, *map(contents, rows))
    is_captioned = np.flatnonzero(np.isin(group, text_of))
    forth = partner_ranks(a[is_captioned], b, answers.take(is_captioned)).hits(1)
    back = partner_ranks(b, a, answers.reversed).hits(1)
    recall = {"recall_1_forth": float(forth.mean()), "recall_1_back": float(back.mean())}
    return {**recall, "modality_gap": gap_of_means(a, b)}


@torch.no_grad()
def sample_scores(
    method: Method, sample: MonitoredSample, rows: dict[str, np.ndarray], amp: bool = False
) -> dict[str, float]:
    """Return the scores of the fixed sample: kNN accuracy and RankMe of h, alignment, uniformity and dimensions of z;
    undefined scores are omitted. Args: rows: as from `embed_sample`."""
    h, z, generator = rows["h"], rows["z"], torch.Generator().manual_seed(SEED)
    images, device = sample.images[:ALIGNED], str(sample.images.device)
    views = [
        (make_views(part, method.recipe, 2, generator).flatten(0, 1) * 255).round().to(torch.uint8)
        for part in images.split(forward_batch_size(ALIGNED, images))
    ]
    _, twice = embed(method, torch.cat(views), amp)
    rows_h = EmbeddingSet(h, sample.labels, split="train")
    rows_z = EmbeddingSet(z, sample.labels, split="train", views=twice.reshape(len(images), 2, -1))
    knn = leave_one_out(rows_h, device)
    values, graphs = {} if knn is None else {"knn_train_sample": knn}, Graphs(device)
    for name, metric_rows in (("alignment", rows_z), ("uniformity", rows_z), ("rankme", rows_h)):
        with contextlib.suppress(CannotScore):
            values[name] = create(name)(None, metric_rows, graphs).value
    if "text_z" in rows:
        values |= tower_scores(z, rows["text_z"], rows["text_of"])
    return values | dimension_scores(z)


def pair_similarity(pairs: Pairs) -> dict[str, float]:
    """Return the mean cosine of positive and negative pairs of a global batch (its first rows). All processes call it
    together."""
    counts = [one for (one,) in collectives.all_gather_ints(len(pairs))]
    before = sum(counts[: collectives.world().rank])
    r, c = slice(0, max(0, ROWS - before)), slice(0, COLUMNS)
    masks = pairs.masks(r, c)
    anchors = torch.nn.functional.normalize(pairs.anchors[r].float(), dim=1)  # (r, d)
    if pairs.columns is None:
        others = torch.nn.functional.normalize(pairs.candidates[c].float(), dim=1)
        s = anchors @ others.mT  # (r, c)
    else:
        others = pairs.candidates[pairs.columns[r, c]].float()  # (r, c, d)
        s = torch.einsum("nd,nkd->nk", anchors, torch.nn.functional.normalize(others, dim=2))
    sums = [x for mask in (masks.positive, masks.negative) for x in (s[mask].sum(), mask.sum())]
    positive, n_positive, negative, n_negative = collectives.all_reduce_sum(
        torch.stack([x.to(s.dtype) for x in sums])
    ).tolist()
    means = {"pos": (positive, n_positive), "neg": (negative, n_negative)}
    return {name: total / n for name, (total, n) in means.items() if n}


LOW, FALL = 0.2, 0.4  # an embedding has fallen that is below LOW, and below this share of its highest deviation
FALLEN = 10  # lines in a row
ONE_POINT = 0.1  # deviation below which rows are nearly one point; a random encoder may start there
NEVER_RISEN = 200  # lines in a row
ONE_DIMENSION = 1.2  # effective rank of z below which there is only one; a healthy run with two measured 1.6
STILL_ONE = 1.4  # below which a run that had collapsed still is; BYOL on digits, healthy, had 1.47 after two epochs
LOW_RANKS = 2  # epochs in a row
SHORTLY = 300  # steps; a change of settings so soon before a collapse is its likely reason
MOST_CHANGES = 3  # that are named, the newest
SHRUNK = 0.1  # of the highest deviation of raw rows; VICReg and LeJEPA stay above 0.7 of it
ALIKE = 0.95  # mean |correlation| of dimensions; with their weights Barlow Twins and VICReg measured 0.6 at most
SMALL_BATCH = 8
SMALL_WEIGHT = 0.01  # of the default: as good as none


@torch.no_grad()
def spread_of(pairs: Pairs, loss: Loss, has_texts: bool) -> dict[str, float]:
    """Return the mean and the smallest deviation of the dimensions of a global batch: of z, not of predictions, by
    tower with `has_texts`; `z_scale`: that of raw rows, if the loss depends on their length. All processes call it
    together."""
    rows = pairs.candidates if pairs.across else pairs.anchors  # anchors are those of this process
    towers = {"": rows}
    if has_texts:
        towers = {"": rows[pairs.candidate_views == 0], "text_": rows[pairs.candidate_views == 1]}
    found: dict[str, float] = {}
    for name, z in towers.items():
        found |= {f"{name}{k}": v for k, v in _of_unit_rows(z.float(), collectives.all_reduce_sum).items()}
    if isinstance(loss, TwoViewLoss) and loss.card.matrix != "correlation":
        found["z_scale"] = deviations(rows.float(), collectives.all_reduce_sum)[0]
    return found


def _of_unit_rows(z: Tensor, total: Callable[[Tensor], Tensor] = lambda x: x) -> dict[str, float]:
    """Return the mean and the smallest deviation, times √d, of the dimensions of rows (n, d) scaled to length 1."""
    mean, least = deviations(torch.nn.functional.normalize(z, dim=1), total)
    scale = z.shape[1] ** 0.5
    return {"z_std": mean * scale, "z_std_least": least * scale}


def deviations(rows: Tensor, total: Callable[[Tensor], Tensor] = lambda x: x) -> tuple[float, float]:
    """Return the mean and the smallest deviation of the dimensions of rows (n, d). `total` sums over processes."""
    n = total(rows.new_full((), len(rows)))
    centered = rows - total(rows.sum(0)) / n
    std = (total(centered.square().sum(0)) / n).sqrt()  # (d)
    mean, least = torch.stack([std.mean(), std.min()]).tolist()  # one wait for the device
    return mean, least


def dimension_scores(z: np.ndarray) -> dict[str, float]:
    """Return scores of the dimensions of rows z (n, d): mean and smallest standard deviation, effective rank, and mean
    |correlation|."""
    scores = _of_unit_rows(torch.from_numpy(z))
    centered = z - z.mean(0)
    varies = centered.std(0) > 1e-6 * max(1e-6, float(np.abs(z).max()))
    if len(z) < 2 or varies.sum() < 2:
        return scores
    scores["z_rank"] = effective_rank(spectrum(centered, "cpu"))
    columns = centered[:, varies] / centered[:, varies].std(0)  # (n, v)
    correlation, v = np.abs(columns.T @ columns) / len(z), int(varies.sum())
    return scores | {"z_correlation": float((correlation.sum() - np.trace(correlation)) / (v * (v - 1)))}


@dataclass
class CollapseWatch:
    """Tracks the deviations of a run; `is_collapsed` once they have fallen, or have never risen."""

    over_dimensions: bool = False  # the loss keeps dimensions apart
    highest: float = 0.0
    largest: float = 0.0  # of raw rows
    fallen_lines: int = 0  # in a row
    shrunk_lines: int = 0
    low_lines: int = 0
    low_ranks: int = 0  # epochs
    alike_epochs: int = 0
    is_collapsed: bool = False

    def see(self, line: dict[str, float]) -> None:
        """Update from a line of metrics, of a step or of an epoch."""
        if "z_rank" in line:
            least = STILL_ONE if self.is_collapsed else ONE_DIMENSION
            self.low_ranks = self.low_ranks + 1 if line["z_rank"] < least else 0
            is_alike = self.over_dimensions and line.get("z_correlation", 0) > ALIKE
            self.alike_epochs = self.alike_epochs + 1 if is_alike else 0
        elif "z_std" in line:
            z_std = min(line["z_std"], line.get("text_z_std", line["z_std"]))
            self.highest = max(self.highest, z_std)
            self.fallen_lines = self.fallen_lines + 1 if z_std < min(LOW, FALL * self.highest) else 0
            self.low_lines = self.low_lines + 1 if z_std < ONE_POINT else 0
            scale = line.get("z_scale", 1.0)
            self.largest = max(self.largest, scale)
            self.shrunk_lines = self.shrunk_lines + 1 if scale < SHRUNK * self.largest else 0
        self.is_collapsed = self.is_one_point or max(self.low_ranks, self.alike_epochs) >= LOW_RANKS

    @property
    def is_one_point(self) -> bool:
        return max(self.fallen_lines, self.shrunk_lines) >= FALLEN or self.low_lines >= NEVER_RISEN

    @property
    def in_words(self) -> str:
        """The warning about a collapse, with the likely `{reason}`."""
        if self.is_one_point:
            return N_("The embedding is collapsing to one point. Likely reason: {reason}")
        if self.low_ranks >= LOW_RANKS:
            return N_("The embedding is collapsing to one dimension. Likely reason: {reason}")
        return N_("The dimensions of the embedding are becoming copies of each other. Likely reason: {reason}")


def likely_reason(config: TrainConfig, method: Method, loss: Loss, changes: Sequence[Change] = ()) -> str:
    """Return the likely reason for a collapse, from the settings, and what to change. Args: changes: settings that were
    changed shortly before."""
    if not getattr(method.settings, "stop_gradient", True):
        return N_("the stop-gradient is off; use --set method.stop_gradient=on")
    if not getattr(method.settings, "predictor", True):
        return N_("there is no predictor; use --set method.predictor=on")
    for term in loss.card.terms:
        default, value = knobs_of(type(loss))[term.knob].default, getattr(loss, term.knob)
        if abs(value - term.absent_at) < SMALL_WEIGHT * default:
            values = {"name": term.knob, "value": f"{value:g}", "default": f"{default:g}"}
            return message("{name} is {value}; use --set loss.{name}={default}", **values)
    if config.loss == "negative_cosine" and "predictor" not in method.card.uses:
        text = N_("negative_cosine has no negatives and {method} no predictor; choose byol, simsiam or another loss")
        return message(text, method=config.method)
    if changes:
        template, told = N_("{change} at step {step}"), list[str]()
        for one in changes[-MOST_CHANGES:]:
            name = one["name"].removeprefix("loss.").replace("temperature", "τ")
            change = f"{name} {one['from']:g} → {one['to']:g}"
            told.append(message(template, change=change, step=f"{one['step']:,}"))
        return message("a change of settings shortly before ({changes}); change them back", changes=join(", ", told))
    if (config.batch_size or 0) < SMALL_BATCH:
        return message("a batch of {size} images is small; use --set batch_size=64 or more", size=config.batch_size)
    return message("the learning rate may be too high; use --set lr={lr}", lr=f"{(config.lr or 0) / 10:.1g}")
