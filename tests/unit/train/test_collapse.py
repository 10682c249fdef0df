"""A run that collapses says so early, with its reason; a healthy one never does."""

from typing import Any

import numpy as np
import pytest
import torch
from cases import cases

from contrastive_core import losses, pairs, runs
from contrastive_core.base.storage import SHIPPED
from contrastive_core.runs.train_config import TrainConfig, with_settings
from contrastive_core.train import loop, monitor
from contrastive_core.train.monitor import CollapseWatch
from contrastive_core.train.setup import prepare
from contrastive_core.train.state import TrainPosition

SHORT = with_settings(
    TrainConfig("simsiam", "digits", epochs=3, device="cpu", threads=1, batch_size=128, lr=0.01), ["encoder.width=0.25"]
)


def trained(*settings: str) -> Any:
    setup = prepare(with_settings(SHORT, list(settings)))
    run = runs.create("a", setup.config.to_dict(), setup.dataset.fingerprint)
    loop.train(setup, run)
    return run


def test_a_run_without_stop_gradient_says_so_and_how_to_mend_it() -> None:
    run = trained("method.stop_gradient=off")
    assert "collapsing to one point" in run.status()["note"]
    assert "--set method.stop_gradient=on" in run.status()["note"]
    assert run.status()["is_warned"] is True
    lines = run.metrics()
    assert lines[0]["z_std"] > 0.7
    assert lines[-2]["z_std"] < 0.2
    assert {"z_std", "z_std_least", "z_rank", "z_correlation"} <= set(lines[-1])


@pytest.mark.parametrize(("step", "reason"), [(40, "τ 0.2 → 2 at step 40"), (1, "the learning rate may be too high")])
def test_a_change_shortly_before_is_the_likely_reason(step: int, reason: str) -> None:
    setup = prepare(with_settings(SHORT, ["method=simclr"]))
    run = runs.create("a", setup.config.to_dict(), setup.dataset.fingerprint)
    log = loop.MetricsLog(setup, run, lambda lines: None)
    run.append_changes([{"id": "b", "name": "loss.temperature", "from": 0.2, "to": 2.0, "step": step}])
    for k in range(60):
        log.step(TrainPosition(step=k * (1 if step > 1 else 10)), {"loss": 1.0, "z_std": 0.8 if k < 45 else 0.1})
    note = run.status()["note"]
    assert note.startswith("The embedding is collapsing to one point. Likely reason: ")
    assert reason in note


@pytest.mark.parametrize("settings", [[], ["method=vicreg", "epochs=4", "sample=256"]])
def test_a_healthy_run_says_nothing(settings: list[str]) -> None:
    run = trained(*settings)
    assert not run.status().get("note")
    assert run.metrics()[-1]["z_std"] > 0.5
    assert ("z_scale" in run.metrics()[0]) == bool(settings)


@pytest.mark.parametrize(("method", "says"), [("simsiam", True), ("sup_con", False)])
def test_one_dimension_is_no_collapse_of_two_classes(method: str, says: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "dimension_scores", lambda z: {"z_std": 0.9, "z_rank": 1.1})
    note = trained(f"method={method}", "epochs=2").status().get("note") or ""
    assert ("one dimension" in note) is says


@pytest.mark.parametrize(
    ("settings", "what", "remedy"),
    [
        ("method=vicreg loss.variance=0", "one point", "variance is 0; use --set loss.variance=25"),
        ("method=barlow_twins loss.off_diagonal=0", "copies of each other", "use --set loss.off_diagonal=0.005"),
    ],
)
def test_a_loss_without_the_term_that_spreads_says_so(settings: str, what: str, remedy: str) -> None:
    run = trained(*settings.split(), "epochs=6", "sample=256")
    note = run.status()["note"]
    assert what in note
    assert remedy in note


def test_a_collapsed_run_is_not_healthy_again_while_it_has_one_dimension() -> None:
    def seen(*ranks: float) -> bool:
        watch = CollapseWatch()
        for rank in ranks:
            watch.see({"z_rank": rank})
        return watch.is_collapsed

    assert seen(1.1, 1.1, 1.28, 1.25)  # SimCLR on digits at a rate of 1
    assert not seen(1.28, 1.25, 1.24)  # it alone is no alarm
    assert not seen(1.1, 1.1, 1.5)
    assert not seen(1.1, 3.0, 1.1)


def watched(values: list[float]) -> list[bool]:
    watch, found = CollapseWatch(), []
    for value in values:
        watch.see({"z_std": value})
        found.append(watch.is_collapsed)
    return found


def test_a_fall_is_said_after_ten_lines_and_a_recovery_takes_it_back() -> None:
    assert watched([0.8] * 5 + [0.1] * 9) == [False] * 14
    assert watched([0.8] * 5 + [0.1] * 10 + [0.7])[-2:] == [True, False]
    assert not any(watched([0.8] * 5 + ([0.1] * 9 + [0.7]) * 5))


def test_a_start_near_one_point_is_no_collapse_until_it_has_lasted() -> None:
    assert not any(watched([0.03] * 150 + [0.05 + 0.005 * k for k in range(100)]))
    assert watched([0.03] * 200).index(True) == 199


def test_raw_rows_that_shrink_are_a_collapse_though_their_directions_differ() -> None:
    watch = CollapseWatch()
    for step in range(60):
        watch.see({"z_std": 0.5, "z_scale": 0.9**step})
    assert watch.is_one_point
    watch.see({"z_std": 0.5, "z_scale": 0.5})
    assert not watch.is_collapsed


def test_each_tower_is_seen_by_itself() -> None:
    """Two towers apart, each a point: together they would have a deviation."""
    a, b = torch.tensor([[1.0, 0.0]]).repeat(8, 1), torch.randn(8, 2)
    two, loss = pairs.from_towers(a, b), losses.create("info_nce")
    found = monitor.spread_of(two, loss, has_texts=True)
    assert found["z_std"] == pytest.approx(0, abs=1e-6)
    assert found["text_z_std"] > 0.5
    assert "text_z_std" not in monitor.spread_of(two, loss, has_texts=False)
    watch = CollapseWatch()
    for text in [0.9] * 5 + [0.05] * 10:
        watch.see({"z_std": 0.9, "text_z_std": text})
    assert watch.is_one_point


@cases(
    ("settings", "reason"),
    [
        (["method.predictor=off"], "method.predictor=on"),
        (["method=byol", "method.predictor=off"], "method.predictor=on"),
        (["method=vicreg", "loss.variance=0"], "loss.variance=25"),
        (["method=lejepa", "loss.trade_off=0"], "loss.trade_off=0.05"),
        (["method=barlow_twins", "loss.off_diagonal=0"], "loss.off_diagonal=0.005"),
        (["method=simclr", "loss=negative_cosine"], "choose byol, simsiam"),
        (["batch_size=4"], "a batch of 4 images"),
        (["lr=1"], "lr=0.1"),
    ],
)
def test_the_likely_reason_is_the_setting(settings: list[str], reason: str) -> None:
    setup = prepare(with_settings(SHORT, settings))
    assert reason in monitor.likely_reason(setup.config, setup.method, setup.loss)


def test_scores_of_dimensions() -> None:
    rng = np.random.default_rng(0)
    even = rng.standard_normal((2000, 8)).astype(np.float32)
    scores = monitor.dimension_scores(even)
    assert scores["z_std"] == pytest.approx(1, abs=0.01)
    assert scores["z_rank"] == pytest.approx(8, abs=0.1)
    assert scores["z_correlation"] < 0.03
    copies = monitor.dimension_scores(np.repeat(even[:, :1], 8, axis=1))
    assert copies["z_rank"] == pytest.approx(1)
    assert copies["z_correlation"] == pytest.approx(1)
    point = monitor.dimension_scores(np.ones((5, 8), np.float32))
    assert point == {"z_std": pytest.approx(0, abs=1e-6), "z_std_least": pytest.approx(0, abs=1e-6)}
    assert monitor.deviations(torch.ones(4, 3)) == (0, 0)


def test_no_shipped_run_would_have_been_called_collapsed() -> None:
    """Their snapshots are z of the fixed sample after epochs of training."""
    for folder in sorted(SHIPPED.iterdir()):
        run, watch = runs.load(folder.name), CollapseWatch()
        for epoch in run.snapshots()[::3]:
            z = np.asarray(run.snapshot(epoch)["z"], np.float32)
            watch.see(monitor.dimension_scores(z))
            assert not watch.is_collapsed, f"{folder.name} {epoch}"
