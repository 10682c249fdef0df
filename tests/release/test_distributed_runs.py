"""torchrun as a user calls it: two groups stand for two machines, one process dies, runs go on."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from clip_runs import captioned_folder
from streamlit.testing.v1 import AppTest
from worlds import started, torchrun

from benchmarks.browser import free_port
from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.base.errors import BadSetting, CannotGoOn, Elsewhere
from contrastive_core.base.storage import ROOT, runs_home
from contrastive_core.engine import queue, training
from contrastive_core.ops import collectives
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.loop import train
from contrastive_core.train.setup import prepare

GUIDE = ROOT / "docs" / "several_machines.md"
SMALL = ["--set", "encoder.width=0.25", "--set", "sample=100", "--set", "batch_size=256"]
pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")


def guide_command() -> list[str]:
    """The arguments of the guide's torchrun command for two machines, with another port."""
    text = GUIDE.read_text("utf-8").replace("\\\n", " ")
    line = next(x for x in text.splitlines() if x.startswith("torchrun --nnodes 2"))
    return shlex.split(re.sub(r"--master-port \d+", f"--master-port {free_port()}", line))[1:]


@pytest.fixture(scope="module")
def two_machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide's command in two groups that share no folder; where each has its runs and data."""
    home = tmp_path_factory.mktemp("machines")
    command, children = guide_command(), []
    at = command.index("--node-rank") + 1
    for rank in (0, 1):
        own = [*command[:at], str(rank), *command[at + 1 :], "--device", "cpu", *SMALL]
        place = {"CONTRASTIVE_LAB_RUNS": f"{home}/runs{rank}"}
        place["CONTRASTIVE_LAB_HOME"] = f"{home}/data{rank}"
        children.append(torchrun(*own, log=home / f"{rank}.log", **place))
    for rank, child in enumerate(children):
        assert child.wait() == 0, (home / f"{rank}.log").read_text()
    return home


def only_run(folder: Path) -> runs.Run:
    (path,) = folder.glob("[a-z]*")
    return runs.load(path.name)


def test_guide_command_trains_on_two_machines(two_machines: Path, monkeypatch) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(two_machines / "runs0"))
    run = only_run(two_machines / "runs0")
    assert run.status()["status"] == "done"
    assert not (two_machines / "runs1").exists()  # only the first process writes
    tensors, plain = checkpoints.load_state(run)
    assert plain["world"] == 2
    assert all(f"rank{rank}.random.torch" in tensors for rank in (0, 1))


def test_a_process_that_dies_ends_the_run_and_it_goes_on(two_machines: Path, tmp_path: Path, monkeypatch) -> None:
    """With the same number of processes it ends as if nothing had happened; with another one it
    says that it is not equal."""
    command = guide_command()
    argv = command[command.index("train") + 1 :]
    name, epochs = argv[argv.index("--name") + 1], int(argv[argv.index("--epochs") + 1])
    common = ["-m", "contrastive_core", "train"]
    settings = ["--device", "cpu", "--set", "save_seconds=0", *SMALL]
    log = tmp_path / "log"
    child = started(*common, "--processes", "2", *argv, *settings, log=log)
    wait_for(runs_home() / name / "state" / "000002.sha256", child, log)
    os.kill(second_process(child.pid), signal.SIGKILL)
    assert child.wait() != 0
    run = runs.load(name)
    assert run.status()["status"] == "failed"
    assert "another process of the run ended" in run.status()["reason"]
    assert checkpoints.load_state(run)[1]["place"]["epoch"] < epochs

    resume = ["--resume", "--name", name, "--device", "cpu"]
    again = started(*common, "--processes", "2", *resume, log=log)
    assert again.wait() == 0, log.read_text()
    assert run.status()["status"] == "done"
    assert not run.status()["note"]
    whole = checkpoints.load_weights(run)
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(two_machines / "runs0"))
    for key, tensor in checkpoints.load_weights(runs.load(name)).items():
        assert whole[key].equal(tensor), key
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(run.path.parent))

    more = ["--set", f"epochs={epochs + 1}"]
    alone = torchrun("--standalone", *common, *resume, *more, log=log)
    assert alone.wait() == 0, log.read_text()
    assert "had 2 processes and continues with 1" in run.status()["note"]
    assert "not bit-identical" in run.status()["note"]
    done = [x["epoch"] for x in run.metrics() if "images_per_s" not in x]
    assert done == list(range(1, epochs + 2))


def test_processes_that_drift_apart_end_the_run_before_it_is_saved(monkeypatch) -> None:
    made = prepare(TrainConfig(method="moco_v2", epochs=1, batch_size=720, sample=50, encoder_knobs={"width": 0.25}))
    run = runs.create("apart", made.config.to_dict(), made.dataset.fingerprint)
    monkeypatch.setattr(collectives, "mismatched_tensors", lambda state: ["queue.rows", "queue.pointer"])
    with pytest.raises(CannotGoOn, match=r"queue\.rows differs between processes"):
        train(made, run)
    assert run.status()["status"] == "failed"
    assert not run.weights.exists()


def test_a_batch_too_small_for_the_processes_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(collectives, "world", lambda: collectives.World(0, 4))
    with pytest.raises(BadSetting, match="between 8 and the 1437 training images of digits; got 7"):
        prepare(TrainConfig(batch_size=7))


def test_more_processes_than_gpus_are_refused_once(monkeypatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "99")
    with pytest.raises(ValueError, match=r"99 processes need 99 GPUs.*--device cpu"):
        collectives.init_process_group("cuda")
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(Elsewhere):
        collectives.init_process_group("cuda")


def test_train_offers_the_gpus_there_are(monkeypatch, made_catalog) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(training, "gpus", lambda: 4)
    monkeypatch.setattr(queue, "enqueue", lambda name, arguments, **_: asked.append(arguments))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app = app.switch_page("pages/train.py").run()
    (field,) = (n for n in app.number_input if n.label == "GPUs")
    assert (field.min, field.max) == (1, 4)
    field.set_value(2).run()
    (button,) = (b for b in app.button if b.label == "Start")
    button.click().run()
    (arguments,) = asked
    assert arguments[arguments.index("--processes") + 1] == "2"


def wait_for(path: Path, child: subprocess.Popen, log: Path) -> None:
    while child.poll() is None and not path.exists():  # however long it takes
        time.sleep(0.02)
    assert path.exists(), log.read_text()
    assert child.poll() is None, log.read_text()


def second_process(launcher: int) -> int:
    """The process id of rank 1 among the launcher's children."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            rank = b"\0RANK=1\0" in (folder / "environ").read_bytes()
            if int(parent) == launcher and rank:
                return int(folder.name)
    raise AssertionError("no process of rank 1")


def test_clip_on_two_processes_equals_one(tmp_path: Path) -> None:
    """A folder with captions, an image without one among them: weights, temperature, log and resume note."""
    folder = captioned_folder(tmp_path / "data", 6, 2)
    captions = folder / "captions.csv"
    lines = captions.read_text().splitlines(keepends=True)
    captions.write_text("".join(line for line in lines if "train/red/0.png" not in line))
    rest = ["--method", "clip", "--dataset", f"folder:{folder}", "--epochs", "2", "--device", "cpu"]
    settings = ("batch_size=5", "sample=12", "encoder.width=0.25", "optimizer=sgd", "lr=0.01", "threads=1", "amp=false")
    for setting in settings:
        rest += ["--set", setting]
    log = tmp_path / "log"
    child = started("-m", "contrastive_core", "train", "--processes", "2", "--name", "two", *rest, log=log)
    assert main(["train", "--name", "one", *rest]) == 0
    assert child.wait() == 0, log.read_text()
    assert log.read_text().count("Training images without a caption are left out: 1 of 18") == 1
    one, two = runs.load("one"), runs.load("two")
    assert (one.manifest["processes"], two.manifest["processes"]) == (1, 2)
    assert (one.manifest["n_train"], two.manifest["n_train"]) == (17, 17)
    weights = checkpoints.load_weights(two)
    for key, tensor in checkpoints.load_weights(one).items():
        torch.testing.assert_close(weights[key], tensor, rtol=1e-4, atol=1e-5, msg=key)
    steps = [[(x["loss"], x["temperature"]) for x in run.metrics() if "temperature" in x] for run in (one, two)]
    assert steps[1] == [pytest.approx(each, rel=1e-4) for each in steps[0]] != []
