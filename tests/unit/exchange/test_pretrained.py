"""Models of torchvision and timm opened without training: their own size, scale and weights."""

import json
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cases import cases
from foreign_checkpoints import here
from safetensors.torch import save_file
from torchvision import models

from contrastive_core import runs
from contrastive_core.base.errors import CannotImport, NotDownloaded, NotRecognized
from contrastive_core.base.storage import runs_home
from contrastive_core.cli.main import main
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.exchange import checkpoint_import
from contrastive_core.exchange import checkpoint_import as checkpoint
from contrastive_core.exchange.checkpoint_import import Wanted, create_run, open_model
from contrastive_core.models import libraries
from contrastive_core.models.libraries import Pretrained

timm = pytest.importorskip("timm")

VIT, RESNET = "timm:test_vit", "timm:test_resnet"  # timm's smallest, made for tests
SHUFFLE = "torchvision:shufflenet_v2_x0_5"
MNASNET = "torchvision:mnasnet0_5"  # loads by itself only what says its version


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty places of what was fetched before, and no child."""
    monkeypatch.setattr(checkpoint, "run_sandboxed", here)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    return tmp_path


def network(name: str, **settings: Any) -> torch.nn.Module:
    """The library's own, with its classifier and random weights."""
    library, _, model = name.partition(":")
    torch.manual_seed(1)
    make: Any = timm.create_model if library == "timm" else models.get_model
    return make(model, **settings).eval()


def file_of(name: str, folder: Path) -> Path:
    path = folder / "weights.pt"
    torch.save({"state_dict": {f"module.{k}": v for k, v in network(name).state_dict().items()}}, path)
    return path


@cases(("name", "classifier"), [(VIT, "head"), (RESNET, "fc"), (SHUFFLE, "fc"), (MNASNET, "classifier")])
def test_its_features_are_those_of_its_own_network(name: str, classifier: str, tmp_path: Path, photos: str) -> None:
    entry = libraries.pretrained(name)[0]
    with open_model(Wanted(name, str(file_of(name, tmp_path)))) as it:
        assert not it.missing
        assert not it.unlike
        run = create_run(it, photos)
    dataset = datasets.load(photos, "train")
    images = torch.from_numpy(np.array(dataset.images)).float() / 255
    net = network(name)
    setattr(net, classifier, torch.nn.Identity())
    side = (entry.pixels, entry.pixels)
    large = F.interpolate(images, side, mode="bilinear", antialias=True)
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (entry.mean, entry.std))
    with torch.no_grad():
        wanted = net((large - mean) / std)
        found = embed.load_model(run, dataset, "cpu").features(images)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert run.manifest["imported"]["of_library"]
    assert not run.manifest["imported"]["random"]


def test_a_vision_transformer_at_another_size_has_its_positions_resized(tmp_path: Path) -> None:
    from timm.layers import resample_abs_pos_embed

    file = file_of(VIT, tmp_path)
    own = network(VIT).state_dict()["pos_embed"]
    for pixels, side in ((160, 10), (96, 6)):
        with open_model(Wanted(VIT, str(file), pixels)) as it:
            state = torch.load(file, weights_only=True)["state_dict"]
            assert it.recognized.encoder_knobs["pixels"] == pixels
            assert not it.missing
            assert not it.unlike
            from safetensors.torch import load_file

            found = load_file(it.weights)["pos_embed"]
        assert found.shape[1] == side * side + 1
        resized = own if side == 10 else resample_abs_pos_embed(own, [side, side])
        torch.testing.assert_close(found, resized)
        torch.testing.assert_close(state["module.pos_embed"], own)


def test_torchvision_resizes_positions_too() -> None:
    sizes = {"patch_size": 4, "num_layers": 1, "num_heads": 1, "hidden_dim": 8, "mlp_dim": 8}
    state = models.VisionTransformer(image_size=16, **sizes).state_dict()
    other = models.VisionTransformer(image_size=24, **sizes)
    found = libraries.resized("torchvision:vit_b_16", other, dict(state))
    other.load_state_dict(found)
    assert found["encoder.pos_embedding"].shape == (1, 37, 8)
    first = state["encoder.pos_embedding"][:, :1]  # of the class token, which has no place
    assert torch.equal(found["encoder.pos_embedding"][:, :1], first)


def test_random_weights_are_said_to_be_random(photos: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", RESNET, "--random", "--dataset", photos]) == 0
    assert "it has learned nothing" in capsys.readouterr().out
    assert main(["import", RESNET, "--random", "--dataset", "digits"]) == 0  # gray images too
    one, two = runs.load("test_resnet-random"), runs.load("test_resnet-random-2")
    assert one.manifest["imported"]["random"]
    assert "untrained" in one.manifest["imported"]["kind"]
    assert one.weights.read_bytes() == two.weights.read_bytes()
    images = datasets.load("digits", "test")
    gray = torch.from_numpy(np.array(images.images[:2])).float() / 255
    model = embed.load_model(two, images, "cpu")
    torch.testing.assert_close(model.features(gray), model.features(gray.expand(-1, 3, -1, -1)))


def test_nothing_is_fetched_by_itself(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Host, size and license are said instead; a dry run fetches nothing even where it may."""
    monkeypatch.setattr(checkpoint_import, "fetch", lambda entry: pytest.fail("it was fetched"))
    said = r"huggingface\.co \(about \d+ MB; license: apache"
    with pytest.raises(NotDownloaded, match=said), open_model(Wanted(VIT)):
        pass
    assert main(["import", SHUFFLE, "--dry-run", "--fetch", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["host"] == "download.pytorch.org"
    assert about["size"] > 5_000_000
    assert about["file"] is None


def test_what_was_fetched_before_is_used(caches: Path) -> None:
    entry = libraries.pretrained(SHUFFLE)[0]
    (caches / "hub" / "checkpoints").mkdir(parents=True)
    torch.save(network(SHUFFLE).state_dict(), caches / "hub" / "checkpoints" / entry.files[0])
    with open_model(Wanted(SHUFFLE)) as it:
        assert it.source.name == entry.files[0]
        assert not it.missing
        assert "license: not stated by torchvision" in it.recognized.notes
    [entry] = libraries.pretrained(VIT)
    folder = caches / "hf" / f"models--{entry.repo.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc")
    (folder / "snapshots" / "abc").mkdir(parents=True)
    save_file(network(VIT).state_dict(), folder / "snapshots" / "abc" / "model.safetensors")
    with open_model(Wanted(VIT)) as it:
        assert it.source.name == "model.safetensors"
        assert not it.missing
        assert f"license: {entry.license}" in it.recognized.notes


def test_it_is_fetched_where_that_is_asked_for(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = caches / "served" / "net.pth"
    served.parent.mkdir()
    torch.save(network(SHUFFLE).state_dict(), served)
    url = f"file://localhost{served}"
    entry = Pretrained(SHUFFLE, 64, (0.5,) * 3, (0.5,) * 3, url, license="mit", size=9)
    monkeypatch.setattr(checkpoint_import, "pretrained", lambda name: [entry])
    said: list[str] = []
    with open_model(Wanted(SHUFFLE, may_fetch=True), lambda stage, _: said.append(stage)) as it:
        assert it.source == caches / "hub" / "checkpoints" / "net.pth"
        assert not it.missing
    assert "license: mit" in said[0]
    assert checkpoint_import.find(entry) == it.source
    gone = Pretrained(SHUFFLE, 64, (), (), (caches / "gone.pth").as_uri())
    with pytest.raises(CannotImport, match="cannot be fetched"):
        checkpoint_import.fetch(gone)


def test_decoding_is_told_of_and_what_is_stopped_leaves_no_run(
    photos: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[tuple[str, float | None]] = []
    with open_model(Wanted(RESNET, str(file_of(RESNET, tmp_path)))) as it:

        def stop(*_: object) -> None:
            raise SystemExit("error: it was asked to stop")

        monkeypatch.setattr("contrastive_core.runs.checkpoints.save_weights", stop)
        with pytest.raises(SystemExit):
            create_run(it, photos, on_progress=lambda *told: stages.append(told))
        monkeypatch.undo()
        assert not [run for run in runs.list_runs() if not run.shipped]
        assert not list(runs_home().glob("test_resnet*"))
    decoding = [(stage, share) for stage, share in stages if stage.startswith("decoding 8 images")]
    assert decoding[-1][1] == 1.0
    assert "on disk" in decoding[0][0]


def test_a_network_that_gives_many_vectors_of_an_image_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As timm's gemma4_vit and deepseek_vit_412m_enc do."""
    made = timm.create_model("test_vit", num_classes=0, global_pool="")
    monkeypatch.setattr(libraries, "_timm_network", lambda *a: (made, made.num_features))
    wanted = Wanted(VIT, random=True)
    with pytest.raises(CannotImport, match="it does not output a single vector"), open_model(wanted):
        pass


def test_every_classifier_of_torchvision_is_known() -> None:
    for name in models.list_models(module=models):
        assert libraries.pretrained(f"torchvision:{name}")[0].pixels >= 224, name


@cases(
    ("arguments", "sentence"),
    [
        (["torchvision:nonesuch"], "torchvision has no model 'nonesuch'"),
        (["torchvision:raft_small"], "raft_small is not an image classifier"),
        (["timm:nonesuch"], "timm has no model 'nonesuch'"),
        (["torchvision:resnet18.V9"], "has no weights 'V9'; it has: IMAGENET1K_V1"),
        ([VIT, "--random", "--pixels", "-1"], "--pixels must be 0 or more"),
        ([VIT, "--random", "--fetch"], "--random uses no weights"),
        (["gone.pt", "--run", "simclr-digits"], "there is a run 'simclr-digits' already"),
        (["file.pt", "--random"], "are for torchvision:NAME and timm:NAME"),
        ([VIT, "--random", "--pixels", "3"], "images of 3 pixels; its own size is 160"),
    ],
)
def test_what_cannot_be_opened_says_so(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    file = file_of(RESNET, tmp_path)
    with open_model(Wanted(VIT, str(file))) as it:
        assert it.missing
        with pytest.raises(CannotImport, match="tensors are missing"):
            create_run(it, "digits")
    with pytest.raises(FileNotFoundError), open_model(Wanted(VIT, "gone.pt")):
        pass
    with pytest.raises(NotRecognized), open_model(Wanted("timm:nonesuch", str(file))):
        pass
