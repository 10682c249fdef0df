"""The callback in real loops of transformers and sentence-transformers, both in the test extra."""

import pytest
import torch
from torch import nn

from contrastive_core.losses import create
from contrastive_core.pairs import from_views
from contrastive_core.spaces import recorded_rows

pytest.importorskip("transformers", reason="of the test extra: uv sync --extra test")
pytest.importorskip("sentence_transformers", reason="of the test extra: uv sync --extra test")

from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers import SentenceTransformerTrainingArguments as SentenceArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
from transformers import Trainer, TrainingArguments

from contrastive_core.recording import WatchCallback

QUIET = {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "use_cpu": True}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3))

    def forward(self, x, labels, ids):
        z = self.net(torch.stack([x, x + 0.1], 1))
        loss = create("nt_xent", temperature=0.2)(from_views(z)).value
        return {"loss": loss, "z": z.flatten(0, 1)}


def trained(folder, *callbacks) -> nn.Module:
    torch.manual_seed(0)
    model = Model()
    data = [{"x": torch.randn(4), "labels": i % 3, "ids": i} for i in range(24)]
    arguments = TrainingArguments(folder, num_train_epochs=2, per_device_train_batch_size=8, seed=0, **QUIET)
    Trainer(model, arguments, train_dataset=data, callbacks=list(callbacks)).train()
    return model


def test_a_trainer_is_recorded_and_not_disturbed(tmp_path) -> None:
    alone = trained(str(tmp_path))
    callback = WatchCallback(
        "trainer",
        loss="nt_xent",
        temperature=0.2,
        every=1,
        strict=True,
        rows=lambda inputs, output: output["z"].unflatten(0, (-1, 2)),
        encode=lambda batch: batch,
        probe=[torch.randn(5, 3)],
    )
    beside = trained(str(tmp_path), callback)
    for a, b in zip(alone.parameters(), beside.parameters(), strict=True):
        assert torch.equal(a, b)
    run = callback.watch.run
    steps = [line for line in run.metrics() if "images_per_s" in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5, 6]
    rows = recorded_rows.read(run, 1)
    assert rows.has_views
    assert (rows.labels[rows.view == 0] == rows.ids[rows.view == 0].astype(int) % 3).all()
    assert run.snapshots() == [3, 6]
    assert run.status()["status"] == "done"


class Words(nn.Module):
    """The smallest encoder that sentence-transformers trains: a vector for each letter."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.EmbeddingBag(128, 8)

    def tokenize(self, texts, **_):
        codes = [[min(ord(c), 127) for c in text[:10].ljust(10)] for text in texts]
        return {"input_ids": torch.tensor(codes)}

    preprocess = tokenize

    def forward(self, features, **_):
        return {**features, "sentence_embedding": self.letters(features["input_ids"])}

    def get_sentence_embedding_dimension(self):
        return 8

    def save(self, *_, **__):
        """Nothing is kept."""


def test_sentence_transformers_ranking_loss_is_ours(tmp_path) -> None:
    model = SentenceTransformer(modules=[Words()], device="cpu")
    words = [f"{a}{b} word" for a in "abcd" for b in "wxyz"]
    data = Dataset.from_dict({"anchor": words, "positive": [w[::-1] for w in words]})
    callback = WatchCallback("sentences", loss="info_nce", temperature=0.05, positives="keys", every=1, strict=True)
    values = []
    criterion = MultipleNegativesRankingLoss(model, scale=20.0)
    criterion.register_forward_hook(lambda m, args, value: values.append(value.item()))
    arguments = SentenceArguments(str(tmp_path), num_train_epochs=1, per_device_train_batch_size=8, seed=0, **QUIET)
    SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=criterion, callbacks=[callback]).train()
    steps = [line for line in callback.watch.run.metrics() if "images_per_s" in line]
    assert [line["loss"] for line in steps] == pytest.approx(values, rel=1e-4)
    assert recorded_rows.read(callback.watch.run, 1).has_views
