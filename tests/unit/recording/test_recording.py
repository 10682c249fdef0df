"""The callback of trainers, also tried in real loops in tests/release; the command line on a recording."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from contrastive_core import watch
from contrastive_core.cli import main
from contrastive_core.recording import WatchCallback
from contrastive_core.recording.callback import BASES


def test_it_needs_a_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BASES:  # neither library is imported, whatever else runs in this process
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match="Lightning or transformers"):
        WatchCallback("none")


def test_a_hugging_face_trainer_calls_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(TrainerCallback=object))

    class Model(nn.Module):
        def forward(self, image, text, ids):
            return {"image_embeds": image, "text_embeds": text}

    callback, model, state = WatchCallback("clip", "info_nce", every=1, towers=("a", "b")), Model(), SimpleNamespace()
    callback.on_train_begin(None, state, None, model=model)
    rows = [torch.randn(4, 3, requires_grad=True) for _ in range(2)]
    for state.global_step in (5, 6):
        model(image=rows[0], text=rows[1], ids=torch.arange(4))
        with torch.no_grad():
            model(image=rows[0], text=rows[1], ids=torch.arange(4))  # validation is no step
        callback.on_step_end(None, state, None)
    callback.on_train_end(None, state, None, model=model)
    run = callback.watch.run
    assert [line["step"] for line in run.metrics()] == [5, 6]
    assert {"recall_1_forth", "modality_gap"} <= run.metrics()[0].keys()
    assert not model._forward_hooks
    assert run.status()["note"] == ""


@pytest.fixture
def closed() -> str:
    x, y = torch.randn(30, 5, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
    with watch("watched", loss="sup_con", every=1, strict=True) as w:
        for step in range(2):
            w.step(x, labels=y, ids=torch.arange(30))
            w.probe(lambda x, step=step: x + step, [(x, y, torch.arange(30))])
    return "watched"


def test_it_is_verified_listed_scored_and_mapped(closed: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    main.main(["verify", "--files", closed, "--json"])
    assert json.loads(capsys.readouterr().out)["runs"] == {closed: []}
    main.main(["samples", closed, "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["run"], record["rows"], record["loss"]) == ("recording:watched@probe-2", 30, "sup_con")
    main.main(["list", "--json"])
    assert closed in capsys.readouterr().out
    assert main.main(["embed", closed]) != 0
    assert "watched is a recording" in capsys.readouterr().err
    assert main.main(["evaluate", closed]) == 0
    assert "Recording at step 2:\n" in capsys.readouterr().out
    assert main.main(["project", closed, "--out", "map.csv"]) == 0


def test_evaluate_says_what_the_page_of_a_recording_says(capsys) -> None:
    """Recall and gap of two towers, the fault of the loop and its rows."""
    with watch("towers", loss="info_nce", towers=("image", "text"), positives="keys", every=1, strict=True) as w:
        for _ in range(3):
            a, b = torch.randn(30, 5, requires_grad=True), torch.randn(31, 5)
            loss = torch.nn.functional.cross_entropy(
                torch.nn.functional.normalize(a) @ torch.nn.functional.normalize(b[:30]).T / 0.5, torch.arange(30)
            )
            ids = [*map(str, range(30))]
            w.step(a, b, ids=(ids, [*ids, "hard"]), caller_loss=loss, temperature=0.5)
            loss.backward()
            w._recorder.wait()
    assert main.main(["evaluate", "towers"]) == 0
    out = capsys.readouterr().out
    assert "Recording at step 3, towers image and text:" in out
    assert "  recall_1_forth " in out
    assert "  modality_gap " in out
    assert "The 1 rows without an anchor are not used as negatives." in out
    assert "Affected rows: hard" in out


def test_two_recordings_without_a_probe_set_are_compared_view_by_view(capsys) -> None:
    for name in ("a", "b"):
        with watch(name, loss="nt_xent", every=1, strict=True) as w:
            w.step(torch.randn(30, 2, 5), ids=torch.arange(30))
    assert main.main(["compare", "a", "b"]) == 0
    assert "how alike they are" in capsys.readouterr().out
