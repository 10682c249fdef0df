"""Both towers of a clip run: one embedding set of images and captions, the same wherever it is read."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.compare.embed import data_of, embed_run, load_model
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.space import Space, layers_of
from contrastive_core.spaces.towers import PAIR, TEXT, TOWER, towers_of


def test_both_towers_are_rebuilt_from_the_weights(clip_run: Run) -> None:
    method = load_model(clip_run)
    weights = checkpoints.load_weights(clip_run)
    assert set(method.state_dict()) == set(weights)
    for name, value in method.state_dict().items():
        assert torch.equal(value, weights[name]), name
    z = method.encode_texts(["a red square", "red square a", "words of nobody"])
    assert z.shape == (3, 64)
    assert not torch.equal(z[0], z[1])  # the order of words counts
    assert method.temperature().item() != pytest.approx(0.07, abs=1e-6)


def test_the_rows_are_images_then_captions(clip_run: Run) -> None:
    assert layers_of(clip_run) == ("h", "z", "towers")
    rows, z = embed_run(clip_run, "test", "towers"), embed_run(clip_run, "test", "z")
    towers = towers_of(rows)
    assert towers is not None
    assert towers.names == ("image", "caption")
    assert (len(towers.a), len(towers.b)) == (12, 18)  # every second image has two captions
    np.testing.assert_array_equal(rows.features[:12], z.features)
    assert rows.ids[:12] == z.ids
    second = rows.ids.index("red/1.png#2")
    assert (rows.columns[TEXT][second], rows.columns[TOWER][second]) == ("number 1 is red", "caption")
    assert rows.class_name(int(rows.labels[second])) == "red"
    assert rows.columns[PAIR][second] == str(rows.ids.index("red/1.png"))
    assert set(rows.columns[TEXT][:12]) == {""}
    method = load_model(clip_run)
    expected = method.encode_texts([str(rows.columns[TEXT][second])]).detach().numpy()[0]
    np.testing.assert_allclose(rows.features[second], expected, atol=1e-5)
    pictures = Space.of_run(clip_run, "test", "towers").images()
    np.testing.assert_array_equal(pictures[second], data_of(clip_run, "test").images[rows.ids.index("red/1.png")])


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_the_command_writes_them_and_lists_pairs(clip_run: Run, ending: str, tmp_path: Path, capsys) -> None:
    out = tmp_path / f"both.{ending}"
    assert main(["embed", clip_run.name, "--layer", "towers", "--out", str(out)]) == 0
    rows, again = embed_run(clip_run, "test", "towers"), file_formats.read(out)
    np.testing.assert_array_equal(again.features, rows.features)
    assert again.ids == rows.ids
    assert {name: list(again.columns[name]) for name in (TOWER, PAIR, TEXT)} == {
        name: list(rows.columns[name]) for name in (TOWER, PAIR, TEXT)
    }
    capsys.readouterr()
    of_file, of_run = ([*json.loads(printed(capsys, str(name)))["mismatched"]] for name in (out, clip_run.name))
    assert of_file == of_run != []
    assert len(json.loads(printed(capsys, clip_run.name, "--split", "train", "--top", "99"))["mismatched"]) == 36


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["pairs", *words, "--json"]) == 0
    return capsys.readouterr().out


def test_a_run_without_captions_has_no_towers(capsys) -> None:
    run = runs.load("simclr-digits")
    assert layers_of(run) == ("h", "z")
    assert main(["embed", run.name, "--layer", "towers"]) == 0  # all that it has
    assert main(["embed", run.name, "--layer", "towers", "--out", "x.npz"]) == 2
    assert "simclr-digits has no text tower" in capsys.readouterr().err
    assert main(["pairs", run.name]) == 2
    assert "holds one tower" in capsys.readouterr().err


def test_edited_captions_are_embedded_anew(clip_run: Run, tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "data"
    shutil.copytree(clip_run.config["dataset"].removeprefix("folder:"), folder)
    manifest = {**clip_run.manifest, "config": {**clip_run.config, "dataset": f"folder:{folder}"}}
    run = dataclasses.replace(clip_run, manifest=manifest)
    before = embed_run(run, "test", "towers")
    space = Space.of_run(run, "test", "towers")
    path = folder / "captions.csv"
    path.write_text(path.read_text().replace("test/red/0.png,a red square", "test/red/0.png,a blue square"))
    assert Space.of_run(run, "test", "towers") != space
    after = embed_run(run, "test", "towers")
    changed = np.flatnonzero(before.columns[TEXT] != after.columns[TEXT])
    assert [after.columns[TEXT][i] for i in changed] == ["a blue square"]
    assert not np.allclose(before.features[changed], after.features[changed])
    assert Space.of_run(run, "test", "z") == Space.of_run(clip_run, "test", "z")


def test_captions_that_are_gone_are_said_and_cost_no_other_layer(clip_run: Run, capsys, monkeypatch) -> None:
    monkeypatch.setattr("contrastive_core.data.captions.CAPTIONS_FILE", "gone.csv")
    assert main(["embed", clip_run.name, "--layer", "towers", "--out", "x.npz"]) == 2
    assert "there is no" in (said := capsys.readouterr().err)
    assert "gone.csv" in said
    assert len(embed_run(clip_run, "test", "z")) == 12
