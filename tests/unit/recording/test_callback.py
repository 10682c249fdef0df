"""The callback of trainers, driven as each trainer drives it; tests/release has their real loops."""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from contrastive_core.recording import WatchCallback
from contrastive_core.recording.callback import BASES
from contrastive_core.spaces import recorded_rows


class Callback:
    """The base class of a trainer's callbacks."""

    def on_fit_end(self) -> str:
        return "hook of the base class"


@pytest.fixture(autouse=True)
def trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither library is imported, whatever else runs in this process."""
    for name in BASES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_it_needs_a_trainer() -> None:
    with pytest.raises(ImportError, match="Lightning or transformers"):
        WatchCallback("none")


def test_lightning_calls_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pytorch_lightning", SimpleNamespace(Callback=Callback))
    callback = WatchCallback("lightning", "nt_xent", every=1, strict=True)
    assert isinstance(callback, Callback)
    assert callback.on_fit_end() == "hook of the base class"
    module = nn.Linear(3, 3)
    callback.on_train_start(None, module)
    outputs = {"loss": torch.tensor(0.5), "views": [torch.randn(4, 3), torch.randn(4, 3)], "ids": list("abcd")}
    callback.on_train_batch_end(None, module, outputs, None, 0)
    callback.on_train_end(None, module)
    run = callback.watch.run
    assert run.metrics()[0]["caller_loss"] == 0.5
    assert recorded_rows.read(run, 1).ids.tolist() == list("aabbccdd")
    assert run.status()["status"] == "done"


def test_a_hugging_face_trainer_calls_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(TrainerCallback=Callback))

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
