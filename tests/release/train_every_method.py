"""The command line's `train`, once for each of many settings, by each process of a world."""

from contrastive_core.cli.main import main
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World

METHODS = "byol cpc inst_disc inva_spread lejepa metric moco_v1 moco_v2 nnclr simclr sup_con swav".split()
VARIANTS: dict[str, list[str]] = {
    **{name: ["method=" + name] for name in METHODS},
    "noise": ["method=inst_disc", "loss=nce", "method.noise=64"],
    "parts": ["method=moco_v1", "method.bn_splits=3", "method.symmetric=on"],
    "lifted": ["method=metric", "method.batches=lifted"],
    "pixels": ["method=simclr", "recipe.noise=0.5", "recipe.cutout=0.5", "recipe.jitter=1"],
}
RESUMED = ("inst_disc", "moco_v2", "parts")
COMMON = ["dataset=digits", "batch_size=90", "encoder.width=0.25", "method.head_bn=on"]
# SGD in small steps: AdamW divides by gradients that are nothing but rounding
COMMON += ["optimizer=sgd", "schedule=constant", "lr=0.002", "amp=off", "threads=1", "sample=50"]


def train(prefix: str, name: str, *more: str) -> None:
    """One run, named PREFIX-NAME. `more`: arguments of `train`; settings unless it is resumed."""
    settings = [] if "--resume" in more else [*COMMON, *VARIANTS[name]]
    if name == "cpc":  # a patch's z is its h
        settings = [s for s in settings if not s.startswith("method.head")]
    given = [x for setting in settings for x in ("--set", setting)]
    status = main(["train", "--device", "cpu", "--name", f"{prefix}-{name}", *given, *more])
    assert status == 0, name


def train_all(world: World, more: list[str]) -> None:
    """A run of each variant, named by the number of processes."""
    collectives.destroy_process_group = lambda: None  # they meet once, for all commands
    for variant in VARIANTS:
        train(str(world.size), variant, *more)
