"""The callback in a real loop of pytorch-lightning, which is in the test extra through lightly."""

import pytest
import pytorch_lightning as lightning
import torch
from torch import nn

from contrastive_core.losses import create
from contrastive_core.pairs import from_views
from contrastive_core.recording import WatchCallback
from contrastive_core.spaces import recorded_rows


class Module(lightning.LightningModule):
    def __init__(self, gives_rows: bool = True, fails: bool = False) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 3))
        self.gives_rows, self.fails = gives_rows, fails

    def training_step(self, batch, index):
        x, y, ids = batch
        if self.fails and index:
            raise RuntimeError("out of memory")
        z = self.net(torch.stack([x, x + 0.1], 1))
        loss = create("nt_xent", temperature=0.2)(from_views(z)).value
        return {"loss": loss, "z": z, "labels": y, "ids": ids} if self.gives_rows else loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def fitted(module: Module, *callbacks, epochs: int = 2) -> Module:
    lightning.seed_everything(0, verbose=False)
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.reset_parameters()
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.arange(24) % 3, torch.arange(24))
    loader = torch.utils.data.DataLoader(data, 8, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=list(callbacks),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    return module


def test_a_real_loop_is_recorded_and_not_disturbed() -> None:
    alone = fitted(Module())
    module, probe = Module(), [(torch.randn(5, 4), torch.arange(5) % 2)]
    callback = WatchCallback(
        "lightning", loss="nt_xent", temperature=0.2, every=1, strict=True, encode=lambda x: module.net(x), probe=probe
    )
    beside = fitted(module, callback)
    for a, b in zip(alone.parameters(), beside.parameters(), strict=True):
        assert torch.equal(a, b)
    run = callback.watch.run
    steps = [line for line in run.metrics() if "images_per_s" in line]
    assert len(steps) == 6
    assert [s["loss"] for s in steps] == pytest.approx([s["caller_loss"] for s in steps], rel=1e-4)
    assert recorded_rows.read(run, 1).has_views
    assert run.snapshots() == [3, 6]
    assert run.status()["status"] == "done"
    assert not run.is_alive()


def test_a_step_without_rows_is_told_of() -> None:
    callback = WatchCallback("no-rows", loss="nt_xent", every=1)
    fitted(Module(gives_rows=False), callback, epochs=1)
    assert "returns none of" in callback.watch.run.status()["note"]


def test_a_training_that_fails() -> None:
    callback = WatchCallback("fails", loss="nt_xent", every=1)
    with pytest.raises(RuntimeError, match="out of memory"):
        fitted(Module(fails=True), callback)
    status = callback.watch.run.status()
    assert status["status"] == "failed"
    assert "out of memory" in status["reason"]
