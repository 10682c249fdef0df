"""An exported encoder runs without this project and gives the same features."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import cases

from contrastive_core import runs
from contrastive_core.base.errors import Damaged
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.exchange import export_weights
from contrastive_core.models import encoders
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.settings import facts_of, resolve
from contrastive_core.train.setup import create_method


def test_colors_are_those_of_the_encoders() -> None:
    assert export_weights.COLORS == encoders.COLORS


def made(config: TrainConfig) -> Run:
    """An untrained run with weights; BatchNorm has seen something."""
    images = datasets.load(config.dataset, "train")
    config = resolve(config, facts_of(images)).config
    torch.manual_seed(0)
    method = create_method(config, images)
    with torch.no_grad():
        method.train().features(torch.rand(16, *images.images.shape[1:]))
    shape = list(images.images.shape[1:])
    run = runs.create("given-away", config.to_dict(), image_shape=shape)
    checkpoints.save_weights(run, method.state_dict())
    return run


@pytest.mark.parametrize(
    ("encoder", "knobs"),
    [
        ("small", {}),
        ("small", {"width": 0.5, "colors": "none"}),
        ("resnet18", {"stem": "small"}),
        ("resnet18", {"stem": "padded", "pixels": 16}),
        ("resnet18", {"stem": "imagenet", "pixels": 32}),
        ("torchvision:shufflenet_v2_x0_5", {"pixels": 32}),  # its first layer made anew for gray
        ("torchvision:squeezenet1_1", {"pixels": 32, "colors": [[0.4] * 3, [0.2] * 3], "gray_as_color": True}),
        ("timm:test_vit", {}),
    ],
)
def test_the_snippet_gives_the_same_features(
    tmp_path: Path, encoder: str, knobs: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    if encoder.startswith("timm:"):
        pytest.importorskip("timm")
    run = made(TrainConfig(dataset="digits", encoder=encoder, encoder_knobs=knobs))
    (tmp_path / f"{run.name}.safetensors").write_bytes(run.weights.read_bytes())
    dataset = datasets.load("digits", "test")
    images = torch.from_numpy(np.array(dataset.images[:5])).float() / 255
    images = images.expand(-1, 3, -1, -1) if knobs.get("gray_as_color") else images
    text = export_weights.snippet(run, export_weights.shapes_of(run))
    monkeypatch.chdir(tmp_path)
    there: dict = {}
    exec(text, there)
    found = there["encode"](images)
    wanted = embed.load_model(run, dataset, "cpu").features(images)
    torch.testing.assert_close(found, wanted.detach(), rtol=1e-4, atol=1e-5)


def test_it_needs_nothing_of_this_project(tmp_path: Path) -> None:
    run = made(TrainConfig(dataset="digits"))
    (tmp_path / f"{run.name}.safetensors").write_bytes(run.weights.read_bytes())
    text = (
        export_weights.snippet(run, export_weights.shapes_of(run)) + "\nprint(encode(torch.rand(2, 1, 8, 8)).shape)\n"
    )
    (tmp_path / "use.py").write_text(text)
    command = [sys.executable, "-I", "use.py"]  # -I: the folder of the project is not looked into
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.strip() == "torch.Size([2, 128])"


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    run = runs.create("bad", {})
    run.weights.write_bytes(b"\xff" * 100)
    with pytest.raises(Damaged, match=r"weights\.safetensors"):
        export_weights.shapes_of(run)


HOSTILE = 'x"\n)\nopen("ran", "w").write("ran")\nprint("""'


@cases(
    "config",
    [
        {"method": HOSTILE, "dataset": HOSTILE},
        {"encoder": f"resnet18(weights=None)\n{HOSTILE}"},
        {"encoder": "timm:" + HOSTILE},
        {"encoder": "timm:x', open('ran', 'w').write('ran'), '"},
        {"encoder": "torchvision:" + HOSTILE},
        {"encoder": "torchvision:vit_b_16", "encoder_knobs": {"pixels": 32, "colors": [[HOSTILE]]}},
        {"encoder": HOSTILE},
        {"encoder_knobs": {"colors": HOSTILE}},
        {"encoder_knobs": {"pixels": HOSTILE}},
        {"encoder_knobs": {"stem": HOSTILE}, "encoder": "resnet18"},
        {"encoder_knobs": [HOSTILE]},
        {"encoder_knobs": HOSTILE},
        {"encoder": ["small"], "dataset": {"a": HOSTILE}, "method": None},
    ],
)
def test_settings_of_a_foreign_run_are_no_code(tmp_path: Path, config: dict) -> None:
    """They stand in the lines as comments and literals, or the run is refused."""
    whole = {"method": "simclr", "dataset": "digits", "encoder": "small", **config}
    run = runs.create("foreign", whole, image_shape=[1, 8, 8])
    small = {f"encoder.body.{3 * i}.weight": (4, 4, 3, 3) for i in range(6)}
    shapes = {**small, "encoder.body.conv1.weight": (64, 3, 3, 3)}
    if "resnet" not in str(config.get("encoder")):
        shapes.pop("encoder.body.conv1.weight")
    try:
        text = export_weights.snippet(run, shapes)
    except Damaged as error:
        said = str(error)
    else:
        said = text
        ast.parse(text)
    if said.startswith("foreign has settings that match no encoder"):
        assert "\n" not in said
        return
    names = {n.func.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    of_torchvision = {"isinstance", "next"} if "torchvision:" in str(config) else set()
    assert names == {"load_file", "len", "net"} | of_torchvision
    assert not any(line.lstrip().startswith(("open(", "print(")) for line in text.splitlines())


def test_shapes_in_a_foreign_header_are_numbers(tmp_path: Path) -> None:
    run = runs.create("foreign", {})
    for shape in (["3, __import__('os')", 1, 3, 3], [[1]], "no", [None]):
        head = json.dumps({"encoder.body.0.weight": {"shape": shape}}).encode()
        run.weights.write_bytes(len(head).to_bytes(8, "little") + head)
        with pytest.raises(Damaged, match=r"weights\.safetensors"):
            export_weights.shapes_of(run)
