"""Sweep files: every cell is an ordinary run, a sweep goes on where it was cut off, and a file's size is limited."""

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cases import case, cases

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.registry import knobs_of
from contrastive_core.base.storage import ROOT
from contrastive_core.data import augmentations
from contrastive_core.data.recipe import Recipe
from contrastive_core.engine import queue
from contrastive_core.runs.run import Run
from contrastive_core.sweeps import sweep_file, training

TEXT = """
name = "tau"
seeds = [0, 1]
form = "line"

[base]
method = "simclr"
epochs = 1
batch_size = 128

[[axes]]
key = "loss.temperature"
values = [0.1, 0.5]

[[axes]]
name = "head"
values = [
  { label = "none", set = { "method.head" = "none" } },
  { label = "deep / wide", set = { "method.head" = "nonlinear", lr = 0.01 } },
]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tau.toml"
    path.write_text(TEXT)
    return path


def test_cells_are_the_product_of_axes_and_seeds(file: Path) -> None:
    found = sweep_file.load(file)
    cells = found.cells()
    assert len(cells) == 8
    assert [c.seed for c in cells] == [0] * 4 + [1] * 4
    assert cells[1].run == "tau-0.1-deep_wide-s0"
    assert cells[1].at == {"loss.temperature": "0.1", "head": "deep / wide"}
    words = " ".join(cells[1].arguments())
    assert words.startswith("--seed 0 --method simclr --epochs 1 --set batch_size=128 ")
    assert words.endswith("--set loss.temperature=0.1 --set method.head=nonlinear --set lr=0.01")
    file.write_text(TEXT.replace('"tau"', '""').replace('label = "none",', 'label = "none", at = { depth = 0 },'))
    found = sweep_file.load(file)
    assert found.cells()[0].at == {"loss.temperature": "0.1", "head": "none", "depth": 0}
    assert (found.draw.x, found.draw.series) == ("head", "loss.temperature")
    assert found.cells()[4].run == "0.1-none-s1"  # without a name


def test_cells_that_differ_in_nothing_that_counts_are_trained_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "go_on", lambda: None)
    ignoring = 'label = "none", ignores = ["loss.temperature"],'
    file.write_text(TEXT.replace('label = "none",', ignoring))
    found = sweep_file.load(file)
    assert [c.run for c in found.cells()[:4]] == [
        "tau-none-s0",
        "tau-0.1-deep_wide-s0",
        "tau-none-s0",
        "tau-0.5-deep_wide-s0",
    ]
    assert "temperature" not in " ".join(found.cells()[0].arguments())
    assert len(found.trained()) == 6
    runs.create("tau-none-s0", {"method": "simclr"}).set_status("done")
    runs.create("tau-0.1-deep_wide-s0", {"method": "simclr"}).set_status("stopped")
    added = queue.enqueue_group(found.name, sweep_file.trainings(found)[:2])
    assert added == ["tau-0.1-deep_wide-s0", "tau-0.5-deep_wide-s0"]  # each waits once, what is done never
    assert [job.resumes for job in queue.queue()] == [True, False]
    queue.enqueue_group(found.name, sweep_file.trainings(found))
    assert len(queue.queue()) == 5
    shown = [r["loss.temperature"] for r in sweep_file.status(found) if r["status"] == "done"]
    assert shown == ["0.1", "0.5"]  # the figure has it in both places
    file.write_text(TEXT.replace('"deep / wide"', '"none!"').replace('"none"', '"none?"', 1))
    with pytest.raises(BadSetting, match="same run name"):
        sweep_file.load(file)


def test_it_goes_on_where_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done cells are left alone, stopped ones resumed, failed ones passed over; in order."""
    calls = []

    def fake(setup: Any, run: Run, resume: bool = False, on_lines: Any = None, stop_requested: Any = None) -> None:
        calls.append((run.name, resume))
        if len(calls) == 2:
            run.set_status("failed", reason="no memory")
            raise BadSetting("no memory")
        if len(calls) == 4:
            run.set_status("stopped")
            stop_requested.set()
            return
        lines = [{"epoch": 1, "step": 5, "loss": 1.0, "seconds": 3.0, "knn_train_sample": 0.5}]
        run.append_metrics(lines)
        on_lines(lines)
        run.set_status("done")

    monkeypatch.setattr(training.loop, "train", fake)
    found, told = sweep_file.load(file), []
    assert sweep_file.estimate(found) is None
    rows = training.run_sweep(found, told.append)
    assert [r["status"] for r in rows] == ["done", "failed", "done", "stopped"] + ["waiting"] * 4
    assert rows[0]["knn_train_sample"] == 0.5
    assert sweep_file.estimate(found) == pytest.approx((3.0 + sweep_file.STARTING) * 6)
    assert told[1] == "epoch 1, loss 1.0000, kNN on the training sample 50.0 %"
    assert "no memory; continuing with the next cell" in told[3]
    assert "stopped" in told[-1]
    rows = training.run_sweep(found, told.append)
    assert [r["status"] for r in rows] == ["done"] * 8
    assert calls[4] == ("tau-0.1-deep_wide-s0", True)
    assert calls[5] == (calls[3][0], True)
    assert len(calls) == 4 + 6
    training.run_sweep(found, told.append)
    assert len(calls) == 10
    assert "train --run tau-0.1-none-s0 --seed 0" in runs.load("tau-0.1-none-s0").manifest["command"]


def test_a_budget_ends_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("budget_hours = 1e-9\n" + TEXT)
    monkeypatch.setattr(training, "train_cell", lambda cell: pytest.fail("started a cell"))
    told: list[str] = []
    training.run_sweep(sweep_file.load(file), told.append)
    assert "used up" in told[0]


@cases(
    ("old", "new", "sentence"),
    [
        ("seeds", "seed", "unknown key 'seed'"),
        ("[base]", "[draw]\ny = 1\n[base]", r"\[draw\]: unknown key 'y'; known: columns, measures"),
        ("key =", "knob =", r"\[\[axes\]\]: unknown key 'knob'; known: key, name"),
        ('"line"', '"pie"', "form must be one of"),
        ("values = [0.1, 0.5]", "values = []", "list of values"),
        ("loss.temperature", "speed", "unknown setting 'speed'"),
        ("epochs = 1", 'epochs = "many"', "epochs"),
        ("label =", "title =", "label and set"),
        ("0.5", "0.1", "have the same values"),
        ("[base]", "[base", "cannot read"),
        ('method = "simclr"', 'dataset = "/home/me/pets"', "unknown data set"),
        ('method = "simclr"', 'dataset = "folder"', r"tau\.toml: "),
        ("[base]", '[draw]\nx = "width"\n[base]', r"names 'width', which is not one of head, loss\.temperature"),
    ],
)
def test_a_bad_file_says_so(file: Path, old: str, new: str, sentence: str) -> None:
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(BadSetting, match=sentence):
        sweep_file.load(file)


def test_the_sweeps_of_the_project_can_be_read() -> None:
    """Every cell's method, loss and knobs exist, not only its keys."""
    root = ROOT
    files = [*(root / "sweeps").glob("*.toml"), root / "checkpoints" / "shipped.toml"]
    assert len(files) == 7
    for path in files:
        for cell in sweep_file.load(path).cells():
            settings = {k.partition(".")[::2]: v for k, v in cell.settings.items()}
            for (group, name), value in settings.items():
                known = {"method": methods, "loss": losses}.get(group)
                if name and known is not None:
                    cls = cell.settings["method"]
                    of = cls if group == "method" else methods.get(cls).card.default_loss
                    known.knobs(of)[name].check(name, value)
                if name and group == "recipe":
                    knobs_of(Recipe)[name].check(name, value)
            recipe = {n: v for (g, n), v in settings.items() if g == "recipe"}
            augmentations.steps_of(Recipe(**recipe))


def test_changed_settings_make_another_sweep(file: Path) -> None:
    found = sweep_file.changed(sweep_file.load(file), ["epochs=2", "loss.temperature=0.3"])
    cell = found.cells()[1]
    assert found.name == "tau-epochs2-temperature0.3"
    assert cell.run == "tau-epochs2-temperature0.3-0.1-deep_wide-s0"
    assert "--epochs 2" in " ".join(cell.arguments())
    assert "loss.temperature=0.3" in " ".join(cell.arguments())
    with pytest.raises(BadSetting, match="whole number"):
        sweep_file.changed(found, ["epochs=many"])


def test_time_is_told_beforehand_from_a_few_steps(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[int] = []
    monkeypatch.setattr(training, "seconds_per_epoch", lambda config: timed.append(config.epochs) or 2.0)
    file.write_text(TEXT.replace("[0, 1]", "[0]").replace("epochs = 1", "epochs = 5"))
    found = sweep_file.load(file)
    assert sweep_file.estimate(found) is None
    for _ in range(2):  # what is known is not timed again
        training.measure(found)
        assert sweep_file.estimate(found) == pytest.approx(4 * (5 * 2.0 + sweep_file.STARTING))
    assert timed == [5]
    run = runs.create(found.cells()[0].run, {"method": "simclr"})
    run.append_metrics([{"epoch": 5, "step": 9, "loss": 1.0, "seconds": 500.0}])
    run.set_status("done")
    assert sweep_file.estimate(found) == pytest.approx(3 * (500.0 + sweep_file.STARTING))  # by what one took


def test_300_mutated_files_are_sweeps_or_say_why_not() -> None:
    refused = 0
    for number in range(300):
        rng, data = random.Random(number), bytearray(TEXT.encode())
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            kind = rng.randrange(3)
            if kind == 0:
                del data[at : at + rng.randrange(1, 20)]
            elif kind == 1:
                data[at] = rng.randrange(32, 127)
            else:
                data[at:at] = rng.choice([b"[", b"{ ", b"1e999", b'"', b"= [[]]", b"nan", b"-1"])
        with case(number):
            try:
                assert sweep_file.read(data.decode(), "x.toml").cells()
            except BadSetting:
                refused += 1
    assert 0 < refused < 300


LONG_KEYS = {
    "bare": "a" + ".a" * 50_000 + " = 1",
    "spaced": "a" + " . a" * 50_000 + " = 1",
    "quoted": '"x, y"' + '."x\\" y"' * 9_000 + " = 1",
    "literal": "'a b'" + ".'a b'" * 9_000 + " = 1",
    "table": "[a" + ".a" * 50_000 + "]",
    "inline": "x = { a" + ".a" * 50_000 + " = 1 }",
}


@cases("kind", LONG_KEYS)
def test_a_long_dotted_key_is_refused_before_it_is_parsed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(BadSetting, match="a key has at most 8 parts"):
        sweep_file.read(LONG_KEYS[kind], "a.toml")


def test_too_large_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("# " + "x" * sweep_file.LARGEST)
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("a.toml", "zero.toml"):
        with pytest.raises(BadSetting, match="cannot read"):
            sweep_file.load(tmp_path / name)
    with pytest.raises(BadSetting, match="at most"):
        sweep_file.read("# " + "x" * sweep_file.LARGEST, "a.toml")


def test_a_title_is_that_of_a_sound_file_else_its_name(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text('title = "Mine: \\u03c4"  # said\n' + TEXT)
    assert sweep_file.title_of(path) == "Mine: τ"
    path.write_text('title = " "\n' + TEXT)
    assert sweep_file.title_of(path) == "tau"  # its `name`
    for text in ("", 'title = "', "\0" * 9, LONG_KEYS["bare"]):
        path.write_text(text)
        assert sweep_file.title_of(path) == "many"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert sweep_file.title_of(path) == "many"
