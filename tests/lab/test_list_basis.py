"""Each list of Samples says what it rests on where its loss has no value per sample, or its method no negatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sample_desk import Desk, opened, text_of

from contrastive_core import losses, methods
from contrastive_core.pairs import from_views
from contrastive_core.samples import run_samples
from contrastive_lab.samples.list_basis import basis

pytestmark = pytest.mark.usefixtures("no_processes")


@pytest.mark.parametrize(
    ("name", "loss", "method", "said"),
    [
        ("loss", "barlow_twins", "barlow_twins", "Barlow Twins has no value per sample"),
        ("loss", "vicreg", "vicreg", "only the distance between a sample's two views is per sample"),
        ("loss", "lejepa", "lejepa", "only the distance between a sample's two views is per sample"),
        ("outlier", "barlow_twins", "barlow_twins", "rests on neighbors in the embedding, not on Barlow Twins"),
        ("false_negative", "negative_cosine", "byol", "BYOL has no negatives and pushes no pair apart"),
        ("false_negative", "vicreg", "vicreg", "VICReg has no negatives"),
        ("loss", "negative_cosine", "byol", ""),
        ("loss", "nt_xent", "simclr", ""),
        ("false_negative", "nt_xent", "simclr", ""),
        ("false_negative", "sup_con", "sup_con", ""),
        ("mislabeled", "vicreg", "vicreg", ""),
        ("loss", "nt_xent", "", ""),
    ],
)
def test_a_sentence_where_it_is_due(name: str, loss: str, method: str, said: str, made_catalog: None) -> None:
    text = basis(name, loss, method)
    assert said in text
    assert bool(text) == bool(said)


@pytest.mark.parametrize("name", losses.names())
def test_what_a_card_says_of_samples_is_true(name: str) -> None:
    """Two views of 12 images: without a value per sample all anchors have one value, else they differ."""
    torch.manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(12, 2, 8), dim=-1)
    criterion = losses.create(name)
    try:
        pairs = from_views(z, labels=torch.arange(12) % 4 if criterion.card.by_label else None)
        values = criterion(pairs).per_anchor.numpy()
    except ValueError:
        pytest.skip("it takes other pairs")
    assert (np.ptp(values) < 1e-6) == (criterion.card.per_sample == "none")


def test_it_stands_above_the_list(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastive_core.records import runs

    run_samples.samples_of_run(runs.load("simclr-digits"), "barlow_twins", "test")
    app = opened(run="simclr-digits", split="test", loss="barlow_twins", list="loss")
    assert "has no value per sample" in text_of(app)
    assert not app.exception


def test_methods_without_negatives_are_known() -> None:
    without = {name for name in methods.names() if "negatives" not in methods.get(name).card.uses}
    assert without == {"barlow_twins", "byol", "lejepa", "simsiam", "swav", "vicreg"}
