"""Compiles encoding, pairs and loss of each method as one graph; a line of JSON for each, with the value of the loss
compiled and plain, or why there is no such graph. A process of its own: type checks of the tests are no graph."""

import json
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
import torch._dynamo
from torch import Tensor, nn

from contrastive_core import losses, methods
from contrastive_core.losses import lejepa
from contrastive_core.methods import Method
from tests.helpers.methods_setup import N_TRAIN, SHAPE, VOCABULARY, batch


class Tiny(nn.Module):
    """The smallest encoder: what is compiled here is what surrounds one."""

    out_dim = 8

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3 * 4, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(nn.functional.adaptive_avg_pool2d(x, 2).flatten(1))


def drawn_before(owner: Any, name: str, *arguments: object) -> None:
    """The function of that name returns what it returns now."""
    result = getattr(owner, name)(*arguments)
    setattr(owner, name, lambda *others: result)


def ready(name: str) -> Callable[[], Tensor]:
    """The value of the loss of a batch whose random parts (views, words, noise, directions) are drawn."""
    torch.manual_seed(0)
    cls, images, g = methods.get(name), batch(n=4), torch.Generator().manual_seed(0)
    facts = {"image_shape": SHAPE, "n_train": N_TRAIN, "vocabulary": VOCABULARY}
    knobs = {"noise": 6} if name == "inst_disc" else {}
    method: Method = methods.create(name, encoder=Tiny(), **facts, **knobs).train()
    method.use_loss(losses.create(cls.card.default_loss, **cls.card.loss_knobs))
    if name == "clip":
        drawn_before(method.text_tower, "encode", images.draw_captions(g))
        drawn_before(type(images), "draw_captions", images, g)
    if name == "cpc":
        drawn_before(method, "patches", images, g)
    elif name == "inst_disc":
        drawn_before(method.bank, "noise", images.index, 6, g, images.global_rows)
    elif name == "lejepa":
        drawn_before(lejepa, "directions", torch.zeros(1, 256), 8, 0)
        lejepa.KNOTS = 3  # its loop over them is unrolled
        method.relate = MethodType(Method.relate, method)  # type: ignore[method-assign]
    views = {count: method.views(images, count, g) for count in (1, 2)}
    method.views = lambda images, count, generator: views[count]  # type: ignore[method-assign]

    def value() -> Tensor:
        pairs = method.relate(method.rows(images, g), images, g)
        assert method.loss is not None
        return method.loss.without_waiting(pairs).value

    return value


def main() -> None:
    torch._dynamo.config.allow_rnn = True  # of CPC: its GRU is one operation
    torch.set_num_threads(1)
    for name in sys.argv[1:] or methods.names():
        try:
            torch._dynamo.reset()  # one function of many methods is compiled often
            value = ready(name)
            plain = float(value().detach())
            compiled = torch.compile(value, backend="aot_eager", fullgraph=True)()
            compiled.backward()
            found: dict[str, Any] = {"compiled": float(compiled.detach()), "plain": plain}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"name": name, **found}), flush=True)


if __name__ == "__main__":
    main()
