"""What needs no training, judged on the held-out images as trained runs are: by the vote of all other training images
(kNN). Raw pixels, the largest class, an untrained encoder, frozen encoders. Kept in the adviser's folder."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contrastive_core import metrics
from contrastive_core.data.dataset import Dataset
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.evaluation.embed import raw_pixels, untrained_rows
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.importers.frozen_encoders import embed_frozen
from contrastive_core.messages import N_, message, sentence
from contrastive_core.progress import OnProgress, fraction_of
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.storage import json_files

PIXELS, UNTRAINED, CHANCE = N_("raw pixels"), N_("an untrained encoder"), N_("the largest class")


class References:
    """Right or wrong (n) of each held-out image, by reference; computed when it is asked for, and kept."""

    def __init__(self, dataset: Dataset, rows: np.ndarray, folder: Path, device: str = "auto") -> None:
        self.dataset, self.rows, self.folder, self.device = dataset, rows, folder, device
        self.failed: dict[str, str] = {}  # why a frozen encoder could not be judged, by title

    def pixels(self) -> SettingScores:
        """Raw pixels."""
        return self._kept("pixels", PIXELS, lambda: raw_pixels(self.dataset))

    def chance(self) -> SettingScores:
        """Naming the most frequent class of the other images each time."""
        labels = self.dataset.labels
        rest = np.delete(labels, self.rows)
        largest = np.bincount(rest[rest >= 0]).argmax()
        return _fixed(CHANCE, np.where(labels[self.rows] >= 0, labels[self.rows] == largest, np.nan))

    def untrained(self, config: TrainConfig, seeds: Sequence[int]) -> SettingScores:
        """The encoder that a training with these settings begins with, a seed each."""
        from dataclasses import replace

        found = SettingScores(UNTRAINED)
        for seed in seeds:
            made = self._kept(f"untrained-{seed}", UNTRAINED, lambda s=seed: self._untrained(replace(config, seed=s)))
            found.scores[seed], found.right[seed] = made.mean, made.right[0]
        return found

    def frozen(self, encoders: Sequence[FrozenEncoder], on_progress: OnProgress) -> dict[FrozenEncoder, SettingScores]:
        """Each encoder that can be opened; why others cannot is kept in `failed`."""
        found = {}
        for encoder in encoders:
            progress = fraction_of(on_progress, message("{name}, frozen", name=encoder.title))
            try:
                rows = embed_frozen(encoder, self.dataset, self.device, progress)
            except (ValueError, OSError, RuntimeError) as error:
                self.failed[encoder.title] = sentence(error)
                continue
            found[encoder] = _fixed(encoder.title, self._right(rows))
        return found

    def _untrained(self, config: TrainConfig) -> EmbeddingSet:
        features = untrained_rows(config, self.dataset, self.device)
        return EmbeddingSet(features, np.asarray(self.dataset.labels, np.int64), classes=self.dataset.classes)

    def _kept(self, name: str, label: str, make) -> SettingScores:  # type: ignore[no-untyped-def]
        path = self.folder / "references" / f"{name}-{self.dataset.fingerprint[:16]}.npz"
        with contextlib.suppress(OSError, ValueError, KeyError):
            right = json_files.read_npz(path)["right"].astype(np.float64)
            if len(right) == len(self.rows):
                return _fixed(label, right)
        right = self._right(make())
        path.parent.mkdir(parents=True, exist_ok=True)
        json_files.write_npz(path, right=right.astype(np.float32))
        return _fixed(label, right)

    def _right(self, every: EmbeddingSet) -> np.ndarray:
        """Whether the vote of all other rows names each held-out row's class: (n), NaN without a label."""
        rest = every.take(np.setdiff1d(np.arange(len(every)), self.rows))
        result = metrics.create("knn")(rest, every.take(self.rows), Graphs(self.device))
        assert result.per_sample is not None
        return np.asarray(result.per_sample, np.float64)


def _fixed(label: str, right: np.ndarray) -> SettingScores:
    return SettingScores(label, {0: float(np.nanmean(right))}, {0: right}, is_fixed=True)
