"""Readers of checkpoints and weights, with torch."""

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file

from contrastive_core import runs
from contrastive_core.base.errors import Damaged, NotRecognized
from contrastive_core.exchange import checkpoint_formats
from contrastive_core.exchange.checkpoint_formats import recognize
from contrastive_core.runs import checkpoints
from hostile.attack import Target

PARTS = """module. encoder_q. backbone. encoder. projector. head. projection_head.layers. 0. 1. 2.
conv1.weight bn1.bias layer1.0.conv3.weight fc.0. patch_embed.proj.weight pos_embed weight bias
running_mean running_var""".split()


class Harm:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return os.system, (f"touch {self.target}",)


def targets(folder: Path) -> Iterator[Target]:
    state = {"conv1.weight": torch.randn(8, 3, 3, 3), "bn1.weight": torch.ones(8)}
    harm = folder / "harm.pth"
    structures = []
    for new in (True, False):
        torch.save(
            {"state_dict": state, "x": Harm(folder.parent / "touched")}, harm, _use_new_zipfile_serialization=new
        )
        structures.append(harm.read_bytes())
    harm.unlink()
    structures += [b"", b"\x80\x02" * 50, b"\x80\x04\x95" + b"\xff" * 8, b"PK\x03\x04" * 30]
    for name in ("new.pth", "old.pth", "plain.safetensors"):
        path = folder / name
        if name.endswith("pth"):
            torch.save({"state_dict": state, "epoch": 3}, path, _use_new_zipfile_serialization=name == "new.pth")
        else:
            save_file(state, path)

        def read(path: Path = path) -> None:
            checkpoint_formats.convert(path, folder / "out.safetensors")

        # torch raises what it likes; the child of an import makes one sentence of all of it
        yield Target(path, read, (Exception,), tuple(structures))
    yield weights()
    yield names(folder)


def weights() -> Target:
    run = runs.create("attacked", {"method": "simclr", "dataset": "digits"})
    checkpoints.save_weights(run, {"encoder.body.0.weight": torch.randn(4, 1, 3, 3)})
    whole = checkpoints.load_weights(run)["encoder.body.0.weight"]

    def read() -> None:
        if not torch.equal(checkpoints.load_weights(run)["encoder.body.0.weight"], whole):
            raise AssertionError("other weights than were written")

    huge = (1 << 62).to_bytes(8, "little") + b"{}"
    return Target(run.weights, read, (Damaged, ValueError, OSError), (b"", huge, b"\xff" * 100))


def names(folder: Path) -> Target:
    """Names and shapes of tensors, drawn from the words of all formats."""
    path, rng = folder / "names.txt", random.Random(0)
    path.write_text("the mutation of this file is another set of names")

    def read() -> None:
        for _ in range(5):
            shapes = {
                "".join(rng.sample(PARTS, rng.randrange(1, 4))): tuple(
                    rng.choices((0, 1, 2, 3, 7, 64, 384), k=rng.randrange(6))
                )
                for _ in range(rng.randrange(1, 12))
            }
            with contextlib.suppress(NotRecognized):
                assert recognize(shapes).encoder

    return Target(path, read)
