"""A small method, a batch and a step, as the tests of methods share them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contrastive_core import losses, methods
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.captions import Vocabulary
from contrastive_core.data.dataset import Captions
from contrastive_core.data.recipe import Recipe
from contrastive_core.losses import LossOutput
from contrastive_core.methods import Method
from contrastive_core.models.encoders import create_encoder

SHAPE, N_TRAIN, BATCH = (3, 16, 16), 40, 8
VOCABULARY = Vocabulary(("red", "blue", "star", "ring"))
PLAIN = Recipe(crop=0, flip=0, jitter=0, gray=0)  # every view is the image itself


def make(name: str, recipe: Recipe | None = None, **knobs: Any) -> Method:
    torch.manual_seed(0)
    encoder = create_encoder("small", SHAPE[0], SHAPE[1], width=0.25)
    facts = {"image_shape": SHAPE, "n_train": N_TRAIN, "recipe": recipe, "vocabulary": VOCABULARY}
    method = methods.create(name, encoder=encoder, **facts, **knobs)
    cls = methods.get(name)
    method.use_loss(losses.create(cls.card.default_loss, **cls.card.loss_knobs))
    return method.train()


def batch(seed: int = 0, n: int = BATCH) -> Batch:
    g = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, *SHAPE), generator=g, dtype=torch.uint8)
    index, of = torch.randperm(N_TRAIN, generator=g)[:n], np.repeat(np.arange(n), np.arange(n) % 2 + 1)
    words = (*VOCABULARY.words, "unknown")
    numbers = torch.randint(len(words), (len(of), 5), generator=g)
    captions = Captions(tuple(" ".join(words[w] for w in row) for row in numbers.tolist()), of)
    return Batch(images, torch.arange(n) % 2, index, None, captions)


def optimizer(method: Method) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for p in method.parameters() if p.requires_grad], lr=1e-2)


def step(method: Method, opt: torch.optim.Optimizer, g: torch.Generator, seed: int) -> LossOutput:
    pairs = method.pairs(batch(seed), g)
    assert method.loss is not None
    out = method.loss(pairs)
    opt.zero_grad()
    out.value.backward()
    opt.step()
    method.after_step(pairs)
    return out


def state(method: nn.Module) -> dict[str, Tensor]:
    return {k: v.clone() for k, v in method.state_dict().items()}


def changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    assert before.keys() == after.keys()
    return {k for k in before if not torch.equal(before[k].nan_to_num(9), after[k].nan_to_num(9))}
