"""A large batch in micro-batches has the loss and the gradients of the whole batch, on one process and on two; LARS,
rates that fall off by layers, a cosine for the key encoder's momentum, other starts."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torchvision.models as models
from methods_setup import batch, make
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from worlds import spread

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.memory import part_of
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.data.recipe import Recipe
from contrastive_core.models.encoders import create_encoder
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.train import large_batches, loop
from contrastive_core.train.large_batches import GradientBuckets, StepLoss, global_pairs, local_value, parts_of
from contrastive_core.train.optim import ETA, create_optimizer, learning_rate_scales, set_learning_rate
from contrastive_core.train.setup import TrainSetup, prepare

TINY = TrainConfig(
    "simclr", "digits", epochs=2, device="cpu", threads=1, batch_size=512, sample=50, encoder_knobs={"width": 0.25}
)


def test_lars_by_hand() -> None:
    """Two steps on numbers whose norms are whole: w = (3, 4), g = (0, 10)."""
    w = nn.Parameter(torch.tensor([[3.0, 4.0]], dtype=torch.float64))
    b = nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    optimizer = create_optimizer("lars", [w, b], lr=2.0, weight_decay=0.5, momentum=0.9)
    w.grad, b.grad = torch.tensor([[0.0, 10.0]]).double(), torch.tensor([1.0]).double()
    optimizer.step()
    rate = 2.0 * ETA * 5 / (10 + 0.5 * 5)  # γ λ = 0.0008
    assert rate == pytest.approx(0.0008)
    v = [rate * (0 + 0.5 * 3), rate * (10 + 0.5 * 4)]
    assert w.tolist() == [pytest.approx([3 - v[0], 4 - v[1]], rel=1e-12)]
    assert b.item() == pytest.approx(2.0 - 2.0 * 1.0)  # λ = 1, no decay
    w1 = w.detach().clone()
    optimizer.step()
    norm = math.hypot(*w1[0].tolist())
    rate = 2.0 * ETA * norm / (10 + 0.5 * norm)
    v = [0.9 * v[0] + rate * 0.5 * w1[0, 0].item(), 0.9 * v[1] + rate * (10 + 0.5 * w1[0, 1].item())]
    assert w.tolist() == [pytest.approx([w1[0, 0].item() - v[0], w1[0, 1].item() - v[1]], rel=1e-12)]
    assert b.item() == pytest.approx(-(0.9 * 2.0 + 2.0))


def test_lars_moves_a_layer_of_zeros() -> None:
    """Without λ = 1 there it would stay at zero for ever, or become NaN without a gradient."""
    w = nn.Parameter(torch.zeros(2, 2))
    optimizer = create_optimizer("lars", [w], lr=0.1, weight_decay=0.1)
    w.grad = torch.zeros(2, 2)
    optimizer.step()
    assert torch.equal(w, torch.zeros(2, 2))
    w.grad = torch.ones(2, 2)
    optimizer.step()
    torch.testing.assert_close(w.detach(), torch.full((2, 2), -0.1))


def layers_of(network: nn.Module) -> dict[str, int]:
    scales = learning_rate_scales(network, 0.5)
    depths = {name: round(-math.log2(scales[id(p)])) for name, p in network.named_parameters()}
    return {name: max(depths.values()) - depth for name, depth in depths.items()}


def test_layers_are_stages_or_blocks() -> None:
    resnet = layers_of(models.resnet18())
    assert resnet["conv1.weight"] == resnet["bn1.bias"] == 0
    assert {n.split(".")[0]: i for n, i in resnet.items() if n.startswith("layer")} == {
        f"layer{i}": i for i in (1, 2, 3, 4)
    }
    sizes = {"patch_size": 4, "num_layers": 3, "num_heads": 1, "hidden_dim": 8, "mlp_dim": 8}
    vit = layers_of(models.VisionTransformer(image_size=8, **sizes))
    assert vit["class_token"] == vit["conv_proj.weight"] == vit["encoder.pos_embedding"] == 0
    blocks = [vit[f"encoder.layers.encoder_layer_{i}.mlp.0.weight"] for i in range(3)]
    assert blocks == [1, 2, 3]
    assert vit["encoder.ln.weight"] == 3
    small = layers_of(create_encoder("small", 1, 8))  # a convolution and its norm, six times
    assert [small[f"body.{3 * i}.weight"] for i in range(6)] == [0, 1, 2, 3, 4, 5]
    assert [small[f"body.{3 * i + 1}.bias"] for i in range(6)] == [0, 1, 2, 3, 4, 5]


def test_rates_fall_off_towards_the_images() -> None:
    setup = prepare(dataclasses.replace(TINY, layer_decay=0.5, optimizer="sgd", lr=0.8))
    set_learning_rate(setup.optimizer, 0.8)
    rates = {id(p): g["lr"] for g in setup.optimizer.param_groups for p in g["params"]}
    body = dict(setup.method.encoder.body.named_parameters())
    for layer in range(6):  # 0.5⁶ … 0.5 of the rate; the head takes all of it
        assert rates[id(body[f"{3 * layer}.weight"])] == pytest.approx(0.8 * 0.5 ** (6 - layer))
        assert rates[id(body[f"{3 * layer + 1}.weight"])] == pytest.approx(0.8 * 0.5 ** (6 - layer))
    assert {rates[id(p)] for p in setup.method.head.parameters()} == {0.8}
    plain = prepare(dataclasses.replace(TINY, optimizer="sgd", lr=0.8)).optimizer
    assert len(plain.param_groups) == 2
    for decay in (0.0, 1.5, -1.0):
        with pytest.raises(BadSetting, match="layer_decay"):
            dataclasses.replace(TINY, layer_decay=decay)


def moco(**settings: float) -> methods.Method:
    encoder = create_encoder("small", 1, 8, width=0.25)
    method = methods.create("moco_v2", encoder=encoder, image_shape=(1, 8, 8), n_train=64, recipe=Recipe(), **settings)
    method.loss = losses.create("info_nce")
    return method


def test_the_momentum_of_keys_rises_to_one_along_a_cosine() -> None:
    method = moco(momentum=0.96, momentum_cosine=True)
    method.total_steps = 100
    expected = {0: 0.96, 50: 0.98, 100: 1.0, 25: 1 - 0.04 * (math.cos(math.pi / 4) + 1) / 2}
    for step, m in expected.items():
        method.taken = step
        assert method.m == pytest.approx(m, abs=1e-12)
    assert moco(momentum=0.96).m == 0.96
    assert prepare(
        dataclasses.replace(TINY, method="moco_v2", method_knobs={"queue": 64})
    ).method.total_steps == 2 * math.ceil(1437 / 512)


def test_a_run_starts_from_another_with_its_head_or_a_new_one() -> None:
    setup = prepare(dataclasses.replace(TINY, epochs=1))
    first = runs.create("first", setup.config.to_dict())
    loop.train(setup, first)
    weights = checkpoints.load_weights(first)
    for with_head in (False, True):
        method = prepare(dataclasses.replace(TINY, start="first", start_head=with_head, seed=1)).method
        state = method.state_dict()
        assert all(torch.equal(state[k], v) for k, v in weights.items() if k.startswith("encoder."))
        same = [torch.equal(state[k], v) for k, v in weights.items() if k.startswith("head.")]
        assert all(same) == with_head
    other = dataclasses.replace(TINY, start="first", method_knobs={"dim": 8})
    assert prepare(other).method.head.out_dim == 8
    with pytest.raises(BadSetting, match="the head of first has a different structure"):
        prepare(dataclasses.replace(other, start_head=True))
    keys = prepare(dataclasses.replace(TINY, method="moco_v2", start="first")).method.key_encoder.state_dict()
    assert all(torch.equal(keys[k.removeprefix("encoder.")], v) for k, v in weights.items() if k.startswith("encoder."))
    with pytest.raises(BadSetting, match="the encoder of first has a different structure"):
        prepare(dataclasses.replace(TINY, start="first", encoder_knobs={"width": 0.5}))
    with pytest.raises(BadSetting, match=r"normalized differently: set encoder.colors=plain"):
        prepare(dataclasses.replace(TINY, start="first", encoder_knobs={"width": 0.25, "colors": "none"}))


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


def test_norms_remember_again_after_a_first_pass_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    method, images = exact("simclr", norms=True), batch(n=IMAGES)
    monkeypatch.setattr(method, "rows", lambda *_: pytest.fail("out of memory"))
    with pytest.raises(pytest.fail.Exception):
        backward(method, images, parts_of(images, 3, 1))
    assert all(m.track_running_stats for m in method.modules() if isinstance(m, _BatchNorm))


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
