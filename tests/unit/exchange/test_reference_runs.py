"""References: encoders from elsewhere become runs on a data set and stand beside its other runs."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_checkpoints import here
from safetensors.torch import load_file, save_file

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, CannotImport, NoSuchRun
from contrastive_core.base.storage import SHIPPED, data_home
from contrastive_core.cli.main import main
from contrastive_core.compare import embed, evaluation
from contrastive_core.data import datasets
from contrastive_core.exchange import checkpoint_import as checkpoint
from contrastive_core.exchange.checkpoint_import import create_run, open_checkpoint
from contrastive_core.models.encoders import create_encoder


@pytest.fixture(autouse=True)
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "run_sandboxed", here)


def imported(name: str, dataset: str = "digits", run: str = "other") -> runs.Run:
    with open_checkpoint(name) as it:
        return create_run(it, dataset, run)


def test_a_run_on_other_images_is_run_on_these() -> None:
    """As by hand: gray images three times, at the size that it was trained on."""
    digits = datasets.load("digits", "test")
    rows = embed.embed_run(imported("run:simclr-shapes"), "test", "h", "cpu")
    net = create_encoder("small", 3, 32, width=1.0)
    weights = load_file(SHIPPED / "simclr-shapes" / "weights.safetensors")
    net.load_state_dict({k.removeprefix("encoder."): v for k, v in weights.items() if k.startswith("encoder.")})
    images = torch.from_numpy(np.array(digits.images[:20])).float() / 255
    large = torch.nn.functional.interpolate(images.expand(-1, 3, -1, -1), (32, 32), mode="bilinear", antialias=True)
    with torch.no_grad():
        np.testing.assert_allclose(rows.features[:20], net.eval()(large).numpy(), rtol=1e-4, atol=1e-5)
    assert rows.ids == tuple(digits.ids)
    with pytest.raises(CannotImport, match="expects images with 1 channels, but shapes has 3"):
        imported("run:simclr-digits", "shapes", "gray")
    with pytest.raises(NoSuchRun):
        imported("run:nonesuch")


def test_the_user_names_them_once_and_leaves_them_out_again() -> None:
    assert evaluation.reference_names() == []
    for name in ("sup_con-digits", "simclr-digits", "sup_con-digits"):  # twice is once
        evaluation.add_reference(name)
    assert evaluation.reference_names() == ["simclr-digits", "sup_con-digits"]
    moco, shapes = runs.load("moco_v2-digits"), runs.load("simclr-shapes")
    assert [run.name for run in evaluation.references_of(moco)] == ["simclr-digits", "sup_con-digits"]
    assert [run.name for run in evaluation.references_of(runs.load("simclr-digits"))] == ["sup_con-digits"]
    assert evaluation.references_of(shapes) == []  # its images are others
    evaluation.set_references(["gone", "simclr-digits"])
    assert [run.name for run in evaluation.references_of(moco)] == ["simclr-digits"]
    evaluation.remove_reference("gone")
    with pytest.raises(BadSetting, match="'gone' is not among the references: simclr-digits"):
        evaluation.remove_reference("gone")
    with pytest.raises(NoSuchRun):
        evaluation.add_reference("nonesuch")
    (data_home() / "references.json").write_text('{"runs": 3}')
    assert evaluation.reference_names() == []


def test_evaluate_shows_them_beside_the_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrastive_core.metrics.names", lambda: ["knn"])  # a linear probe takes seconds
    asked = ["evaluate", "simclr-digits", "--metrics", "knn", "--json"]
    assert main(["import", "run:simclr-shapes", "--dataset", "digits", "--run", "other"]) == 0
    assert main(["references", "other"]) == 0
    assert capsys.readouterr().out.endswith("other\n")
    assert main(asked) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores["random"]["knn"]["value"] < scores["reference:other"]["knn"]["value"] < 1
    assert main([*asked, "--reference", "none"]) == 0
    assert not any(k.startswith("reference") for k in json.loads(capsys.readouterr().out)["scores"])
    assert main([*asked, "--reference", "simclr-shapes"]) == 2
    assert "import run:simclr-shapes --dataset digits" in capsys.readouterr().err
    assert main([*asked, "--reference", "other", "--split", "train"]) == 2
    assert main(["references", "--remove", "other"]) == 0
    assert capsys.readouterr().out == "no references\n"


def test_a_run_starts_from_a_file_of_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "mine.safetensors")
    save_file(load_file(SHIPPED / "simclr-digits" / "weights.safetensors"), file)
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
