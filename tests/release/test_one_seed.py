"""One seed is one run: the same step losses at 1, 2 and 4 processes, through the command line."""

from functools import partial
from pathlib import Path

import pytest
import torch
import train_every_method
from train_every_method import RESUMED, VARIANTS
from worlds import spread

from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.runs import checkpoints

SIZES = (2, 4)
KEPT = 350  # images: three batches of 90, and one of 80
WITHIN = 1e-4


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every variant was trained by 1, 2 and 4 processes: by one for two epochs."""
    home = tmp_path_factory.mktemp("one_seed")
    places = {"CONTRASTIVE_LAB_RUNS": f"{home}/runs", "CONTRASTIVE_LAB_HOME": f"{home}/data"}
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in places.items():
            patch.setenv(name, value)
        ids = datasets.load("digits", "train").ids
        (home / "exclude.txt").write_text("\n".join(ids[KEPT:]))
        more = ["--json", "--exclude", str(home / "exclude.txt")]
        of_all = partial(train_every_method.train_all, more=["--epochs", "1", *more])
        for size in SIZES:
            spread(of_all, size, home / f"world{size}")
        for variant in VARIANTS:
            train_every_method.train("1", variant, "--epochs", "2", *more)
        for variant in RESUMED:
            train_every_method.train("2", variant, "--resume", "--set", "epochs=2", "--json")
    torch.set_num_threads(threads)
    return home


@pytest.fixture(autouse=True)
def of_all(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(home / "runs"))
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(home / "data"))


def lines(name: str, epoch: int, of_steps: bool) -> list[dict]:
    """A run's lines of one epoch (0 for the first): of its steps, or the one of the epoch."""
    at = epoch if of_steps else epoch + 1
    metrics = runs.load(name).metrics()
    return [x for x in metrics if ("images_per_s" in x) == of_steps and x["epoch"] == at]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_first_epoch_is_that_of_one_process(variant: str, size: int) -> None:
    one, many = (lines(f"{n}-{variant}", 0, True) for n in (1, size))
    assert len(one) == len(many) >= 3
    assert len({round(line["loss"], 3) for line in one}) > 1  # it is not a constant
    for a, b in zip(one, many, strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=WITHIN, abs=WITHIN)
        assert b["n_valid"] == a["n_valid"]
        for name in ("z_std", "z_std_least"):
            assert b[name] == pytest.approx(a[name], abs=1e-3), name
    (a,), (b,) = (lines(f"{n}-{variant}", 0, False) for n in (1, size))
    assert b["loss"] == pytest.approx(a["loss"], rel=WITHIN, abs=WITHIN)
    for name in ("pos", "neg", "alignment"):
        assert b[name] == pytest.approx(a[name], abs=1e-3), name


@pytest.mark.parametrize("variant", RESUMED)
def test_it_goes_on_as_one_process(variant: str) -> None:
    """Trained by two processes for an epoch, then by one: as by one in one go, to rounding."""
    whole, parts = (lines(f"{n}-{variant}", 1, True) for n in (1, 2))
    assert len(whole) == len(parts) == 4  # the plain batches
    for a, b in zip(whole, parts, strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=WITHIN, abs=WITHIN)
    note = runs.load(f"2-{variant}").status()["note"]
    assert "had 2 processes and continues with 1 (equal up to rounding)" in note


def test_every_process_draws_the_same_views() -> None:
    """The generator of views is saved once, and stands where one process's stands."""
    one, _ = checkpoints.load_state(runs.load("1-sup_con"))
    states = [checkpoints.load_state(runs.load(f"{n}-sup_con"))[0] for n in SIZES]
    assert not any(name.endswith(".random.views") for state in states for name in state)
    assert states[0]["random.views"].equal(states[1]["random.views"])
    assert not states[0]["random.views"].equal(one["random.views"])  # an epoch further
