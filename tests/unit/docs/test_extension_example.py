"""The loss that the guide adds is the one of PyTorch that it names."""

import runpy
import shutil
from pathlib import Path

import pytest
import torch

from contrastive_core import pairs
from contrastive_core.base import registry
from contrastive_core.base.storage import ROOT


def test_the_loss_of_the_guide_is_the_one_of_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = ROOT / "docs" / "guides"
    (tmp_path / "losses").mkdir()
    shutil.copy(guide / "cosine_embedding.toml", tmp_path / "losses")
    monkeypatch.setattr(registry, "PACKAGE", tmp_path)
    loss = runpy.run_path(str(guide / "cosine_embedding.py"), run_name="contrastive_core.losses.cosine_embedding")
    loss = loss["CosineEmbedding"](margin=0.1)
    assert loss.card.title == "Cosine embedding"
    z, labels = torch.randn(12, 5, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
    i, j = torch.triu_indices(12, 12, 1)
    sign = 2 * (labels[i] == labels[j]).int() - 1
    wanted = torch.nn.functional.cosine_embedding_loss(z[i], z[j], sign, margin=0.1)
    torch.testing.assert_close(loss(pairs.from_labels(z, labels)).value, wanted)
