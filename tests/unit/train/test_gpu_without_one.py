"""What differs on a GPU, tried without one: an encoder behind CUDA graphs, where a stand-in for torch's capture shows
what is replayed and when; looks at some steps only; random states; which GPU."""

import dataclasses
import shutil
import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from trainings import start

from contrastive_core import runs
from contrastive_core.base.device import for_process
from contrastive_core.base.errors import BadSetting, CannotGoOn, Elsewhere, NoDevice
from contrastive_core.data import batch_loader, datasets
from contrastive_core.metrics import knn
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.train import loop, monitor, state
from contrastive_core.train.loop import compute_step
from contrastive_core.train.setup import CapturedForward, TrainSetup, capture, prepare

# --- CUDA graphs ---


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


def stepped(made: TrainSetup) -> dict[str, Tensor]:
    made.method.train()
    for index in [*made.loader.epoch(0), made.loader.epoch(0)[0][:200]]:
        step = compute_step(made, made.loader.batch(index), looks=False)
        made.optimizer.step()
        made.method.after_step(step.pairs)
    return made.method.state_dict()


def test_a_captured_training_ends_where_the_plain_one_does(replayed: list[int]) -> None:
    plain, made = stepped(setup()), setup()
    made.method.encoder.forward = CapturedForward(made.method.encoder, amp=False)  # type: ignore[assignment]
    captured = stepped(made)
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


# --- batches, looks, states and devices ---


QUICK = {"encoder_knobs": {"width": 0.25}, "sample": 50, "threads": 1, "amp": False}
SHORT = TrainConfig("sup_con", epochs=1, device="cpu", batch_size=256, save_seconds=0.0, **QUICK)  # six steps


def test_batches_are_pinned_by_the_thread_and_copied_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned, without_waiting = list[str](), list[bool]()

    def pin(tensor: Tensor) -> Tensor:
        pinned.append(threading.current_thread().name)
        return tensor

    def copy(tensor: Tensor, device: object, non_blocking: bool = False) -> Tensor:
        without_waiting.append(non_blocking)
        return tensor

    on_gpu = dataclasses.replace(prepare(SHORT).loader, device=torch.device("cuda", 1))
    monkeypatch.setattr(batch_loader, "ON_DEVICE", 0)  # as if they were too many for the GPU
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    monkeypatch.setattr(Tensor, "pin_memory", pin)
    monkeypatch.setattr(Tensor, "to", copy)
    assert len(list(on_gpu.batches([np.arange(8), np.arange(8, 16)]))) == 2
    assert [name.startswith("next-batch") for name in pinned] == [False] * 3 + [True] * 3  # images, labels, indices
    assert without_waiting == [True] * 6


@pytest.fixture
def as_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    should_log = loop.should_log
    monkeypatch.setattr(loop, "should_log", lambda device, step: should_log(torch.device("cuda"), step))


def trained(name: str) -> runs.Run:
    return start(SHORT, name)[1]


def epoch_line(run: runs.Run) -> dict:
    (line,) = (x for x in run.metrics() if "images_per_s" not in x)
    return line


def test_an_epochs_loss_is_the_mean_of_all_its_steps_however_few_are_logged(request) -> None:
    every_step = trained("every")
    mean = np.mean([x["loss"] for x in every_step.metrics() if "images_per_s" in x])
    assert epoch_line(every_step)["loss"] == pytest.approx(mean, rel=1e-12)
    request.getfixturevalue("as_on_cuda")
    few = trained("few")
    assert len([x for x in few.metrics() if "images_per_s" in x]) == 1
    assert epoch_line(few)["loss"] == epoch_line(every_step)["loss"]


def test_images_before_an_epochs_end_do_not_count_for_the_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    log, seconds, lines = loop.MetricsLog(prepare(SHORT), runs.create("rate", {}), print), iter([1.0, 2.0]), []
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(log, "_add", lines.append)
    log.images += 700  # steps that no line told of
    log.epoch(state.TrainPosition(), {"loss": 1.0})
    log.images += 300
    log.step(state.TrainPosition(), {})
    assert lines[-1]["images_per_s"] == 300.0


@pytest.mark.parametrize("at", ["the end of an epoch", "a stop"])
def test_no_state_is_saved_after_a_step_that_was_not_finite(
    at: str, as_on_cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = prepare(SHORT)
    run, steps = runs.create("nan", setup.config.to_dict()), []
    after_step = setup.method.after_step

    def poison(pairs) -> None:
        after_step(pairs)
        steps.append(pairs)
        if len(steps) == 2:  # the next step is not finite, and is not looked at
            with torch.no_grad():
                next(setup.method.parameters()).fill_(torch.nan)

    monkeypatch.setattr(setup.method, "after_step", poison)
    if at == "a stop":
        monkeypatch.setattr(loop, "should_stop", lambda *_: len(steps) == 4)
    with pytest.raises(CannotGoOn, match=r"the loss is nan at step \d; the last good state is kept"):
        loop.train(setup, run)
    assert run.status()["status"] == "failed"
    assert "lower learning rate" in run.status()["reason"]
    assert not run.weights.exists()
    assert not any((run.path / "state").glob("*"))


def test_a_stop_in_an_epoch_keeps_its_sum(as_on_cuda: None, monkeypatch) -> None:
    whole = trained("whole")
    looks = []

    def stop_once(stop: object, *_: object) -> bool:
        looks.append(stop)
        return len(looks) == 3

    with monkeypatch.context() as patch:
        patch.setattr(loop, "should_stop", stop_once)
        parts = trained("parts")
    assert parts.status()["status"] == "stopped"
    assert loop.train(prepare(SHORT), parts, resume=True) == "done"
    assert epoch_line(parts)["loss"] == epoch_line(whole)["loss"]


def test_the_random_state_of_every_processs_gpu_is_kept(monkeypatch) -> None:
    """Each process saves that of its own GPU, and gets it back."""
    setup = dataclasses.replace(prepare(SHORT), device=torch.device("cuda:1"))
    mine, other = torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([3, 4], dtype=torch.uint8)
    put_back: list[tuple[list[int], str]] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: mine)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda s, device: put_back.append((s.tolist(), str(device))))
    gathered = collectives.all_gather_object
    monkeypatch.setattr(
        collectives,
        "all_gather_object",
        lambda value, group=None: (
            [value, {**value, "random.cuda": other}] if isinstance(value, dict) else gathered(value)
        ),
    )
    run = runs.create("gpus", setup.config.to_dict())
    totals = state.new_totals(torch.device("cpu"))
    with state.StateWriter() as writer:
        state.save(setup, run, state.TrainPosition(), totals, writer)
    for rank, want in ((0, mine), (1, other)):
        world = collectives.World(rank, 2, rank, 2)
        monkeypatch.setattr(collectives, "broadcast_object", lambda _: checkpoints.load_state(run))
        state.resume(dataclasses.replace(setup, world=world), run, totals)
        assert put_back[-1] == (want.tolist(), "cuda:1")


def test_every_process_has_a_gpu_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for name in ("auto", "cuda"):
        devices = [for_process(name, rank, 2) for rank in (0, 1)]
        assert [str(d) for d in devices] == ["cuda:0", "cuda:1"]
    assert str(for_process("cuda:1", 0, 1)) == "cuda:1"
    assert str(for_process("cpu", 1, 2)) == "cpu"
    with pytest.raises(NoDevice, match=r"cuda:0 is one GPU.*2 processes; use --device cuda"):
        for_process("cuda:0", 1, 2)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    for rank, error in (("0", NoDevice), ("1", Elsewhere)):  # said once
        monkeypatch.setenv("LOCAL_RANK", rank)
        with pytest.raises(error):
            collectives.init_process_group("cuda:0")


def test_the_monitor_works_on_the_trainings_device(monkeypatch) -> None:
    setup, devices, nearest, graphs = prepare(SHORT), [], knn.nearest, monitor.Graphs
    monkeypatch.setattr(knn, "nearest", lambda *a, device: devices.append(device) or nearest(*a, device=device))
    monkeypatch.setattr(monitor, "Graphs", lambda device: devices.append(device) or graphs(device))
    monitor.sample_scores(setup.method, setup.sample, monitor.embed_sample(setup.method, setup.sample))
    assert devices == ["cpu"] * 2


def test_processes_wait_patiently_for_work_that_takes_long(monkeypatch) -> None:
    """Where one decodes a folder or scores the sample, the others meet it in one group without the usual time limit."""
    groups: list[tuple[str, timedelta]] = []
    monkeypatch.setattr(collectives, "is_single_process", lambda: False)
    monkeypatch.setattr(
        collectives.dist, "new_group", lambda backend, timeout: groups.append((backend, timeout)) or "patient"
    )
    met: list[object] = []
    monkeypatch.setattr(collectives, "all_gather_object", lambda value, group: met.append(group) or [value])
    collectives._patient_group.cache_clear()
    try:
        assert collectives.raise_together(lambda: 5, patient=True) == 5
        collectives.on_rank0(lambda: None)
    finally:
        collectives._patient_group.cache_clear()
    ((backend, timeout),) = groups
    assert backend == "gloo"
    assert timeout >= timedelta(days=1)
    assert met == ["patient", "patient"]


def test_a_run_whose_folder_is_gone_ends_and_says_so(tmp_path) -> None:
    setup = prepare(SHORT)
    run = runs.create("gone", setup.config.to_dict())

    def lose(lines: list[dict]) -> None:
        if lines[-1]["step"] == 2 and run.path.exists():
            shutil.move(run.path, tmp_path / "elsewhere")

    with pytest.raises(CannotGoOn, match="renamed, moved or deleted") as caught:
        loop.train(setup, run, on_lines=lose)
    assert not isinstance(caught.value, ValueError)  # the command ends with 1
    assert not run.path.exists()
