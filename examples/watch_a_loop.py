"""Record a PyTorch training loop of your own with `watch`.

python examples/watch_a_loop.py
contrastive-lab example-loop        # open the recording
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

from contrastive_core import watch


def augment(images: torch.Tensor) -> torch.Tensor:
    """Shift the 8×8 images (b, 1, 8, 8) by up to one pixel and add noise."""
    shifted = torch.roll(images, tuple(torch.randint(-1, 2, (2,)).tolist()), dims=(2, 3))
    return shifted + 0.1 * torch.randn_like(shifted)


def nt_xent(a: torch.Tensor, b: torch.Tensor, temperature: float) -> torch.Tensor:
    """The loss of this loop. `watch` computes its own from the rows and compares both."""
    z = functional.normalize(torch.cat([a, b]), dim=1)
    logits = (z @ z.T / temperature).fill_diagonal_(float("-inf"))
    n = len(a)
    return functional.cross_entropy(logits, torch.arange(2 * n).roll(n))


def main(steps: int = 200, temperature: float = 0.2) -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)

    with watch("example-loop", loss="nt_xent", temperature=temperature, every=20, dataset="digits") as w:
        for step in range(steps):
            index = torch.randperm(len(images))[:128]
            a, b = encoder(augment(images[index])), encoder(augment(images[index]))
            loss = nt_xent(a, b, temperature)
            w.step(a, b, labels=labels[index], ids=index, caller_loss=loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step}: loss {loss.item():.3f}")
    print(f"recorded in {w.run.path}" if w.run else "nothing was recorded")


if __name__ == "__main__":
    main()
