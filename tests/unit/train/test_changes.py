"""Changes of a running training: taken once, at one step, and again at that step when the run is resumed."""

import dataclasses
import functools
import json
import math
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from worlds import spread

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import BadSetting, CannotGoOn
from contrastive_core.engine import run_folders
from contrastive_core.lab import lab_view
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest
from contrastive_core.ops.collectives import World
from contrastive_core.runs import changes as live_changes
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import changes, loop
from contrastive_core.train.changes import branch, live_settings_of
from contrastive_core.train.setup import prepare

CONFIG = TrainConfig(
    "simclr",
    epochs=3,
    lr=0.003,
    device="cpu",
    threads=1,
    batch_size=256,
    sample=100,
    save_seconds=0.0,
    encoder_knobs={"width": 0.25},
)


@pytest.fixture(autouse=True)
def look_at_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.0)


def created(name: str, config: TrainConfig = CONFIG, **about) -> Run:
    return runs.create(name, prepare(config).config.to_dict(), **about)


@functools.cache
def live() -> dict[str, live_changes.Live]:
    return live_settings_of(prepare(CONFIG).config.to_dict())


def ask(run: Run, **values: float) -> None:
    live_changes.request(run, live(), values)


def trained(run: Run, at: dict[int, dict] | None = None, stop: int = 0, **keywords) -> str:
    """Train; after the steps `at` some settings are asked for, and after `stop` the training is asked to stop."""

    def on_lines(lines: list[dict]) -> None:
        for line in lines:
            if "images_per_s" in line:
                if values := (at or {}).get(line["step"]):
                    ask(run, **values)
                if line["step"] == stop:
                    signal.raise_signal(signal.SIGTERM)

    return loop.train(prepare(keywords.pop("config", CONFIG)), run, on_lines=on_lines, **keywords)


def weights(run: Run) -> list[bytes]:
    tensors, _ = checkpoints.load_state(run)
    return [tensors[name].numpy().tobytes() for name in sorted(tensors)]


def told(run: Run) -> list[tuple]:
    return [(c["step"], c["name"], c["from"], c["to"]) for c in run.changes()]


AT = {3: {"loss.temperature": 0.1, "lr": 0.001}, 7: {"loss.temperature": 0.3}}
TOLD = [(4, "loss.temperature", 0.2, 0.1), (4, "lr", 0.003, 0.001), (8, "loss.temperature", 0.1, 0.3)]


def test_a_change_is_taken_at_the_next_step_and_a_resume_ends_bit_equal() -> None:
    """Stopped between two changes, killed after the second one was logged, at a state before it."""
    whole, same = created("whole"), created("same")
    assert trained(whole, AT) == "done"
    assert told(whole) == TOLD
    assert whole.config["loss_knobs"]["temperature"] == 0.2
    lr = {line["step"]: line["lr"] for line in whole.metrics() if "images_per_s" in line}
    assert trained(same, AT, stop=6) == "stopped"
    assert trained(same, AT, resume=True, stop=9) == "stopped"
    newest = checkpoints.state_manifests(same)[-1]
    newest.unlink()  # as a kill between the change at step 8 and the next save leaves it
    assert trained(same, resume=True) == "done"
    assert told(same) == TOLD
    assert weights(same) == weights(whole)
    assert lr == {line["step"]: line["lr"] for line in same.metrics() if "images_per_s" in line}
    plain = created("plain")
    trained(plain)
    assert weights(plain) != weights(whole)
    assert {line["step"]: line["lr"] for line in plain.metrics() if "images_per_s" in line}[4] == pytest.approx(
        3 * lr[4]
    )


def test_a_schedule_gives_another_run_the_same_changes(tmp_path: Path) -> None:
    first = created("first")
    trained(first, AT)
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(live_changes.schedule_of(first.changes())))
    again = created("again", schedule=live_changes.read_schedule(path, live()))
    trained(again, stop=5)
    trained(again, resume=True)
    assert told(again) == told(first)
    assert weights(again) == weights(first)
    line = '[{"step": 9, "name": "lr", "to": 1}]'
    wrong = [('{"a": 1}', "is an object, not a list"), (line.replace("9", "0"), "too small")]
    wrong += [(line.replace("lr", "tau"), "'tau' cannot be changed"), (line.replace('"to"', '"at"'), "has no 'to'")]
    for text, why in [*wrong, (line.replace(": 1", ": NaN"), "not a number"), (line[:-1], "is damaged")]:
        path.write_text(text)
        with pytest.raises(ValueError, match=why):
            live_changes.read_schedule(path, live())


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"loss.temperature": 0}, "temperature must be at least 0.001; got 0"),
        ({"loss.temperature": float("nan")}, "must be at least 0.001; got nan"),
        ({"lr": float("inf")}, "lr must be at most 100; got inf"),
        ({"lr": 0.1, "loss.margin": 1}, r"'loss.margin' cannot be changed .*settings can: lr, loss.temperature"),
        ({"loss.temperature": "warm"}, "must be a number"),
    ],
)
def test_what_a_setting_cannot_be_is_refused(values: dict, why: str) -> None:
    run = created("mine")
    run.set_status("queued")
    with pytest.raises(BadSetting, match=why):
        ask(run, **values)
    assert run.requests() == []


def test_two_tabs_that_change_one_setting_lose_no_change_and_the_later_value_stays() -> None:
    run = created("mine")
    run.set_status("queued")
    values = [[0.05 + (2 * k + tab) / 1000 for k in range(40)] for tab in (0, 1)]
    with ThreadPoolExecutor(2) as tabs:  # each writes its lines at once
        list(tabs.map(lambda own: [ask(run, **{"loss.temperature": value}) for value in own], values))
    asked = [one["to"] for one in run.requests()]
    assert sorted(asked) == sorted([*values[0], *values[1]])
    trained(run)
    taken = run.changes()
    assert [change["to"] for change in taken] == asked
    assert [change["from"] for change in taken] == [0.2, *asked[:-1]]
    assert {change["step"] for change in taken} == {1}


@pytest.mark.parametrize("kind", ["lines", "huge", "link", "pipe"])
def test_of_a_hostile_file_of_requests_valid_lines_are_taken_once(kind: str, tmp_path: Path) -> None:
    run = created("mine")
    path = run.path / "requests.jsonl"
    lines = [b"no json", b'{"id": 1, "name": "lr", "to": 1}', b'{"id": "a", "name": "lr", "to": 1e999}', b"[" * 9999]
    taken = b'{"id": "x", "name": "lr", "to": 0.01, "from": 7, "step": 99}'
    lines += [taken, taken, b'{"id": "b", "name": "loss.normalize", "to": 0}', b'{"id": "c", "name": "lr", "to": 1e9}']
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.write_bytes(b"\n".join(lines) + b"\n" + b"\0" * (5 << 20) * (kind == "huge"))
    assert trained(run) == "done"
    assert told(run) == ([(1, "lr", 0.003, 0.01)] if kind == "lines" else [])
    if kind == "link":
        run.set_status("queued")
        with pytest.raises(ValueError, match="is a link; nothing is written through it"):
            ask(run, lr=0.1)


def test_knobs_that_a_method_learns_or_that_are_no_numbers_stay() -> None:
    def names(config: TrainConfig) -> list[str]:
        config = dataclasses.replace(config, lr=0.1)
        knobs = losses.knobs(config.loss or ""), methods.knobs(config.method)
        return list(live_changes.live_settings(config.to_dict(), *knobs))

    clip = TrainConfig("clip", loss="siglip")
    assert names(clip) == ["lr"]
    learned = dataclasses.replace(clip, method_knobs={"learn_temperature": False})
    assert names(learned) == ["lr", "loss.temperature", "loss.bias"]
    assert names(TrainConfig(loss="vicreg"))[1:] == [f"loss.{n}" for n in losses.knobs("vicreg")]
    margin = TrainConfig(loss="sup_con", loss_knobs={"negative_margin": 0.1})
    assert names(margin) == ["lr", "loss.temperature", "loss.negative_margin"]


def test_changes_that_made_a_training_diverge_are_withdrawn_on_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = loop.learning_rate

    def rate(step: int, total: int, peak: float, *rest) -> float:
        return math.nan if peak == 100 else usual(step, total, peak, *rest)

    monkeypatch.setattr(loop, "learning_rate", rate)
    run = created("far")
    with pytest.raises(CannotGoOn, match="last good state is kept"):
        trained(run, {7: {"lr": 100.0}})
    assert told(run)[0] == (8, "lr", 0.003, 100.0)
    assert trained(run, resume=True) == "done"
    assert told(run) == []
    assert run.status()["note"] == "changes after step 6 were withdrawn"
    plain = created("plain")
    trained(plain)
    assert weights(run) == weights(plain)


def test_a_setting_given_to_a_resume_is_a_change_too() -> None:
    run = created("mine")
    trained(run, AT, stop=9)
    checkpoints.state_manifests(run)[-1].unlink()  # the state after step 6 is left
    other = dataclasses.replace(CONFIG, loss="nt_xent", loss_knobs={"temperature": 0.4})
    assert trained(run, resume=True, config=other, stop=11) == "stopped"
    expected = [*TOLD[:2], (7, "loss.temperature", 0.1, 0.4)]
    assert told(run) == expected
    assert trained(run, resume=True) == "done"
    assert told(run) == expected


def test_a_branch_goes_on_from_the_last_saved_epoch_with_another_value() -> None:
    """Without another value it ends bit-equal; with one, its log has the changes of both."""
    whole, origin = created("whole"), created("origin")
    trained(whole, AT)
    trained(origin, AT, stop=6)
    same, other = branch(origin, {}, {"loss.temperature": "0.4"})
    assert trained(origin, AT, resume=True) == "done"
    assert (same.name, other.name) == ("origin-branch", "origin-temperature0.4")
    assert other.status()["reason"] == "branched off origin after epoch 1; resume it to continue"
    assert len(other.snapshots()) == 1
    assert trained(same, AT, resume=True) == trained(other, resume=True) == "done"
    assert weights(same) == weights(whole)
    assert told(same) == TOLD
    assert told(other) == [*TOLD[:2], (7, "loss.temperature", 0.1, 0.4)]
    assert [line["step"] for line in other.metrics()] == [line["step"] for line in whole.metrics()]
    assert run_folders.damage(other) == []
    with pytest.raises(BadSetting, match="must be at least"):
        branch(origin, {"lr": -1})
    assert list(live_changes.saved_epochs(whole)) == [1, 2]  # not its end
    for epoch in (1, 2):
        (earlier,) = branch(whole, {}, epoch=epoch)
        assert earlier.manifest["branch"] == {"run": "whole", "step": 6 * epoch, "epoch": epoch}
        assert trained(earlier, AT, resume=True) == "done"
        assert told(earlier) == TOLD
        assert weights(earlier) == weights(whole)
    with pytest.raises(ValueError, match="no complete state after epoch 3; choose one of these: 1, 2"):
        branch(whole, {}, epoch=3)
    live_changes.saved_epochs(whole)[1].with_suffix(".safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="no complete state after epoch 1"):
        branch(whole, {}, epoch=1)
    for path in checkpoints.state_manifests(origin)[:-1]:
        path.unlink()  # the state of its end is left
    with pytest.raises(ValueError, match="has no saved state before its end"):
        branch(origin, {"lr": 0.1})


def test_the_loss_lab_has_a_runs_own_batch_after_any_kept_epoch_with_the_knobs_of_then() -> None:
    run = created("mine")
    trained(run, AT)
    assert list(lab_view.epochs_of(run)) == ["epoch:1", "epoch:2"]
    taus = [lab_view.loss_knobs(run, epoch)["temperature"] for epoch in (1, 2, 3, None)]
    assert taus == [0.1, 0.3, 0.3, 0.3]
    batches = {s: load_batch(run, BatchRequest(s, 8, 2, 0)) for s in ("random", "epoch:1", "epoch:2", "z")}
    assert len({batch.rows.tobytes() for batch in batches.values()}) == 4
    assert len({(tuple(batch.ids), batch.thumbs.tobytes()) for batch in batches.values()}) == 1
    (branched,) = branch(run, {}, epoch=2)
    checkpoints.save_weights(branched, checkpoints.weights_after(run, "2"))
    np.testing.assert_array_equal(load_batch(branched, BatchRequest("z", 8, 2, 0)).rows, batches["epoch:2"].rows)
    for source in ("epoch:3", "epoch:x", "epoch:../1"):
        with pytest.raises(ValueError, match=r"mine has no complete state after epoch .* choose one of these: 1, 2"):
            load_batch(run, BatchRequest(source, 8, 2, 0))


def test_weights_that_are_all_zero_are_no_change() -> None:
    config = dataclasses.replace(CONFIG, loss="vicreg", method="vicreg")
    run = created("zero", config)
    live = live_settings_of(prepare(config).config.to_dict())

    def on_lines(lines: list[dict]) -> None:
        if any(line.get("step") == 2 for line in lines):
            live_changes.request(run, live, {f"loss.{n}": 0 for n in ("invariance", "variance", "covariance")})

    loop.train(prepare(config), run, on_lines=on_lines)
    assert [c["name"] for c in run.changes()] == ["loss.invariance", "loss.variance"]


def of_process(world: World) -> list:
    """A training whose second process learns of a change from the first."""
    changes.LOOK_SECONDS = loop.FLUSH_SECONDS = 0.0
    setup = prepare(CONFIG, world)
    run = runs.load("shared")

    def on_lines(lines: list[dict]) -> None:
        if world.is_rank0 and any(line.get("step") == 3 and "images_per_s" in line for line in lines):
            live_changes.request(run, live_settings_of(setup.config.to_dict()), {"loss.temperature": 0.1})

    loop.train(setup, run, on_lines=on_lines)
    return [setup.loss.temperature, [p.detach().numpy().tobytes() for p in setup.method.parameters()]]


def test_two_processes_take_a_change_at_the_same_step(tmp_path: Path) -> None:
    run = created("shared")
    one, two = spread(of_process, 2, tmp_path)
    assert one == two
    assert one[0] == 0.1
    assert told(run) == TOLD[:1]
