"""An encoder behind CUDA graphs. Without a GPU, a stand-in for torch's capture shows what is replayed and when."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from contrastive_core.base.errors import BadSetting
from contrastive_core.data import datasets
from contrastive_core.ops.collectives import World
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.train.loop import compute_step
from contrastive_core.train.setup import CapturedForward, TrainSetup, capture, prepare

SETTINGS = ["encoder.width=0.25", "batch_size=256", "optimizer=sgd", "lr=0.05"]


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that a graph took."""
    sizes: list[int] = []

    def graphed(module: nn.Module, sample: tuple[Tensor]) -> nn.Module:
        plain: Callable[[Tensor], Tensor] = module.forward
        for _ in range(3):  # as torch's warms up
            plain(*sample)
        place: list[Tensor] = []

        def forward(images: Tensor) -> Tensor:
            sizes.append(len(images))
            h = plain(images)
            place[:] = [h] if not place else [place[0]]
            place[0].data.copy_(h.data)  # every replay writes to one place
            return h

        module.forward = forward  # type: ignore[assignment]
        return module

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", graphed)
    return sizes


def setup() -> TrainSetup:
    config = with_settings(TrainConfig("simclr", "digits", device="cpu", threads=1), SETTINGS)
    return prepare(config, dataset=datasets.load("digits"))


def trained(made: TrainSetup) -> dict[str, Tensor]:
    made.method.train()
    for index in [*made.loader.epoch(0), made.loader.epoch(0)[0][:200]]:
        step = compute_step(made, made.loader.batch(index), looks=False)
        made.optimizer.step()
        made.method.after_step(step.pairs)
    return made.method.state_dict()


def test_a_captured_training_ends_where_the_plain_one_does(replayed: list[int]) -> None:
    plain, made = trained(setup()), setup()
    made.method.encoder.forward = CapturedForward(made.method.encoder, amp=False)  # type: ignore[assignment]
    captured = trained(made)
    assert all(torch.equal(x, captured[name]) for name, x in plain.items())
    whole = [index for index in made.loader.epoch(0) if len(index) == 256]
    assert replayed == [512] * len(whole)  # two views; a smaller batch takes the plain way


def test_what_a_graph_cannot_take_is_computed_without_it(replayed: list[int]) -> None:
    encoder = setup().method.encoder.train()
    encoder.forward = CapturedForward(encoder, amp=False)  # type: ignore[assignment]
    images = torch.rand(8, 1, 8, 8)
    first = encoder(images)
    second = encoder(images)  # before the first has gone back: the graph holds its activations
    assert replayed == [8]
    (first.sum() + second.sum()).backward()
    with torch.no_grad():
        encoder(images)
    encoder.eval()(images)
    assert replayed == [8]
    encoder.train()(images).sum().backward()
    assert replayed == [8, 8]


@pytest.mark.parametrize(
    ("device", "changed"),
    [("cpu", {}), ("cuda", {"compile": True}), ("cuda", {"micro_batch": 16}), ("cuda", {"freeze": True})],
)
def test_settings_that_it_does_not_go_with_are_refused(device: str, changed: dict[str, object]) -> None:
    config = TrainConfig(capture=True, **changed)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="capture needs a CUDA GPU"):
        capture(nn.Linear(2, 2), config, torch.device(device), World())
