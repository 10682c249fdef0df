"""Whether to train at all: one of four answers, and never "train" on noise."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from foreign_checkpoints import here
from PIL import Image
from safetensors.torch import save_file

from contrastive_core import runs
from contrastive_core.advice import candidates, plan, search
from contrastive_core.advice.evidence import HeldOutScores, Trial, Verdict, decide_start
from contrastive_core.advice.plan import Candidate, read_answer
from contrastive_core.advice.search import Search
from contrastive_core.cli.main import main
from contrastive_core.compare.verdicts import SettingScores
from contrastive_core.exchange import checkpoint_import as checkpoint
from contrastive_core.models.encoders import create_encoder
from contrastive_core.sweeps.sweep_file import Cell

N = 400  # held-out images of a played comparison


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "run_sandboxed", here)
    monkeypatch.setattr(candidates, "seconds_per_epoch", lambda config: 0.01)
    monkeypatch.setattr(search, "seconds_per_epoch", lambda config: 0.01)
    for module in (plan, candidates, search):
        monkeypatch.setattr(module, "OVERHEAD", 0.01)


# --- the rule ------------------------------------------------------------------------------------


def fixed(label: str, right: np.ndarray) -> SettingScores:
    return SettingScores(label, {0: float(right.mean())}, {0: right}, is_fixed=True)


def trained(label: str, rights: list[np.ndarray]) -> Trial:
    scores = {seed: HeldOutScores(f"run-{seed}", right=right) for seed, right in enumerate(rights)}
    return Trial(Candidate(label=label), scores)


def evidence(
    pixels: float, frozen: float | None, going_on: float | None, scratch: float, untrained: float = 0.3, seed: int = 0
) -> tuple[list[Trial], dict[str, SettingScores], list[SettingScores]]:
    """Options of these shares right, independent of each other, ten classes."""
    rng = np.random.default_rng(seed)

    def draw(share: float) -> np.ndarray:
        return (rng.random(N) < share).astype(float)

    trials = [trained("from scratch", [draw(scratch) for _ in range(3)])]
    if going_on is not None:
        trials.append(trained("going on", [draw(going_on) for _ in range(3)]))
    encoders = [] if frozen is None else [fixed("enc", draw(frozen))]
    before = trained("an untrained encoder", [draw(untrained) for _ in range(3)]).scores
    chance = fixed("the largest class", draw(0.1))
    references = {"pixels": fixed("raw pixels", draw(pixels)), "untrained": before, "chance": chance}
    return trials, references, encoders


CHOSEN = {"pixels": "raw pixels", "frozen": "enc", "continue": "going on", "scratch": "from scratch"}


def decided(*shares: Any, **more: Any) -> Verdict:
    return decide_start(*evidence(*shares, **more))


@cases(
    ("shares", "answer"),
    [
        ((0.9, 0.88, 0.9, 0.9), "pixels"),
        ((0.5, 0.9, 0.9, 0.7), "frozen"),
        ((0.5, 0.7, 0.9, 0.7), "continue"),
        ((0.5, 0.6, 0.62, 0.9), "scratch"),
        ((0.5, None, None, 0.9), "scratch"),
        ((0.5, 0.7, 0.9, 0.9), "continue"),  # as good as from scratch: the weights are there
        ((0.1, 0.1, 0.1, 0.1), "pixels"),
    ],
)
def test_each_answer_where_it_is_right(shares: tuple[Any, ...], answer: str) -> None:
    found = decided(*shares)
    assert found.chosen == CHOSEN[answer]
    assert "95 % CI" in found.sentence
    pairs = [frozenset((one.first, one.second)) for one in found.comparisons]
    assert len(pairs) == len({*pairs})  # each comparison once


def test_frozen_is_enough_where_training_beats_pixels_but_not_it() -> None:
    """Neither is shown to be above the other, and the encoder is not shown to be above raw pixels."""
    found = decided(0.60, 0.67, None, 0.75)
    signs = {(one.first, one.second): one.sign for one in found.comparisons}
    assert signs["from scratch", "raw pixels"] == 1
    assert signs["from scratch", "enc"] != 1
    assert found.chosen == "enc"


def test_training_has_to_beat_an_untrained_encoder_too() -> None:
    assert decided(0.5, None, None, 0.9, untrained=0.9).chosen == "raw pixels"


def test_with_fewer_than_three_seeds_it_is_not_decided() -> None:
    trials, references, encoders = evidence(0.3, 0.5, 0.9, 0.9)
    del trials[0].by_seed[2]
    trials[1].by_seed.clear()
    found = decide_start(trials, references, encoders)
    assert (found.chosen, found.is_shown) == ("", False)
    assert found.sentence.startswith("Not decided: these options do not have three seeds yet: from scratch; going on.")


def test_chance_alone_never_says_train() -> None:
    """150 sets of pure noise: all options guess among two classes, in which luck is frequent."""
    answers = [decided(0.5, 0.5, 0.5, 0.5, 0.5, seed).chosen for seed in range(150)]
    assert {"going on", "from scratch"}.isdisjoint(answers)
    assert answers.count("enc") <= 3


# --- images --------------------------------------------------------------------------------------


def noise(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(seed).integers(0, 256, (n, 1, 8, 8), np.uint8), np.arange(n) % 2


def folder_of(tmp_path: Path, images: np.ndarray, labels: np.ndarray) -> str:
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        place = tmp_path / ("test" if i < 8 else "train") / "ab"[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).save(place / f"{i}.png")
    return f"folder:{tmp_path}"


@pytest.fixture
def encoder_file(tmp_path: Path) -> Path:
    """An encoder in the names that a run's weights have."""
    path, weights = tmp_path / "other.safetensors", create_encoder("small", 1, 8, width=0.5).state_dict()
    save_file({f"encoder.{k}": v.contiguous() for k, v in weights.items()}, path)
    return path


def reference_on(data: str, file: Path) -> str:
    """The name of a run of the encoder on these images."""
    with checkpoint.open_checkpoint(file) as it:
        return checkpoint.create_run(it, data).name


def command(data: str, reference: str) -> list[str]:
    words = "--choose start --minutes 2 --name mine --device cpu"
    return ["advise", data, "--reference", reference, *words.split()]


def played(share: Callable[[Cell], float]) -> Callable[..., HeldOutScores]:
    """Trainings whose share right is given, each seed right on images of its own."""

    def score(self: Search, cell: Cell) -> HeldOutScores:
        drawn = np.random.default_rng(cell.seed).random(len(self.rows))
        right = (drawn < share(cell)).astype(np.float64)
        return HeldOutScores(cell.run, right=right, seconds=0.01)

    return score


def test_it_goes_on_from_the_encoder_where_that_is_better_and_resumes(
    encoder_file: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    """A stop in the middle costs nothing."""
    data, trained_cells = folder_of(tmp_path / "images", *noise(408, 2)), []
    play = played(lambda cell: 0.99 if "start" in cell.settings else 0.7)

    def train(self: Search, cell: Cell) -> HeldOutScores:
        if len(trained_cells) == 3:
            trained_cells.append(None)
            raise KeyboardInterrupt
        trained_cells.append(cell)
        return play(self, cell)

    monkeypatch.setattr(Search, "train_and_score", train)
    half = (np.random.default_rng(9).random(5000) < 0.75).astype(float)  # right images of the frozen encoder
    monkeypatch.setattr(search, "score_run", lambda run, rows, device: half[: len(rows)])
    asked = command(data, reference_on(data, encoder_file))
    assert main(asked) == 130
    first = read_answer("mine")
    assert first is not None
    assert first["verdict"].startswith("Not decided")
    capsys.readouterr()
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"].startswith("Continue training other. training continued from other")
    assert found["recommended"]["settings"]["start"] == "other"
    cells = [(c.seed, "start" in c.settings) for c in trained_cells if c]
    assert cells == [(s, kind) for s in (0, 1, 2) for kind in (False, True)]  # each once


# --- bad input -----------------------------------------------------------------------------------


def test_a_reference_whose_weights_are_damaged_costs_a_line(
    encoder_file: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(Search, "train_and_score", played(lambda cell: 0.5))
    data = folder_of(tmp_path / "images", *noise(60, 0))
    name = reference_on(data, encoder_file)
    runs.load(name).weights.write_bytes(b"nothing")
    assert main(command(data, name)) == 0
    assert f"failed: {name}:" in capsys.readouterr().out


def test_what_cannot_be_asked_says_so(tmp_path: Path, capsys) -> None:
    data = folder_of(tmp_path / "images", *noise(60, 0))
    for more, sentence in {
        ("--choose", "start,batch"): "start must be the only question",
        ("--choose", "start", "--minutes", "0.0001"): "too short for a comparison with 3 seeds",
        ("--choose", "start", "--reference", "simclr-shapes"): "simclr-shapes uses shapes, not folder:",
    }.items():
        assert main(["advise", data, "--device", "cpu", *more]) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("error:") == 1
    flat = tmp_path / "flat"
    flat.mkdir()
    for i, image in enumerate(noise(60, 1)[0]):
        Image.fromarray(image[0]).save(flat / f"{i}.png")
    assert main(["advise", f"folder:{flat}", "--choose", "start", "--device", "cpu"]) == 2
    assert "needs labels of at least two classes" in capsys.readouterr().err
