"""A clip run that is resumed: as in one go, and one sentence where its captions have changed."""

from pathlib import Path

import pytest
import torch
from clip_runs import captioned_folder, trained_clip

from contrastive_core.__main__ import main
from contrastive_core.runs import checkpoints
from contrastive_core.train import loop


def test_changed_captions_are_one_sentence_and_the_old_file_goes_on_bit_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = captioned_folder(tmp_path / "data", 4, 2)
    whole = trained_clip(folder, "whole")
    stops = iter([False] * 2 + [True] * 9)
    monkeypatch.setattr(loop, "should_stop", lambda *_: next(stops, False))
    part = trained_clip(folder, "part")
    assert part.status()["status"] == "stopped"
    monkeypatch.undo()
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    captions = folder / "captions.csv"
    before = captions.read_text()
    swapped = before.replace("red/0", "x").replace("blue/0", "red/0").replace("x", "blue/0")  # the same words
    for edited in (before.replace("square", "rectangle"), swapped):
        captions.write_text(edited)
        assert main(["train", "--run", "part", "--resume"]) != 0
        said = capsys.readouterr().err
        assert "its captions differ from those it was trained on" in said
        assert "size mismatch" not in said
    captions.write_text(before)
    assert main(["train", "--run", "part", "--resume"]) == 0
    one, two = checkpoints.load_weights(whole), checkpoints.load_weights(part)
    assert all(torch.equal(one[name], two[name]) for name in one)
