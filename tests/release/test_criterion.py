"""`w.wrap` in real loops of lightly, pytorch-metric-learning and sentence-transformers."""

import pytest
import torch
from lightly.loss import NegativeCosineSimilarity, NTXentLoss
from pytorch_metric_learning import losses as metric_losses
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import nn

from contrastive_core import watch
from contrastive_core.spaces import recorded_rows
from contrastive_core.spaces.towers import towers_of


def looped(criterion) -> list[float]:
    """The library's own loop, called as its documentation calls it."""
    torch.manual_seed(0)
    encoder = nn.Linear(6, 8)
    optimizer = torch.optim.SGD(encoder.parameters(), 0.05)
    values = []
    for _ in range(4):
        x = torch.randn(12, 6)
        loss = criterion(encoder(x), encoder(x + 0.1 * torch.randn_like(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def test_lightly_memory_bank_is_the_queue() -> None:
    criterion = NTXentLoss(temperature=0.3, memory_bank_size=(32, 8))
    with watch("bank", loss="info_nce", temperature=0.3, every=1, strict=True) as w:
        values = looped(w.wrap(criterion))
    assert recorded_rows.read(w.run, 1).queue.shape == (32, 8)
    lines = w.run.metrics()
    assert [line["loss"] for line in lines] == pytest.approx(values, rel=1e-4)
    assert lines[0]["negatives"] == 32


def test_lightly_without_negatives() -> None:
    with watch("simsiam", every=1, strict=True) as w:
        looped(w.wrap(NegativeCosineSimilarity()))
    line = w.run.metrics()[-1]
    assert {"caller_loss", "alignment", "uniformity", "rankme"} <= line.keys()
    assert "loss" not in line


def test_rows_of_another_batch_are_told_of() -> None:
    criterion, z, y = metric_losses.ContrastiveLoss(), torch.randn(6, 4), torch.arange(6) % 2
    with watch("ref", loss="pair_contrastive", every=1, strict=True) as w:
        w.wrap(criterion)(z, y, ref_emb=torch.randn(6, 4), ref_labels=y)
    assert "ref_emb" in w.run.status()["note"]
    assert len(recorded_rows.read(w.run, 1).z) == 6


def test_what_the_loss_does_not_take() -> None:
    with watch("ids", loss="nt_xent", every=1, strict=True) as w:
        criterion = w.wrap(NTXentLoss())
        z = torch.randn(4, 3, requires_grad=True)
        criterion(z, z + 1, watch_ids=list("abcd"), watch_labels=torch.tensor([0, 1, 0, 1]))
        with torch.no_grad():
            criterion(z, z + 1)  # validation is no step
    assert recorded_rows.steps(w.run) == [1]
    rows = recorded_rows.read(w.run, 1)
    assert rows.ids.tolist() == list("aabbccdd")
    assert rows.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_a_loss_of_ones_own_and_a_learned_temperature() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.temperature = nn.Parameter(torch.tensor(0.4))

        def forward(self, a, b):
            return ((a @ b.T) / self.temperature).diagonal().mean()

    with watch("own", loss="nt_xent", every=1, strict=True) as w:
        wrapped = w.wrap(Own())
        wrapped(torch.randn(4, 3), torch.randn(4, 3))
    assert w.run.metrics()[0]["temperature"] == pytest.approx(0.4)
    assert list(wrapped.state_dict()) == ["criterion.temperature"]


def test_a_call_without_rows_changes_nothing() -> None:
    with watch("none", loss="nt_xent", every=1) as w:
        assert w.wrap(lambda x: x + 1)(1) == 2
    assert "the loss was called without rows" in w.run.status()["note"]


class Words(nn.Module):
    """A sentence's letters, counted, through one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(26, 8)

    def forward(self, features):
        return {"sentence_embedding": self.layer(features["letters"])}


@pytest.mark.parametrize("columns", [2, 3])
def test_sentence_transformers_ranking_loss_is_ours(columns: int) -> None:
    """A third column holds negatives, rows without a partner."""
    model = SentenceTransformer(modules=[Words()], device="cpu")
    criterion = MultipleNegativesRankingLoss(model, scale=20.0)
    sentences = [{"letters": torch.randn(6, 26)} for _ in range(columns)]
    settings = {"temperature": 0.05, "positives": "keys", "towers": ("query", "document")}
    with watch("ranking", "info_nce", every=1, strict=True, **settings) as w:
        wrapped = w.wrap(criterion)
        value = wrapped(sentences, torch.zeros(6))
        wrapped(tuple(sentences), None, watch_ids=list("abcdef"))
    assert torch.equal(value, criterion(sentences, torch.zeros(6)))
    assert not model._forward_hooks
    assert [line["loss"] for line in w.run.metrics()] == pytest.approx([value.item()] * 2, rel=1e-4)
    towers = towers_of(recorded_rows.Recorded(w.run, "step", 2).rows())
    assert towers is not None
    assert towers.without_partner == (0, 6 * (columns - 2))
    assert towers.rows.columns["pair"][:6].tolist() == list("abcdef")
