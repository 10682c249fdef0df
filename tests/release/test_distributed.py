"""Many processes compute what one big batch would: gloo at 1, 2 and 4 processes on this machine."""

import functools
import itertools

import numpy as np
import pytest
import torch
from largest import Largest
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from worlds import spread

from contrastive_core import losses, methods, pairs
from contrastive_core.base.errors import Elsewhere
from contrastive_core.base.memory import part_of
from contrastive_core.data import batch_loader
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.data.captions import Vocabulary
from contrastive_core.data.dataset import Captions
from contrastive_core.data.recipe import Recipe
from contrastive_core.models.encoders import SplitBatchNorm, create_encoder
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.train import large_batches

SIZES = [1, 2, 4]
WITHIN = {torch.float64: 1e-10, torch.float32: 1e-5}
# Through a whole encoder float32's rounding, which is the processor's own, can turn a ReLU over: on
# an Intel Xeon SupCon's gradients on four processes are 2.7e-5 away, and those of Barlow Twins, which divides by the
# deviation of each dimension, 1.2e-4 on two; in float64 none is 1e-10 away.
WITHIN_NETWORK = {torch.float64: 1e-10, torch.float32: 5e-4}


JOBS = ("messages", "unused", "every_loss", "every_method", "large", "agree")


def every_job(world: World) -> dict:
    return {job: globals()[job](world) for job in JOBS}


@functools.cache
def by_one(job: str) -> dict:
    """What this process computes alone."""
    return globals()[job](World())


@pytest.fixture(scope="module", params=SIZES[1:])
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What each of 2, then 4 processes computed, by job. They start once for all tests."""
    found = spread(every_job, request.param, tmp_path_factory.mktemp("world"))
    return {job: [one[job] for one in found] for job in JOBS}


# --- the pieces --------------------------------------------------------------------------------


ROWS, LABELS = 13, torch.tensor([0, 1, 2, 0, 1, -1, 5, 6, 0, 2, 2, 1, 7])  # some without a positive


def local_share(batch: torch.Tensor, world: World) -> torch.Tensor:
    return batch[part_of(len(batch), (world.rank, world.size))]


def messages(world: World) -> dict:
    """What processes tell each other."""
    mine = local_share(torch.arange(ROWS), world)
    state = {"w": torch.tensor([1.0 + world.rank]), "same": torch.ones(2)}
    return {
        "gathered": collectives.all_gather(LABELS[mine] == 0),
        "objects": collectives.all_gather_object(world.rank),
        "mismatched": collectives.mismatched_tensors(state),
    }


def test_messages_reach_every_process(worlds: dict[str, list]) -> None:
    for found in worlds["messages"]:
        assert torch.equal(found["gathered"], LABELS == 0)
        assert found["objects"] == list(range(len(worlds["messages"])))
        assert found["mismatched"] == ["w"]


def unused(world: World) -> dict:
    """Gradients where one layer is used on the last process only, and one nowhere; buckets sent during backward."""
    torch.manual_seed(0)
    layers = {name: nn.Linear(6, 2).double() for name in ("nowhere", "somewhere", "everywhere")}
    x = torch.randn(ROWS, 6, dtype=torch.float64)
    buckets = large_batches.GradientBuckets(nn.ModuleDict(layers).parameters(), size=1)
    total = layers["everywhere"](local_share(x, world)).square().sum()
    if world.rank == world.size - 1:
        total = total + layers["somewhere"](x[-2:]).square().sum()
    buckets.start()
    total.backward()
    sent = len(buckets._sent)
    buckets.finish()
    return {"sent": sent, **{f"{k}.{name}": p.grad for k, m in layers.items() for name, p in m.named_parameters()}}


def test_a_parameter_without_a_gradient_on_some_process_has_the_sum(worlds: dict[str, list]) -> None:
    alone = by_one("unused")
    for rank, found in enumerate(worlds["unused"]):
        assert found.pop("sent") == (4 if rank == len(worlds["unused"]) - 1 else 2)  # a bucket for each parameter
        assert not found.pop("nowhere.weight").any()
        assert not found.pop("nowhere.bias").any()
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, alone[name], rtol=1e-10, atol=1e-12, msg=name)


def every_loss(world: World) -> dict:
    """Value and gradient of every registered loss, on rows that this process has a share of, and of one with anchors
    in the first view alone."""
    mine, found = local_share(torch.arange(ROWS), world), {}
    for name in (*losses.names(), "first view"):
        for dtype in WITHIN:
            torch.manual_seed(1)
            z = torch.randn(ROWS, 2, 5, dtype=torch.float64)
            bank = torch.nn.functional.normalize(torch.randn(20, 5, dtype=torch.float64), dim=1)
            z, bank = z.to(dtype).requires_grad_(), bank.to(dtype)
            loss = losses.create("sup_con" if name == "first view" else name)
            made = pairs.from_views(z[mine], LABELS[mine], "first_view" if name == "first view" else "all")
            if loss.check(made):
                made = pairs.from_views(z[mine])
                by_label = False
            else:
                by_label = True
            if loss.check(made) or name in ("nce", "instance_softmax"):
                noise = (torch.arange(ROWS)[:, None] + torch.arange(1, 6)) % 20 if name == "nce" else None
                noise = None if noise is None else noise[mine]
                made = pairs.from_bank(z[mine, 0], mine, bank, noise, log_z=3.0)
            made = large_batches.global_pairs(made, by_label)
            value = large_batches.local_value(loss(made))
            value.backward()
            assert z.grad is not None
            found[name, dtype] = (collectives.all_reduce_sum(value.detach()), collectives.all_reduce_sum(z.grad))
    return found


def test_every_loss_equals_one_process(worlds: dict[str, list]) -> None:
    alone = by_one("every_loss")
    for found in worlds["every_loss"]:
        for (name, dtype), (value, gradient) in alone.items():
            got, grad = found[name, dtype]
            assert (got - value).abs() <= WITHIN[dtype] * max(1, value.abs()), name
            away = (grad - gradient).abs().max() / gradient.abs().max()
            assert away <= WITHIN[dtype], (name, dtype, away)


KNOBS = {"inst_disc": {"noise": 0}, "moco_v1": {"queue": 20}, "moco_v2": {"queue": 20}}
LOSS = {"inst_disc": "instance_softmax", "metric": "triplet"}
N_TRAIN = 16


def every_method(world: World) -> dict:
    """Weights, queue, bank and gradients of every method after two steps, without augmentation."""
    found = {}
    images = torch.randint(0, 256, (N_TRAIN, 1, 8, 8), generator=torch.Generator().manual_seed(2))
    labels = torch.arange(N_TRAIN) % 3
    words = ("green", "red", "blue")
    texts = tuple(" ".join(words[image % k] for k in (1, 2, 3)) for image in range(N_TRAIN))
    captions = Captions(texts, np.arange(N_TRAIN))
    for name, dtype in itertools.product(methods.names(), WITHIN):
        torch.manual_seed(0)
        method = methods.create(
            name,
            encoder=create_encoder("small", 1, 8, width=0.25),
            image_shape=(1, 8, 8),
            n_train=N_TRAIN,
            recipe=Recipe(crop=0, flip=0, jitter=0, gray=0),
            vocabulary=Vocabulary(("red", "blue")),
            **KNOBS.get(name, {}),
        ).to(dtype)
        method.views = lambda batch, count, _, dtype=dtype: torch.stack(
            [to_float(batch.images).to(dtype) * (1 - 0.1 * i) for i in range(count)], dim=1
        )
        if name == "cpc":
            method.patches = lambda b, _, m=method, dtype=dtype: m.cut(to_float(b.images).to(dtype))
        large_batches.synchronize_norms(method)
        method.gather = collectives.all_gather
        cls = methods.get(name)
        loss = losses.create(LOSS.get(name, cls.card.default_loss))
        method.use_loss(loss)
        parameters = [p for p in method.parameters() if p.requires_grad]
        buckets = large_batches.GradientBuckets(parameters, size=1 << 12)
        optimizer = torch.optim.SGD(parameters, lr=0.05)
        generator = torch.Generator().manual_seed(0)
        for start in (0, 5):
            mine = local_share(torch.arange(start, start + 11), world)
            share = BatchShare(int(mine[0]) - start, int(mine[-1]) - start + 1, 11)
            of_mine = captions.take(mine.numpy())
            batch = Batch(images[mine].to(torch.uint8), labels[mine], mine, share, of_mine)
            made = large_batches.global_pairs(method.pairs(batch, generator), cls.card.needs_labels)
            value = large_batches.local_value(loss(made))
            optimizer.zero_grad()
            buckets.start()
            value.backward()
            buckets.finish()
            optimizer.step()
            method.after_step(made)
        assert not collectives.mismatched_tensors(method.state_dict()), name
        gradients = {k: p.grad for k, p in method.named_parameters() if p.requires_grad}
        found[name, dtype] = (collectives.all_reduce_sum(value.detach()), gradients, method.state_dict())
    return found


def test_every_method_equals_one_process(worlds: dict[str, list]) -> None:
    alone = by_one("every_method")
    for found in worlds["every_method"]:
        for (name, dtype), (value, gradients, state) in alone.items():
            got_value, got_gradients, got_state = found[name, dtype]
            assert abs(got_value - value) <= WITHIN[dtype] * max(1, abs(value)), name
            largest = max(float(g.abs().max()) for g in gradients.values())
            for key, tensor in gradients.items():
                away = float((got_gradients[key] - tensor).abs().max())
                assert away <= WITHIN_NETWORK[dtype] * largest, (name, dtype, key, away / largest)
            for key, tensor in state.items():  # weights, queue, bank
                scale = max(1.0, float(tensor.nan_to_num().abs().max()))
                within = WITHIN_NETWORK[dtype] * scale
                assert torch.allclose(got_state[key], tensor, 0, within, equal_nan=True), (name, key)


def large(world: World) -> dict:
    """So many rows that the engine works in tiles: what each makes, and the largest tensor."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # one lane: everything happens where it can be watched
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(LARGE, 2, 8, generator=generator).requires_grad_()
    mine = local_share(torch.arange(LARGE), world)
    made = large_batches.global_pairs(pairs.from_views(z[mine]), by_label=False)
    with Largest() as largest:
        value = large_batches.local_value(losses.create("nt_xent")(made))
        value.backward()
    torch.set_num_threads(before)
    assert z.grad is not None
    scores = len(made) * made.width
    found = collectives.all_reduce_sum(value.detach()), collectives.all_reduce_sum(z.grad)
    return {"made": found, "largest": largest.elements, "scores": scores}


LARGE = 2800  # images; twice as many rows, and 2 · 2,800 / 4 · 5,600 scores on each of four


def test_no_process_holds_the_matrix_of_scores(worlds: dict[str, list]) -> None:
    value, gradient = by_one("large")["made"]
    for found in worlds["large"]:
        assert found["largest"] < found["scores"] / 8
        got, grad = found["made"]
        assert abs(got - value) <= 1e-5 * max(1, abs(value))
        assert (grad - gradient).abs().max() <= 1e-5 * gradient.abs().max()


@pytest.mark.parametrize("kind", batch_loader.PLANS)
def test_every_kind_of_batch_is_shared_out(kind: str) -> None:
    labels = np.repeat(np.arange(6), 9)
    for batch in batch_loader.plan(kind, labels, 16, seed=1, epoch=2):
        parts = [local_share(torch.from_numpy(batch), World(r, 4)) for r in range(4)]
        assert torch.equal(torch.cat(parts), torch.from_numpy(batch))
        assert all(len(part) for part in parts)


def agree(world: World) -> list[str]:
    """What each hears when the last process cannot go on, and when the first cannot do its own work."""

    def work() -> int:
        if world.rank == world.size - 1 and world.size > 1:
            raise ValueError("no data here")
        return world.rank

    assert collectives.raise_together(lambda: world.rank) == world.rank
    assert collectives.broadcast_object(world.rank) == 0
    done: list[int] = []
    for _ in range(2):
        collectives.on_rank0(lambda: done.append(world.rank))
    assert done == ([0, 0] if world.is_rank0 else [])
    heard = []
    for fails in (lambda: collectives.raise_together(work), lambda: collectives.on_rank0(_cannot)):
        try:
            fails()
            heard.append("nothing")
        except (ValueError, Elsewhere) as error:
            heard.append(type(error).__name__)
    return heard


def _cannot() -> None:
    raise ValueError("the disk is full")


def test_one_process_says_what_is_wrong_and_all_end(worlds: dict[str, list]) -> None:
    first, *others = worlds["agree"]
    last = others.pop()
    assert last == ["ValueError", "Elsewhere"]
    assert first == ["Elsewhere", "ValueError"]
    assert all(heard == ["Elsewhere", "Elsewhere"] for heard in others)
    assert agree(World()) == ["nothing", "ValueError"]


def test_a_world_of_one_changes_nothing() -> None:
    x = torch.randn(3, 2, requires_grad=True)
    assert collectives.init_process_group() == World()
    assert collectives.all_gather(x) is x
    assert collectives.all_reduce_sum(x) is x
    assert collectives.all_gather_object(5) == [5]
    net = nn.BatchNorm1d(2)
    assert large_batches.synchronize_norms(net) is net
    made = pairs.from_labels(x, torch.zeros(3, dtype=torch.long))
    assert large_batches.global_pairs(made, by_label=True) is made


def test_cuda_takes_torchs_batch_norm_over_processes_but_for_parts(monkeypatch) -> None:
    monkeypatch.setattr(collectives, "is_single_process", lambda: False)

    def norms(device: str) -> list[type]:
        layers = nn.BatchNorm2d(3, device=device), nn.BatchNorm1d(3, device=device), SplitBatchNorm(3, device=device)
        return [type(norm) for norm in large_batches.synchronize_norms(nn.ModuleList(layers))]

    ours = large_batches.SyncBatchNorm
    with FakeTensorMode():
        assert norms("cuda") == [nn.SyncBatchNorm, nn.SyncBatchNorm, ours]
    assert norms("cpu") == [ours] * 3
