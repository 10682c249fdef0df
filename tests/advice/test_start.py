"""Whether to train at all: one of four answers, and never "train" on noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from contrastive_core import metrics
from contrastive_core.advice import adviser, planning, start_search
from contrastive_core.advice.decision import Evidence, decide
from contrastive_core.advice.held_out import HeldOutScores
from contrastive_core.advice.start_search import StartSearch
from contrastive_core.cli.main import main
from contrastive_core.errors import BadSetting
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.importers import checkpoint
from contrastive_core.models.encoders import create_encoder
from contrastive_core.records import advice as plans
from contrastive_core.records.advice import OPTIONS
from contrastive_core.records.advice_answer import read_answer
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sweep_grid import Cell

N = 400  # held-out images of a played comparison


def here(function: Callable[..., Any], *arguments: Any, limits: object) -> Any:
    """In place of a child, which imports torch anew: seconds each."""
    return function(*arguments)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "run_sandboxed", here)
    monkeypatch.setattr(planning, "seconds_per_epoch", lambda config: 0.01)
    monkeypatch.setattr(start_search.loop, "seconds_per_epoch", lambda config: 0.01)
    for module in (plans, planning, start_search):
        monkeypatch.setattr(module, "OVERHEAD", 0.01)


# --- the rule ------------------------------------------------------------------------------------


def fixed(label: str, right: np.ndarray) -> SettingScores:
    return SettingScores(label, {0: float(right.mean())}, {0: right}, is_fixed=True)


def trained(label: str, rights: list[np.ndarray]) -> SettingScores:
    by_seed = dict(enumerate(rights))
    return SettingScores(label, {s: float(r.mean()) for s, r in by_seed.items()}, by_seed)


def evidence(
    pixels: float, frozen: float | None, going_on: float | None, scratch: float, untrained: float = 0.3, seed: int = 0
) -> Evidence:
    """Options of these shares right, independent of each other, ten classes."""
    rng = np.random.default_rng(seed)

    def draw(share: float) -> np.ndarray:
        return (rng.random(N) < share).astype(float)

    options = {"scratch": trained("from scratch", [draw(scratch) for _ in range(3)])}
    if going_on is not None:
        options["continue"] = trained("going on", [draw(going_on) for _ in range(3)])
    encoders = [] if frozen is None else [fixed("enc", draw(frozen))]
    before = trained("an untrained encoder", [draw(untrained) for _ in range(3)])
    chance = fixed("the largest class", draw(0.1))
    return Evidence(fixed("raw pixels", draw(pixels)), chance, before, encoders, options, list(options))


@pytest.mark.parametrize(
    ("shares", "answer"),
    [
        ((0.9, 0.88, 0.9, 0.9), "pixels"),
        ((0.5, 0.9, 0.9, 0.7), "frozen"),
        ((0.5, 0.7, 0.9, 0.7), "continue"),
        ((0.5, 0.6, 0.62, 0.9), "scratch"),
        ((0.5, 0.3, 0.5, 0.9), "scratch"),
        ((0.5, None, None, 0.9), "scratch"),
        ((0.5, None, None, 0.51), "pixels"),
        ((0.5, 0.7, 0.9, 0.9), "continue"),  # as good as from scratch: the weights are there
        ((0.1, 0.1, 0.1, 0.1), "pixels"),
    ],
)
def test_each_answer_where_it_is_right(shares: tuple[Any, ...], answer: str) -> None:
    found = decide(evidence(*shares))
    assert found["answer"] == answer
    assert [row["option"] for row in found["rows"] if row["is_chosen"]] == [answer]
    assert "95 % CI" in found["sentence"]
    json.dumps(found)


def test_frozen_is_enough_where_training_beats_pixels_but_not_it() -> None:
    """Neither is shown to be above the other, and the encoder is not shown to be above raw pixels."""
    found = decide(evidence(0.60, 0.67, None, 0.75))
    signs = {(p["a"], p["b"]): p["shown"] for p in found["pairs"]}
    assert signs["from scratch", "raw pixels"] == "better"
    assert signs["from scratch", "enc"] != "better"
    assert found["answer"] == "frozen"


def test_training_has_to_beat_an_untrained_encoder_too() -> None:
    assert decide(evidence(0.5, None, None, 0.9, untrained=0.9))["answer"] == "pixels"


def test_with_fewer_than_three_seeds_it_is_not_decided() -> None:
    full = evidence(0.3, 0.5, 0.9, 0.9)
    scratch = full.trained["scratch"]
    two = trained("from scratch", [scratch.right[0], scratch.right[1]])
    cut = Evidence(full.pixels, full.chance, full.untrained, full.frozen, {"scratch": two}, ["scratch", "continue"])
    found = decide(cut)
    assert found["answer"] == ""
    assert found["sentence"].startswith("Not decided: three seeds are missing of: train from scratch; continue")
    basis = {row["label"]: row["basis"] for row in found["rows"]}
    assert basis["raw pixels"] == basis["the largest class"] == "images"  # made without chance
    assert "images, 2 seeds" in basis.values()
    assert all(row["interval"] for row in found["rows"])
    assert not any(row["is_chosen"] for row in found["rows"])


def test_chance_alone_never_says_train() -> None:
    """150 sets of pure noise: all options guess among two classes, in which luck is frequent."""
    answers = [decide(evidence(0.5, 0.5, 0.5, 0.5, 0.5, seed))["answer"] for seed in range(150)]
    assert {"continue", "scratch"}.isdisjoint(answers)
    assert answers.count("frozen") <= 3


# --- images --------------------------------------------------------------------------------------


def strokes(n: int, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 1, 16, 16) of two classes that pixels hardly tell: short strokes, upright or lying, on large spots."""
    rng = np.random.default_rng(seed)
    labels, images = np.arange(n) % 2, rng.uniform(0, 150, (n, 4, 4)).repeat(4, 1).repeat(4, 2)
    for image, label in zip(images, labels, strict=True):
        for row, column in rng.integers(0, 17 - length, (8, 2)):
            shape = (1, length) if label else (length, 1)
            image[row : row + shape[0], column : column + shape[1]] += 60
    return images.clip(0, 255).astype(np.uint8)[:, None], labels


def noise(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(seed).integers(0, 256, (n, 1, 8, 8), np.uint8), np.arange(n) % 2


def folder_of(tmp_path: Path, images: np.ndarray, labels: np.ndarray) -> str:
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        place = tmp_path / ("test" if i < 8 else "train") / "ab"[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).save(place / f"{i}.png")
    return f"folder:{tmp_path}"


@pytest.fixture(scope="module")
def encoder_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder that is trained here to tell strokes of another length, in the names that a run's weights have."""
    torch.manual_seed(0)
    images, labels = strokes(256, 6, 1)
    net, last = create_encoder("small", 1, 16, width=0.5), nn.Linear(64, 2)
    optimizer = torch.optim.Adam([*net.parameters(), *last.parameters()], 3e-3)
    x, y = torch.from_numpy(images).float() / 255, torch.from_numpy(labels)
    for step in range(30):
        part = torch.arange(64) + 64 * (step % 4)
        loss = nn.functional.cross_entropy(last(net(x[part])), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    path = tmp_path_factory.mktemp("encoder") / "strokes.safetensors"
    save_file({f"encoder.{k}": v.contiguous() for k, v in net.state_dict().items()}, path)
    return path


def played(share: Callable[[Cell], float]) -> Callable[..., HeldOutScores]:
    """Trainings whose share right is given, each seed right on images of its own."""

    def score(self: StartSearch, cell: Cell) -> HeldOutScores:
        drawn = np.random.default_rng(cell.seed).random(len(self.rows))
        right = (drawn < share(cell)).astype(np.float64)
        return HeldOutScores(cell.run, {"knn": float(right.mean())}, 0.01, right)

    return score


@pytest.mark.parametrize(("from_scratch", "going_on", "answer"), [(0.6, 0.8, "frozen"), (0.6, 1.0, "frozen")])
def test_an_encoder_trained_on_other_strokes_is_enough(
    from_scratch: float, going_on: float, answer: str, encoder_file: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    data = folder_of(tmp_path / "images", *strokes(208, 5, 2))
    share = lambda cell: going_on if "start" in cell.settings else from_scratch  # noqa: E731
    monkeypatch.setattr(StartSearch, "_train_and_score", played(share))
    asked = ["advise", data, "--choose", "start", "--frozen", str(encoder_file), "--device", "cpu", "--json"]
    assert main([*asked, "--minutes", "2", "--name", "mine"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["label"]: row["mean"] for row in found["decision"]["rows"]}
    assert rows["strokes.safetensors"] > 0.85
    assert rows["strokes.safetensors"] > rows["raw pixels"] + 0.2
    assert found["decision"]["answer"] == answer
    assert found["verdict"].startswith("The frozen encoder strokes.safetensors is enough")
    assert found["recommended"] is None
    assert found["done"]


def test_it_goes_on_from_the_encoder_where_that_is_better_and_resumes(
    encoder_file: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    """The encoder reads these strokes half as well. A stop in the middle costs nothing."""
    data, trained_cells = folder_of(tmp_path / "images", *strokes(408, 5, 2)), []
    play = played(lambda cell: 0.99 if "start" in cell.settings else 0.7)

    def train(self: StartSearch, cell: Cell) -> HeldOutScores:
        if len(trained_cells) == 3:
            trained_cells.append(None)
            raise KeyboardInterrupt
        trained_cells.append(cell)
        return play(self, cell)

    monkeypatch.setattr(StartSearch, "_train_and_score", train)
    monkeypatch.setattr(start_search.References, "frozen", _half_as_good)
    asked = ["advise", data, "--choose", "start", "--frozen", str(encoder_file), "--device", "cpu", "--json"]
    asked += ["--minutes", "2", "--name", "mine"]
    assert main(asked) == 130
    first = read_answer("mine")
    assert first is not None
    assert first["decision"]["answer"] == ""
    capsys.readouterr()
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decision"]["answer"] == "continue"
    assert found["verdict"].startswith("Continue training strokes.safetensors: +")
    assert found["recommended"]["settings"]["start"].startswith("mine-start-")
    cells = [(c.seed, "start" in c.settings) for c in trained_cells if c]
    assert cells == [(s, kind) for s in (0, 1, 2) for kind in (False, True)]  # each once


def _half_as_good(self: Any, encoders: Any, on_progress: Any) -> Any:
    drawn = np.random.default_rng(9).random(len(self.rows))
    return {encoders[0]: fixed(encoders[0].title, (drawn < 0.75).astype(float))}


def test_it_never_says_train_on_a_set_of_noise(encoder_file: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """Twelve sets; raw pixels and both encoders are real, each training is a few real steps on the noise itself."""
    monkeypatch.setattr(StartSearch, "_train_and_score", few_steps)
    for number in range(12):
        data = folder_of(tmp_path / f"noise{number}", *noise(128, number))
        asked = ["advise", data, "--choose", "start", "--frozen", str(encoder_file), "--device", "cpu", "--json"]
        assert main([*asked, "--minutes", "2", "--name", f"noise{number}"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["decision"]["answer"] == "pixels", (number, found["verdict"])
        assert "these images may not show their classes" in found["verdict"]


def few_steps(self: StartSearch, cell: Cell) -> HeldOutScores:
    """Three steps of SimCLR's loss between an image and itself with other noise, then kNN, as a run is scored."""
    torch.manual_seed(100 * cell.seed + ("start" in cell.settings))
    net = create_encoder("small", 1, 8, width=0.25)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.from_numpy(np.array(self.dataset.images)).float() / 255
    for part in torch.randperm(len(x))[:96].split(32):
        z = [nn.functional.normalize(net(x[part] + 0.1 * torch.randn_like(x[part]))) for _ in range(2)]
        nn.functional.cross_entropy(z[0] @ z[1].T / 0.2, torch.arange(len(part))).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        rows = EmbeddingSet(net.eval()(x).numpy(), np.asarray(self.dataset.labels, np.int64))
    rest = rows.take(np.setdiff1d(np.arange(len(rows)), self.rows))
    right = metrics.create("knn")(rest, rows.take(self.rows)).per_sample
    return HeldOutScores(cell.run, {"knn": float(right.mean())}, 0.01, right)


# --- bad input -----------------------------------------------------------------------------------


def test_an_encoder_that_cannot_be_read_costs_a_line(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(StartSearch, "_train_and_score", played(lambda cell: 0.5))
    data, bad = folder_of(tmp_path / "images", *noise(60, 0)), tmp_path / "bad.pt"
    bad.write_bytes(b"PK\x03\x04 nothing")
    asked = ["advise", data, "--choose", "start", "--frozen", str(bad), "--minutes", "2", "--device", "cpu"]
    assert main([*asked, "--name", "mine"]) == 0
    assert "failed: bad.pt:" in capsys.readouterr().out


def test_what_cannot_be_asked_says_so(tmp_path: Path, capsys) -> None:
    data = folder_of(tmp_path / "images", *noise(60, 0))
    for more, sentence in {
        ("--choose", "start,head"): "start is asked alone",
        ("--choose", "start", "--minutes", "0.0001"): "too short to train with 3 seeds",
        ("--choose", "start", "--frozen", "timm:"): "a frozen encoder is written",
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
    assert "Without labels only the temperature can be chosen" in capsys.readouterr().err


def test_every_option_is_named() -> None:
    assert [*OPTIONS] == ["pixels", "frozen", "continue", "scratch"]
    with pytest.raises(BadSetting):
        planning.check_questions(["start", "batch"])
    assert adviser.StartSearch is StartSearch
