"""The text tower and the learned temperature: size, padding, state, and a few steps with InfoNCE."""

import pytest
import torch

from contrastive_core import losses, pairs
from contrastive_core.base.errors import BadSetting
from contrastive_core.data.captions import Vocabulary, build_vocabulary
from contrastive_core.models.text_tower import TEXT_ENCODERS, LearnedTemperature, TextTower

TEXTS = ["a red star", "a blue ring on green", "", "zzz"]


@pytest.mark.parametrize("kind", TEXT_ENCODERS)
def test_a_tower_is_small_ignores_padding_and_is_rebuilt_from_its_state(kind: str) -> None:
    torch.manual_seed(0)
    tower = TextTower(build_vocabulary(TEXTS[:2]), kind).eval()
    tokens = tower.encode(TEXTS)
    h = tower(tokens)
    assert h.shape == (4, tower.out_dim)
    assert h.isfinite().all()
    torch.testing.assert_close(tower(tokens[:, :5]), h)
    again = TextTower.from_state(tower.state_dict()).eval()
    assert again.vocabulary == tower.vocabulary
    assert torch.equal(again(again.encode(TEXTS)), h)
    large = TextTower(Vocabulary(tuple(map(str, range(2000)))), kind)
    assert sum(p.numel() for p in large.parameters()) < 500_000


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(BadSetting, match="text_encoder must be one of transformer, bag_of_words; got 'lstm'"):
        TextTower(Vocabulary(()), "lstm")


def test_a_temperature_is_learned_and_clamped() -> None:
    torch.manual_seed(0)
    tower, temperature = TextTower(build_vocabulary(TEXTS)), LearnedTemperature()
    assert temperature().item() == pytest.approx(0.07)
    rows, tokens, loss = torch.randn(4, tower.out_dim), tower.encode(TEXTS), losses.create("info_nce")
    optimizer = torch.optim.Adam([*tower.parameters(), *temperature.parameters()], lr=3e-3)
    values = []
    for _ in range(12):
        value = loss(pairs.from_towers(rows, tower(tokens)), temperature=temperature()).value
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        temperature.clamp()
        values.append(float(value))
    assert values[-1] < values[0] / 2
    assert temperature().item() != pytest.approx(0.07)
    temperature.log_scale.data.fill_(9.0)
    temperature.clamp()
    assert 1 / temperature().item() == pytest.approx(100)
