"""Checkpoints from elsewhere: each format with its real key names, and files that mean harm."""

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.models as models
from cases import cases
from foreign_checkpoints import (
    here,
    lightly,
    lightly_own,
    moco,
    resnet18,
    simclr_head,
    solo_learn,
    sthalles,
    sup_contrast,
    torchvision_supervised,
)
from safetensors.torch import save_file

from contrastive_core import runs
from contrastive_core.base.errors import CannotImport, NotRecognized, Refused
from contrastive_core.base.storage import runs_home
from contrastive_core.cli.main import main
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.exchange import checkpoint_formats
from contrastive_core.exchange import checkpoint_import as checkpoint
from contrastive_core.exchange.checkpoint_formats import match_head, recognize
from contrastive_core.exchange.checkpoint_import import create_run, open_checkpoint
from contrastive_core.models.encoders import COLORS

PLAIN = "a state dict of torchvision or timm"
FORMATS = {  # how it is made; kind, method, whether the stem is small, head
    "moco_v1": (lambda: moco(1), "MoCo", "moco_v1", False, "linear"),
    "moco_v2": (lambda: moco(2), "MoCo", "moco_v2", False, "nonlinear"),
    "sup_contrast": (sup_contrast, "SupContrast", "sup_con", True, "nonlinear"),
    "sthalles": (sthalles, "SimCLR by sthalles", "simclr", False, "nonlinear"),
    "lightly": (lightly, "lightly", "moco_v2", False, "nonlinear"),
    "lightly_own": (lightly_own, "lightly", "simclr", True, "nonlinear"),
    "solo_learn": (solo_learn, "solo-learn", "simclr", True, "nonlinear"),
    "torchvision": (torchvision_supervised, PLAIN, "simclr", False, "none"),
}


@cases("name", FORMATS)
def test_every_format_gives_the_features_of_its_own_network(
    name: str, tmp_path: Path, photos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "run_sandboxed", here)
    make, kind, method, small, head = FORMATS[name]
    path = tmp_path / f"{name}.pth.tar"
    torch.save(make(), path)
    with open_checkpoint(path) as it:
        assert (it.recognized.kind, it.recognized.method, it.recognized.encoder) == (kind, method, "resnet18")
        assert it.recognized.head["head"] == head
        assert not it.missing
        assert not it.unlike
        json.dumps(it.report())
        run = create_run(it, photos)
    dataset = datasets.load(photos, "train")
    model = embed.load_model(run, dataset, "cpu")
    images = torch.from_numpy(np.array(dataset.images[:4])).float() / 255
    colors = COLORS[it.recognized.encoder_knobs["colors"]]
    mean, deviation = (torch.tensor(v).view(-1, 1, 1) for v in colors)
    with torch.no_grad():
        network = resnet18(small, padding=2 if name == "solo_learn" else 1)
        wanted = network((images - mean) / deviation)
        torch.testing.assert_close(model.features(images), wanted, rtol=1e-4, atol=1e-5)
        if name == "lightly_own":
            torch.testing.assert_close(model.head(wanted), simclr_head()(wanted), rtol=1e-4, atol=1e-5)
    assert run.status()["status"] == "done"
    assert run.manifest["imported"]["kind"] == kind


def test_safetensors_and_our_own_come_back(tmp_path: Path) -> None:
    save_file(resnet18(True).state_dict(), tmp_path / "plain.safetensors")
    with open_checkpoint(tmp_path / "plain.safetensors") as it:
        assert it.recognized.encoder_knobs["stem"] == "small"
    assert main(["train", "--run", "own", "--epochs", "1", "--dataset", "digits"]) == 0
    assert main(["import", str(runs.load("own").weights), "--dataset", "digits"]) == 0
    one, two = (embed.embed_run(runs.load(n), "test", "z") for n in ("own", "weights"))
    np.testing.assert_allclose(one.features, two.features, atol=1e-5)


def test_the_command_line(tmp_path: Path, photos: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my run.pth"
    torch.save(sthalles(), path)
    assert main(["import", str(path), "--dry-run"]) == 0
    assert "SimCLR by sthalles, resnet18" in capsys.readouterr().out
    assert not (runs_home() / "my-run").exists()
    assert main(["import", str(path), "--json", "--dataset", photos]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == "my-run"
    assert main(["import", str(tmp_path / "nothing.pth")]) == 2
    assert main(["import", str(tmp_path)]) == 2
    assert main(["import", str(path), "--run", "../x"]) == 2


def test_a_checkpoint_with_a_part_missing_is_not_made_a_run(tmp_path: Path) -> None:
    state = sthalles()
    del state["state_dict"]["backbone.layer3.0.bn1.weight"]
    torch.save(state, tmp_path / "part.pth")
    with open_checkpoint(tmp_path / "part.pth") as it:
        assert it.missing == ("encoder.body.layer3.0.bn1.weight",)
        with refused("1 tensors are missing"):
            create_run(it, "digits")


def refused(why: str) -> AbstractContextManager:
    return pytest.raises(CannotImport, match=why)


class Harm:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return os.system, (f"touch {self.target}",)


class Evaluated(Harm):
    def __reduce__(self) -> tuple:
        return eval, (f"open({str(self.target)!r}, 'w')",)


@pytest.mark.parametrize(
    ("kind", "new", "told"), [(Harm, True, "system"), (Harm, False, "system"), (Evaluated, True, "eval")]
)
def test_code_in_a_checkpoint_is_never_run(tmp_path: Path, kind: type, new: bool, told: str) -> None:
    target, path = tmp_path / "touched", tmp_path / "bad.pth"
    state = {"state_dict": {"conv1.weight": torch.zeros(64, 3, 3, 3)}, "hyper": kind(target)}
    torch.save(state, path, _use_new_zipfile_serialization=new)
    with refused(rf"an object of type (\w+\.)?{told}\. Opening it could run code"), open_checkpoint(path):
        pass
    assert not target.exists()


def test_files_that_are_no_checkpoints_say_so(tmp_path: Path) -> None:
    torch.save(sthalles(), tmp_path / "whole.pth")
    cases = {
        "empty.pth": b"",
        "text.pth": b"hello" * 100,
        "cut.pth": (tmp_path / "whole.pth").read_bytes()[:100_000],
        "head.safetensors": b"\xff\xff\xff\xff\xff\xff\xff\x7f{",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Exception):  # noqa: B017, PT011 - of any kind: it stays in the child
            checkpoint_formats.convert(tmp_path / name, tmp_path / "out")
    words = "cannot be opened: it is neither a safetensors file nor"
    with refused(words), open_checkpoint(tmp_path / "text.pth"):
        pass
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(Refused, match="no named tensors"):
        checkpoint_formats.convert(tmp_path / "list.pth", tmp_path / "out")
    with pytest.raises(NotRecognized, match="its tensor names: 'a'"):
        recognize({"a": (2,)})


def test_sizes_are_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pth"
    torch.save({"conv1.weight": torch.zeros(100, 100)}, path)
    monkeypatch.setattr(checkpoint_formats, "LIMIT", 1000)
    with pytest.raises(Refused, match="would unpack"):
        checkpoint_formats.convert(path, tmp_path / "out")
    monkeypatch.setattr(checkpoint, "LIMIT", 1000)
    with refused("at most 1,000"), open_checkpoint(path):
        pass


@cases(
    ("layers", "kind"),
    [
        ({"0.weight": (9, 5), "0.bias": (9,)}, "linear"),
        ({"0.weight": (9, 5)}, "linear"),
        ({"0.weight": (9, 5), "2.weight": (4, 9)}, "nonlinear"),
        (
            {"0.weight": (9, 5), "1.running_mean": (9,), "1.running_var": (9,), "3.weight": (4, 9), "3.bias": (4,)},
            "nonlinear",
        ),
        ({"0.weight": (9, 5), "2.weight": (4, 8)}, "none"),
        ({"0.weight": (9, 5), "1.weight": (4, 9)}, "none"),  # no activation between
        ({"0.weight": (9, 5), "2.weight": (9, 9), "4.weight": (4, 9)}, "none"),
        ({"0.weight": (9, 5), "1.running_mean": (9,), "3.weight": (4, 9)}, "none"),
        ({"0.weight": (9, 5, 1)}, "none"),
        ({"0.weight": ()}, "none"),
        ({"weight": ()}, "none"),
        ({"0.weight": (9, 5), "odd": (3,)}, "none"),
    ],
)
def test_heads_are_brought_to_ours_or_named(layers: dict[str, tuple[int, ...]], kind: str) -> None:
    head = match_head({f"projector.{k}": v for k, v in layers.items()}, ["projector."])
    assert head.settings["head"] == kind
    assert ("is ignored" in head.note) == (kind == "none")
    if kind == "none":
        assert sorted(layers)[0] in head.note


@cases(
    "sizes",
    [
        {"pos_embed": (197,)},
        {"pos_embed": ()},
        {"pos_embed": (1, 0, 384)},
        {"pos_embed": (1, 197, 384), "patch_embed.proj.weight": (384, 3, 0, 0)},
        {"pos_embed": (1, 10**9, 384)},
        {"patch_embed.proj.weight": (384, 3)},
        {"patch_embed.proj.weight": ()},
    ],
)
def test_a_damaged_vision_transformer_is_one_sentence(sizes: dict[str, tuple[int, ...]]) -> None:
    vit = {"patch_embed.proj.weight": (384, 3, 16, 16), "pos_embed": (1, 197, 384), "blocks.0.norm1.weight": (384,)}
    said = "a model that timm knows"
    try:
        checkpoint.match(Path("vit.pth"), Path(), recognize({**vit, **sizes}), {**vit, **sizes})
    except (CannotImport, NotRecognized) as error:
        said = str(error)
    assert "\n" not in said


def names_of(make: object) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return {k: tuple(v.shape) for k, v in make().state_dict().items()}  # type: ignore[operator]


def test_depths_are_told_apart_by_names() -> None:
    names = names_of(models.resnet50)
    assert recognize(names).encoder == "resnet50"
    assert recognize(names_of(models.resnet101)).encoder == "timm:resnet101"
    vit = {"patch_embed.proj.weight": (384, 3, 16, 16), "pos_embed": (1, 197, 384), "blocks.0.norm1.weight": (384,)}
    assert recognize(vit).encoder == "timm:vit_small_patch16_224"
    assert recognize({"stem.weight": (1,)}, encoder="timm:convnext_tiny").encoder[:4] == "timm"
    with pytest.raises(NotRecognized, match="no ResNet that is known"):
        recognize({k: v for k, v in names.items() if not k.startswith("layer4")})
