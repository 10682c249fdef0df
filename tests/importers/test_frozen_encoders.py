"""Frozen encoders: named once, opened safely, run on any data set, beside every score."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from hostile.checkpoint_files import Harm
from safetensors.torch import load_file, save_file

from contrastive_core.cli.main import main
from contrastive_core.data import datasets
from contrastive_core.engine.answers import make
from contrastive_core.errors import BadSetting, CannotImport, NotDownloaded, Refused
from contrastive_core.evaluation import embed
from contrastive_core.importers import checkpoint, frozen_encoders
from contrastive_core.importers.frozen_encoders import check_frozen, embed_frozen, open_frozen
from contrastive_core.models.encoders import create_encoder
from contrastive_core.paths import SHIPPED
from contrastive_core.records import evaluation as evaluate
from contrastive_core.records import frozen, runs
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.frozen import FrozenEncoder, parse

timm = pytest.importorskip("timm")

COLOR, GRAY = "run:simclr-shapes", "run:simclr-digits"
RESNET = "timm:test_resnet"


def here(function: Callable[..., Any], *arguments: Any, limits: object) -> Any:
    """In place of a child, which imports torch anew: seconds each."""
    try:
        return function(*arguments)
    except Exception as error:  # as a child's errors come back
        raise Refused(str(error)) from None


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(checkpoint, "run_sandboxed", here)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    return tmp_path


@pytest.fixture
def digits() -> datasets.Dataset:
    return datasets.load("digits", "test")


def test_an_encoder_trained_on_one_set_is_run_on_another(digits: datasets.Dataset) -> None:
    """As by hand: gray images three times, at the size that it was trained on."""
    rows = embed_frozen(parse(COLOR), digits, "cpu")
    net = create_encoder("small", 3, 32, width=1.0)
    weights = load_file(SHIPPED / "simclr-shapes" / "weights.safetensors")
    net.load_state_dict({k.removeprefix("encoder."): v for k, v in weights.items() if k.startswith("encoder.")})
    images = torch.from_numpy(np.array(digits.images[:20])).float() / 255
    large = torch.nn.functional.interpolate(images.expand(-1, 3, -1, -1), (32, 32), mode="bilinear", antialias=True)
    with torch.no_grad():
        expected = net.eval()(large).numpy()
    np.testing.assert_allclose(rows.features[:20], expected, rtol=1e-4, atol=1e-5)
    assert rows.ids == tuple(digits.ids)
    assert rows.provenance["notes"] == ["gray images enter it three times", "images scaled to 32 pixels"]


def test_on_its_own_data_it_gives_what_the_run_gives(digits: datasets.Dataset) -> None:
    run = runs.load("simclr-digits")
    rows = embed_frozen(parse(GRAY), digits, "cpu")
    np.testing.assert_allclose(rows.features, embed.from_weights(run, digits, "cpu")["h"].features, atol=1e-5)
    assert rows.provenance["notes"] == []


def test_it_is_kept_by_data_and_weights(digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    first = embed_frozen(parse(GRAY), digits, "cpu")
    with monkeypatch.context() as patch:
        patch.setattr(frozen_encoders, "_encode", lambda *a: pytest.fail("computed again"))
        assert np.array_equal(embed_frozen(parse(GRAY), digits, "cpu").features, first.features)
    other = embed_frozen(parse("run:sup_con-digits"), digits, "cpu")
    assert not np.allclose(other.features, first.features)
    train = embed_frozen(parse(GRAY), datasets.load("digits", "train"), "cpu")
    assert len(train) > len(first)


def weights_of(folder: Path, run: str = "simclr-shapes", **changed: torch.Tensor) -> Path:
    tensors = load_file(SHIPPED / run / "weights.safetensors")
    save_file(tensors | changed, folder / "mine.safetensors")
    return folder / "mine.safetensors"


def test_a_file_is_read_and_a_changed_file_is_read_again(digits: datasets.Dataset, tmp_path: Path) -> None:
    encoder = parse(str(weights_of(tmp_path)))
    first, before = embed_frozen(encoder, digits, "cpu"), encoder.stamp()
    assert "the size of its own images is unknown: these enter at 8 pixels" in first.provenance["notes"]
    name = "encoder.body.0.weight"
    weights_of(tmp_path, **{name: 2 * load_file(encoder.name)[name] + 0.1})
    assert encoder.stamp() != before
    assert not np.allclose(embed_frozen(encoder, digits, "cpu").features, first.features)


def test_files_that_lie_are_refused_with_a_sentence(
    digits: datasets.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = weights_of(tmp_path)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(good.read_bytes()[:-2000])
    text = tmp_path / "text.pt"
    text.write_text("no weights")
    harm = tmp_path / "harm.pth"
    torch.save({"state_dict": {"conv1.weight": torch.zeros(64, 3, 7, 7)}, "x": Harm(tmp_path / "touched")}, harm)
    other = tmp_path / "other.pt"
    torch.save(timm.create_model("test_vit").state_dict(), other)
    nan = tmp_path / "nan.safetensors"
    tensors = load_file(good)
    save_file(tensors | {"encoder.body.0.weight": tensors["encoder.body.0.weight"] * float("nan")}, nan)
    for spec, sentence in {
        str(cut): "cannot be opened",
        str(text): "neither a safetensors file nor one that torch.save wrote",
        str(harm): "could run code when opened",
        f"{RESNET}={other}": "tensors are missing or have another shape",
        str(nan): "not finite",
        f"{RESNET}={tmp_path / 'gone.pt'}": "gone.pt",
        RESNET: "no weights of timm:test_resnet are on this computer; name a file of them",
        "timm:nonesuch": "timm has no model 'nonesuch'",
        "run:nonesuch": "no run 'nonesuch'",
    }.items():
        with pytest.raises((ValueError, OSError), match=sentence.replace("(", r"\(")) as caught:
            embed_frozen(parse(spec), digits, "cpu")
        assert str(caught.value).count("\n") == 0, spec
    assert not (tmp_path / "touched").exists()
    with pytest.raises(NotDownloaded):
        check_frozen(parse(RESNET))


def test_images_that_it_cannot_take_are_refused(digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    color = datasets.load("shapes", "test")
    with pytest.raises(BadSetting, match="takes images of 1 channels; these have 3"):
        embed_frozen(parse(GRAY), color, "cpu")

    class Picky(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            raise AssertionError("Input height (8) doesn't match model (224).")

    monkeypatch.setattr(frozen_encoders, "create_encoder", lambda *a, **k: Picky())
    monkeypatch.setattr(torch.nn.Module, "load_state_dict", lambda self, state: None)
    with pytest.raises(CannotImport, match=r"cannot take images of 8 × 8 pixels: .*height \(8\)"):
        open_frozen(parse(GRAY), digits)


def test_a_library_s_model_sees_its_own_size_and_scale(tmp_path: Path, digits: datasets.Dataset) -> None:
    torch.manual_seed(1)
    own = timm.create_model("test_resnet", num_classes=0).eval()
    path = tmp_path / "weights.pt"
    torch.save({"state_dict": {f"module.{k}": v for k, v in own.state_dict().items()}}, path)
    encoder = parse(f"{RESNET}={path}")
    opened = open_frozen(encoder, digits)
    images = torch.rand(2, 1, 8, 8)
    side = opened.network.pixels
    large = torch.nn.functional.interpolate(images.expand(-1, 3, -1, -1), (side, side), mode="bilinear", antialias=True)
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in opened.network.colors)
    with torch.no_grad():
        torch.testing.assert_close(opened.network(images), own((large - mean) / std), rtol=1e-4, atol=1e-5)
    assert encoder.title == f"{RESNET} ({tmp_path.name}/weights.pt)"


# --- the setting ---------------------------------------------------------------------------------


def test_encoders_are_named_once_and_left_out_again() -> None:
    assert frozen.read_list() == []
    for text in (COLOR, GRAY, COLOR):  # twice is once
        frozen.add(parse(text))
    assert [e.text for e in frozen.read_list()] == [GRAY, COLOR]
    frozen.remove(GRAY)
    assert frozen.read_list() == [FrozenEncoder(COLOR)]
    with pytest.raises(BadSetting, match="'timm:x' is not among the frozen encoders: run:simclr-shapes"):
        frozen.remove("timm:x")
    frozen._path().write_text('{"encoders": [{"name": 3}]}')
    assert frozen.read_list() == []


@pytest.mark.parametrize("text", ["", "timm:", "timm:resnet18=", "run:", "  "])
def test_a_text_that_names_none_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match="a frozen encoder is written timm:NAME"):
        parse(text)


def test_two_of_one_title_are_refused(tmp_path: Path) -> None:
    frozen.add(parse(str(tmp_path / "a" / "net.pt")))
    with pytest.raises(BadSetting, match=r"two frozen encoders are called net\.pt"):
        frozen.add(parse(str(tmp_path / "b" / "net.pt")))


# --- commands ------------------------------------------------------------------------------------


def test_evaluate_shows_it_beside_the_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrastive_core.metrics.names", lambda: ["knn"])  # a linear probe takes seconds
    assert main(["frozen", COLOR]) == 0
    assert "run:simclr-shapes: small" in capsys.readouterr().out
    assert main(["evaluate", "simclr-digits", "--metrics", "knn", "--json"]) == 0
    out = capsys.readouterr()
    scores = json.loads(out.out)["scores"]
    assert "gray images enter it three times" in out.err
    assert scores["random"]["knn"]["value"] < scores["frozen:run:simclr-shapes"]["knn"]["value"] < 1
    assert main(["evaluate", "simclr-digits", "--metrics", "knn", "--frozen", "none", "--json"]) == 0
    assert not any(k.startswith("frozen") for k in json.loads(capsys.readouterr().out)["scores"])
    values = frozen.request(parse(COLOR), runs.load("simclr-digits").config, _fingerprint())
    assert make(frozen.KIND, values).arrays["knn:per_sample"].shape == (360,)
    names = ["simclr-digits", "moco_v2-digits"]
    spaces = [EmbeddingRef(name, "test", "h").values for name in names]
    found = make(frozen.DIFFERENCES, {"spaces": spaces, "names": names, "frozen": values}).meta["differences"]
    assert [(d["a"], d["b"], d["metric"]) for d in found] == [(name, COLOR, "knn") for name in names]
    own = evaluate.read_evaluation(runs.load("simclr-digits"), "test").scores["h"]["knn"].value
    assert found[0]["value"] == pytest.approx(own - scores["frozen:run:simclr-shapes"]["knn"]["value"])
    assert found[0]["interval"][0] < found[0]["value"] < found[0]["interval"][1]


def _fingerprint() -> str:
    return str(runs.load("simclr-digits").manifest["data_fingerprint"])


def test_compare_tells_a_run_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "simclr-digits", "--metrics", "knn", "--frozen", "run:sup_con-shapes", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["runs"] == ["simclr-digits", "run:sup_con-shapes"]
    assert record["differences"][0]["value"] > 0


def test_one_that_is_gone_costs_a_note_and_one_of_this_command_ends_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    frozen.add(parse(str(tmp_path / "gone.pt")))
    assert main(["evaluate", "simclr-digits", "--metrics", "knn"]) == 0
    assert "there is no file" in capsys.readouterr().err
    assert main(["evaluate", "simclr-digits", "--metrics", "knn", "--frozen", str(tmp_path / "gone.pt")]) == 2
    assert capsys.readouterr().err.count("error:") == 1


def test_a_run_starts_from_a_file_of_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(weights_of(tmp_path, "simclr-digits"))
    few = ["--dataset", "digits", "--epochs", "1", "--set", "batch_size=359", "--set", "freeze=on"]
    assert main(["train", "--weights", file, "--run", "continued", *few]) == 0
    run = runs.load("continued")
    assert run.config["start"] == "mine-weights"
    mine, theirs = load_file(run.weights), load_file(file)
    assert torch.equal(mine["encoder.body.0.weight"], theirs["encoder.body.0.weight"])
    capsys.readouterr()
    assert main(["train", "--weights", file, "--start", "simclr-digits", *few]) == 2
    assert "--weights and --start both name" in capsys.readouterr().err
    assert main(["train", "--weights", file, "--encoder", "resnet18", *few]) == 2
    assert capsys.readouterr().err.count("error:") == 1
