"""sentence-transformers' ranking loss, recorded with two towers, is the library's."""

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import nn

from contrastive_core import watch
from contrastive_core.spaces.recorded_rows import Recorded
from contrastive_core.spaces.towers import Towers, towers_of


def rows(n: int, d: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def towers_at(run, step: int = 1) -> Towers:
    found = towers_of(Recorded(run, "step", step).rows())
    assert found is not None
    return found


class Words(nn.Module):
    """A sentence's letters, counted, through one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(26, 8)

    def forward(self, features):
        return {"sentence_embedding": self.layer(features["letters"])}


@pytest.mark.parametrize("columns", [2, 3])
def test_sentence_transformers_ranking_loss_is_ours(columns: int) -> None:
    model = SentenceTransformer(modules=[Words()], device="cpu")
    criterion = MultipleNegativesRankingLoss(model, scale=20.0)
    sentences = [{"letters": rows(6, 26, seed=k)} for k in range(columns)]
    alone = criterion(sentences, torch.zeros(6))
    settings = {"temperature": 0.05, "positives": "keys", "towers": ("query", "document")}
    with watch("ranking", "info_nce", every=1, strict=True, **settings) as w:
        wrapped = w.wrap(criterion)
        value = wrapped(sentences, torch.zeros(6))
        value.backward()
        wrapped(tuple(sentences), None, watch_ids=list("abcdef"))
    assert torch.equal(value, alone)
    assert not model._forward_hooks
    for line in w.run.metrics():
        assert line["loss"] == pytest.approx(float(value.detach()), rel=1e-4)
    towers = towers_at(w.run, 2)
    assert len(towers.b) == 6 * (columns - 1)
    assert towers.rows.columns["pair"][:6].tolist() == list("abcdef")
