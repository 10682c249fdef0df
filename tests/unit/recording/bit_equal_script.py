"""The same training with and without a recording beside it; fails where they differ."""

import random
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[3]))

from contrastive_core import pairs, watch
from contrastive_core.losses import create
from contrastive_core.recording import recorder


class Still:
    """No watch at all."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def step(self, *_, **__):
        return None

    probe = step


def trained(watcher) -> tuple[list[torch.Tensor], list[object]]:
    """Weights after twelve steps with dropout and three generators, and what these give next."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.arange(64) % 4, torch.arange(64))
    probe = torch.utils.data.DataLoader(data, 16, shuffle=True)
    criterion = create("nt_xent", temperature=0.2)
    with watcher as w:
        for step in range(12):
            x, y, index = data[torch.randperm(64)[:16].tolist()]
            noise = random.random() * np.random.rand() * torch.randn(16, 2, 8)
            z = model((x[:, None] + noise).flatten(0, 1)).view(16, 2, 4)
            loss = criterion(pairs.from_views(z)).value
            optimizer.zero_grad()
            w.step(z, labels=y, ids=index, caller_loss=loss)
            loss.backward()
            if step % 4 == 0:
                w.probe(model, probe)
            optimizer.step()
    state = [t.clone() for t in model.state_dict().values()]
    return state, [torch.rand(1).item(), random.random(), np.random.rand()]


def main() -> None:
    recorder.WAITING = 100  # so that none is dropped
    torch.set_float32_matmul_precision("medium")
    threads = torch.get_num_threads()
    alone, drawn = trained(Still())
    beside, drawn_beside = trained(watch("beside", loss="nt_xent", every=1, strict=True))
    assert drawn == drawn_beside
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))
    assert torch.get_num_threads() == threads
    assert torch.get_float32_matmul_precision() == "medium"


if __name__ == "__main__":
    main()
