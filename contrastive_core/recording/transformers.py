"""A Hugging Face `TrainerCallback`, for `Trainer` and for sentence-transformers.

    trainer.add_callback(WatchCallback("my-run", loss="info_nce", temperature=0.05))

A trainer does not hand its callbacks what the model gave, so the model is listened to (a forward hook, while training
and with gradients): two `sentence_embedding`s of one step, as sentence-transformers' losses ask for, are queries and
keys; so are `image_embeds` and `text_embeds`. Of several micro-batches in a step the last is recorded. Losses that
encode in parts (`Cached...`) are not read. Tested in real loops of transformers 5 and sentence-transformers 6.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import message
from contrastive_core.recording.watch import Watch, watch

ROWS = (("image_embeds", "text_embeds"), ("sentence_embedding",), ("embeddings",), ("z",))
LABELS, IDS = ("labels", "label"), ("ids", "id", "index")
COLUMNS = 2  # of sentences: the anchors and their positives


class WatchCallback(TrainerCallback):  # type: ignore[misc]
    """Records while a `Trainer` trains.

    Args:
        name, loss, settings: of `watch`; `positives` is "keys" where it is not given.
        rows: the rows of a call of the model, a tensor or several, made of (inputs, output);
            default: by the names above.
        criterion: the loss of sentence-transformers, whose call has the labels.
        encode, probe: at the end of each epoch the rows of a fixed set, `encode(batch)` for the
            batches of the loader `probe`; the model is in evaluation mode meanwhile.
    """

    def __init__(
        self,
        name: str,
        loss: str | None = None,
        *,
        rows: Callable[[Any, Any], Any] | None = None,
        criterion: nn.Module | None = None,
        encode: Callable[[Any], Any] | None = None,
        probe: Iterable[Any] | None = None,
        **settings: Any,
    ) -> None:
        self._open = lambda: watch(name, loss, **settings)
        self._rows, self._criterion = rows or rows_of, criterion
        self._encode, self._probe = encode, probe
        self._views: list[Tensor] = []
        self._beside: dict[str, Any] = {}
        self._hooks: list[Any] = []
        self.watch: Watch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.watch, model = self._open(), kwargs["model"]
        self._hooks = [model.register_forward_hook(self._listen, with_kwargs=True)]
        if self._criterion is not None:
            self._hooks.append(self._criterion.register_forward_pre_hook(self._listen_to_loss, with_kwargs=True))

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._views, self._beside = [], {}

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        views, beside, self._views, self._beside = self._views, self._beside, [], {}
        if self.watch is None or not views:
            return
        if len(views) > COLUMNS:
            counts = {"views": len(views), "columns": COLUMNS}
            text = message("Of {views} columns of sentences the first {columns} are recorded.", **counts)
            self.watch.omissions.remark(text)
        self.watch.step(*views[:COLUMNS], step=state.global_step, **beside)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.watch is not None and self._encode is not None and self._probe is not None:
            self.watch.probe(self._encode, self._probe, model=kwargs["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        if self.watch is not None:
            self.watch.close()

    def _listen(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if self.watch is None or not model.training or not torch.is_grad_enabled():
            return
        inputs = kwargs or (args[0] if args and isinstance(args[0], Mapping) else {})
        try:
            found = self._rows(inputs, output)
        except Exception as error:
            self.watch.on_error(error, "steps")
            return
        self._views += [z.detach() for z in ([found] if isinstance(found, Tensor) else found)]
        for name, keys in (("labels", LABELS), ("ids", IDS)):
            if (value := next((inputs[k] for k in keys if k in inputs), None)) is not None:
                self._beside.setdefault(name, value)

    def _listen_to_loss(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        labels = kwargs.get("labels", args[1] if len(args) > 1 else None)
        if torch.is_grad_enabled() and isinstance(labels, Tensor):
            self._beside["labels"] = labels


def rows_of(inputs: Any, output: Any) -> list[Tensor]:
    """The rows that a model gave. Raises ValueError where it gave none that is known by name."""
    get = output.get if isinstance(output, Mapping) else partial(getattr, output)
    for names in ROWS:
        found = [get(name, None) for name in names]
        if all(isinstance(z, Tensor) and z.ndim == 2 for z in found):
            return found
    known = "; ".join(" and ".join(names) for names in ROWS)
    raise UnusableEmbedding("the model returns none of {known}; give rows=", known=known)
