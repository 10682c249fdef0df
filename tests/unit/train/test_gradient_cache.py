"""A batch in micro-batches gives the loss and the gradients of the whole batch, for every method and on two processes;
views and dropout are the same in both passes, and batch norms remember the second."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from methods_setup import batch, make
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from worlds import spread

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.large_arrays import part_of
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.train import large_batches, loop
from contrastive_core.train.large_batches import GradientBuckets, StepLoss, global_pairs, local_value, parts_of
from contrastive_core.train.setup import TrainSetup, prepare

IMAGES = 9
SHORT = TrainConfig(
    "simclr", epochs=1, device="cpu", batch_size=256, encoder_knobs={"width": 0.25}, sample=50, threads=1
)


def exact(name: str, norms: bool = False, **knobs) -> methods.Method:
    """A method in double precision, whose batch norms take no statistics of the batch unless `norms`."""
    method = make(name, **knobs).double()
    for module in method.modules():
        if isinstance(module, _BatchNorm) and not norms:
            module.eval()
    for part in ("encoder", "key_encoder"):
        if (encoder := getattr(method, part, None)) is not None:
            encoder.register_forward_pre_hook(lambda module, images: (images[0].double(),))
    return method


def backward(
    method: methods.Method,
    images: Batch,
    parts: list[Batch],
    generator: torch.Generator | None = None,
    before_last: Callable[[], None] = lambda: None,
) -> StepLoss:
    """As a training calls it, with the loss of this method."""

    def evaluate(pairs: Pairs) -> StepLoss:
        pairs = global_pairs(pairs, by_label=method.card.needs_labels)
        output = method.loss(pairs)
        return pairs, output, local_value(output)

    setup = TrainSetup.__new__(TrainSetup)  # no more than a step needs
    vars(setup).update(
        method=method,
        loss=method.loss,
        generator=generator or torch.Generator().manual_seed(3),
        device=torch.device("cpu"),
        config=SHORT,
        buckets=SimpleNamespace(start=before_last),
    )
    return large_batches.backward(setup, images, parts, evaluate)


def gradients(method: methods.Method) -> dict[str, torch.Tensor]:
    return {k: p.grad.clone() for k, p in method.named_parameters() if p.grad is not None}


def assert_close(ours: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == want.keys()
    largest = max(gradient.abs().max() for gradient in want.values())
    assert largest > 0
    for name, gradient in want.items():
        assert (ours[name] - gradient).abs().max() / largest < 1e-10, name


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_the_gradients_of_the_whole_batch(name: str) -> None:
    images = batch(n=IMAGES)
    method = exact(name)
    generator = torch.Generator().manual_seed(3)
    want = method.loss(method.pairs(images, generator)).value
    want.backward()
    whole, again, own = gradients(method), exact(name), torch.Generator().manual_seed(3)
    parts = parts_of(images, 4, 1)
    assert [len(part.images) for part in parts] == [3, 3, 3]
    pairs, _, value = backward(again, images, parts, own)
    assert float(value.detach()) == pytest.approx(float(want.detach()), rel=1e-10)
    assert_close(gradients(again), whole)
    assert torch.equal(own.get_state(), generator.get_state())
    assert len(pairs) == len(method.pairs(images, generator))  # memory is updated with all rows


def test_a_queue_may_meet_a_loss_that_needs_all_anchors() -> None:
    images, loss = batch(n=IMAGES), losses.create("decoupled", weighting="von_mises")
    methods_ = [exact("moco_v2") for _ in range(2)]
    for method in methods_:
        method.loss = loss
    loss(methods_[0].pairs(images, torch.Generator().manual_seed(3))).value.backward()
    backward(methods_[1], images, parts_of(images, 4, 1))
    assert_close(gradients(methods_[1]), gradients(methods_[0]))


def test_dropout_is_the_same_in_both_passes_and_norms_remember_one() -> None:
    method, images = exact("simclr", norms=True), batch(n=IMAGES)
    method.encoder.body.append(nn.Dropout(0.5))
    seen: list[torch.Tensor] = []
    method.encoder.register_forward_hook(lambda module, args, h: seen.append(h.detach()))
    parts = parts_of(images, 3, 1)
    backward(method, images, parts)
    assert len(seen) == 2 * len(parts)
    assert all(torch.equal(a, b) for a, b in zip(seen[:3], seen[3:], strict=True))
    (count, *_) = {int(m.num_batches_tracked) for m in method.modules() if isinstance(m, _BatchNorm)}
    assert count == len(parts)


def test_parts_are_about_as_large_as_asked_and_as_many_everywhere() -> None:
    images = batch(n=IMAGES)
    assert parts_of(images, 20, 1) == [images]
    assert [len(p.images) for p in parts_of(images, 2, 1)] == [3, 2, 2, 2]  # none of a single image
    for rank in range(2):  # 5 and 4 of 9 images
        rows = part_of(IMAGES, (rank, 2))
        mine = images.part(rows.start, rows.stop)
        assert mine.share == BatchShare(rows.start, rows.stop, IMAGES)
        assert len(parts_of(mine, 2, 2)) == 2


def on_two(name: str, world: World) -> dict[str, torch.Tensor]:
    method, images = exact(name), batch(n=IMAGES)
    method.gather = collectives.all_gather if world.size > 1 else method.gather
    rows = part_of(IMAGES, (world.rank, world.size))
    mine = images.part(rows.start, rows.stop)
    buckets = GradientBuckets(method.parameters(), size=1 << 12)
    backward(method, mine, parts_of(mine, 2, world.size), before_last=buckets.start)
    buckets.finish()
    return gradients(method)


@pytest.mark.parametrize("name", ["simclr", "clip", "moco_v2"])
def test_two_processes_have_the_gradients_of_one(name: str, tmp_path: Path) -> None:
    for found in spread(partial(on_two, name), 2, tmp_path):
        assert_close(found, on_two(name, World()))


def test_a_run_trains_in_micro_batches() -> None:
    setup = prepare(dataclasses.replace(SHORT, micro_batch=64))
    run = runs.create("micro", setup.config.to_dict())
    assert loop.train(setup, run) == "done"
    assert run.config["micro_batch"] == 64


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ("metric", ["method.batches=lifted", "loss=lifted_structure"], "lifted batches choose negatives"),
        ("moco_v2", ["method.bn_splits=4"], "already splits the batch norm"),
    ],
)
def test_what_cannot_be_split_is_refused(method: str, settings: list[str], sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        prepare(with_settings(dataclasses.replace(SHORT, method=method, micro_batch=64), settings))


@pytest.mark.parametrize("value", ["1", "0", "-5", "many", "2.5"])
def test_a_micro_batch_is_a_whole_number_of_two_or_more(value: str) -> None:
    with pytest.raises(BadSetting, match="micro_batch must be"):
        with_settings(SHORT, [f"micro_batch={value}"])
