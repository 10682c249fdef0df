"""`watch` in a loop under DistributedDataParallel: rank 0 writes its rows, or those of all."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel
from worlds import spread

from contrastive_core import runs, watch
from contrastive_core.ops.collectives import World
from contrastive_core.spaces.space import Space

SIZE, IMAGES, STEPS = 2, 8, 5  # processes, images of each, steps


def trained(world: World, name: str = "", **how: bool) -> dict[str, torch.Tensor]:
    """A few steps of somebody's loop, watched under a name, if any."""
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(6, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    w = None
    if name:
        w = watch(name, loss="nt_xent", temperature=0.2, every=2, strict=True, **how)
    generator = torch.Generator().manual_seed(world.rank)
    for step in range(1, STEPS + 1):
        x = torch.randn(IMAGES, 2, 6, generator=generator)
        z = torch.nn.functional.normalize(model(x), dim=-1)
        loss = -(z[:, 0] * z[:, 1]).sum(-1).mean() + z.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if w is not None:
            first = world.rank * IMAGES
            w.step(
                z, labels=torch.arange(IMAGES) % 2, ids=torch.arange(first, first + IMAGES), caller_loss=loss, step=step
            )
            if w._recorder is not None:
                w._recorder.wait()  # so that none is dropped, however slow the machine
    if w is not None:
        w.close()
    return dict(model.module.state_dict())


def job(world: World) -> list[dict[str, torch.Tensor]]:
    return [trained(world), trained(world, "alone"), trained(world, "gathered", gather=True)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_HOME", str(home / "data"))
        patch.setenv("CONTRASTIVE_LAB_RUNS", str(home / "runs"))
        return home, spread(job, SIZE, tmp_path_factory.mktemp("world"))


def test_training_is_bit_equal_in_every_process(found: tuple[Path, list]) -> None:
    for bare, alone, gathered in found[1]:
        for other in (alone, gathered):
            assert all(torch.equal(bare[name], other[name]) for name in bare)


@pytest.mark.parametrize(("name", "processes"), [("alone", 1), ("gathered", SIZE)])
def test_rank_0_records_its_rows_or_those_of_all(
    name: str, processes: int, found: tuple[Path, list], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(found[0] / "data"))
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(found[0] / "runs"))
    assert {run.name for run in runs.list_runs() if run.is_recording} == {"alone", "gathered"}
    run = runs.load(name)
    assert run.status()["status"] == "done"
    assert not run.status().get("note")
    assert [line["step"] for line in run.metrics()] == [1, 2, 4]
    for step in (1, 2, 4):
        rows = Space.of_name(f"recording:{name}@step-{step}").rows()
        assert rows is not None
        assert sorted({int(i) for i in rows.ids}) == list(range(processes * IMAGES))
        assert len(rows) == 2 * processes * IMAGES
        assert np.isfinite(rows.features).all()
