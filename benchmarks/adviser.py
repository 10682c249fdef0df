"""What the adviser's choice of τ is worth, against the full grid, and against chance.

    python -m benchmarks.adviser [--sets digits noise] [--epochs 8] [--cifar PATH]

The grid is every τ that the adviser may plan, with three seeds, for all epochs. The adviser gets a
fifth of the time that this took; random search gets the same: τ drawn at random, all epochs, one
seed each, the best on the held-out images taken. Beside both, "two seeds": what the grid itself
would choose by two of its three seeds, the mean of three ways, which is regret that chance alone
makes. Regret: kNN of the grid's best τ, less that of
the one that was chosen, as the grid found it (a τ outside the grid is trained with three seeds), on
the held-out images and on the test images.

Sets: digits and shapes, which the adviser was written with; 300 images of each CIFAR-10 class
and its six animals alone, from the folder `--cifar` (train/CLASS/*.jpg, test/CLASS/*.jpg); "noise",
digits whose classes were dealt at random, where no τ can make a difference.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import summary

TIME = 0.2  # of the grid's
ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
EACH, TESTED = 300, 100  # images of each class, for training and for the test
POINT = 0.01  # regret that is allowed


def prepared(name: str, home: Path, cifar: Path | None) -> str:
    """The data set as `train` takes it."""
    if name in ("digits", "shapes"):
        return name
    target = home / name
    if name == "noise":
        _noise(target)
    else:
        if cifar is None:
            raise SystemExit(f"{name} needs --cifar PATH")
        for split, count in (("train", EACH), ("test", TESTED)):
            for place in sorted((cifar / split).iterdir()):
                if name == "animals" and place.name not in ANIMALS:
                    continue
                (target / split / place.name).mkdir(parents=True)
                for path in sorted(place.glob("*.jpg"))[:count]:
                    shutil.copy(path, target / split / place.name / path.name)
    return f"folder:{target}"


def _noise(target: Path) -> None:
    from PIL import Image

    from contrastive_core.data import datasets

    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        images = datasets.load("digits", split).images
        for i, label in enumerate(rng.integers(0, 10, len(images))):
            place = target / split / str(label)
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.asarray(images[i, 0])).save(place / f"{i}.png")


class Judge:
    """The grid on one set, and what any τ is worth on it."""

    def __init__(self, dataset: str, epochs: int) -> None:
        from contrastive_core.advice.candidates import AdviceRequest, make_plan
        from contrastive_core.advice.evidence import write_ids
        from contrastive_core.advice.search import Search
        from contrastive_core.data import datasets

        data = datasets.load(dataset, "train")
        name = "grid-" + "".join(c if c.isalnum() else "_" for c in dataset)[-20:]
        request = AdviceRequest(dataset, 1e6, ["temperature"], name, epochs=epochs)
        self.search = Search(make_plan(request, data, lambda config: 1.0), data)
        write_ids(self.search.folder / "held_out.txt", data, self.search.rows)
        self.usual = self.search.plan.candidates[0]
        self.by_seed: dict[float, list[list[float]]] = {}  # held-out and test, by seed

    def grid(self) -> float:
        """Seconds that the whole grid took."""
        began = time.monotonic()
        for candidate in self.search.plan.candidates:
            self.worth(candidate.value, candidate)
        self.grid_only = dict(self.by_seed)
        return time.monotonic() - began

    def score(self, value: float, seed: int, candidate: Any = None) -> Any:
        """The scores of one τ on the held-out images, with one seed."""
        import dataclasses

        settings = {"loss.temperature": value}
        made = candidate or dataclasses.replace(self.usual, label=f"τ {value:g}", settings=settings, value=value)
        return self.search.train_and_score(self.search.cell(made, seed))

    def worth(self, value: float, candidate: Any = None) -> tuple[float, float]:
        """kNN on held-out and on test images: the means over three seeds."""
        from contrastive_core.advice.search import score_test_images

        if value not in self.by_seed:
            found = [self.score(value, seed, candidate) for seed in (0, 1, 2)]
            judged = [one for one in found if one.right is not None]
            test = [float(np.nanmean(score_test_images(one.run))) for one in judged]
            self.by_seed[value] = [[float(np.nanmean(one.right)) for one in judged], test]
        held, test = self.by_seed[value]
        return float(np.mean(held)), float(np.mean(test))

    def regret(self, value: float) -> tuple[float, float]:
        """The grid's best less this value, on held-out and on test images."""
        worth = self.worth(value)
        best = [max(np.mean(v[i]) for v in self.grid_only.values()) for i in (0, 1)]
        return best[0] - worth[0], best[1] - worth[1]

    def of_two_seeds(self) -> tuple[float, float]:
        """Regret of what two of three seeds choose: the mean of the three ways."""
        regrets = []
        for left_out in range(3):
            means = {v: np.mean(np.delete(s[0], left_out)) for v, s in self.grid_only.items()}
            regrets.append(self.regret(max(means, key=means.__getitem__)))
        held, test = np.mean(regrets, 0)
        return float(held), float(test)


def advised(dataset: str, epochs: int, seconds: float) -> dict[str, Any]:
    """The adviser's answer within so many seconds."""
    from contrastive_core.advice.candidates import AdviceRequest, plan_advice
    from contrastive_core.advice.search import advise

    plan = plan_advice(AdviceRequest(dataset, seconds / 60, ["temperature"], epochs=epochs))
    began = time.monotonic()
    found = advise(plan)
    return {**found, "took": time.monotonic() - began}


def at_random(judge: Judge, seconds: float) -> float:
    """The best of as many random τ, for all epochs, as the time allows."""
    rng, began, best = np.random.default_rng(0), time.monotonic(), (-1.0, 0.2)
    while True:
        started = time.monotonic()
        value = float(f"{np.exp(rng.uniform(np.log(0.02), np.log(2))):.2g}")
        judged = judge.score(value, 7)
        if judged.right is not None:
            best = max(best, (float(np.nanmean(judged.right)), value))
        now = time.monotonic()
        if now - began + (now - started) > seconds:
            return best[1]


def of_set(name: str, dataset: str, epochs: int) -> list[dict[str, Any]]:
    judge = Judge(dataset, epochs)
    took = judge.grid()
    held = [judge.worth(v)[0] for v in judge.grid_only]
    spread = max(held) - min(held)
    found = advised(dataset, epochs, TIME * took)
    chance = at_random(judge, TIME * took)
    print(f"{name}: grid {took:.0f} s, its τ from worst to best {100 * spread:.1f} points")
    for value in sorted(judge.grid_only):
        held_out, test = judge.worth(value)
        print(f"  τ {value:g}: held-out {100 * held_out:.2f} %, test {100 * test:.2f} %")
    print(f"  adviser, {found['took']:.0f} s: {found['verdict']}")
    lines = []
    settings = found["rows"][0]["settings"]
    usual = judge.usual.value
    for who, value in (("adviser", settings.get("loss.temperature", usual)), ("random", chance)):
        regret = judge.regret(value)
        print(f"  {who}: τ {value:g}, regret {100 * regret[0]:+.2f} held-out, {100 * regret[1]:+.2f} test (points)")
        if who == "adviser":
            for where, r in zip(("held-out", "test"), map(float, regret), strict=True):
                lines.append(
                    {
                        "name": f"{name}: regret on {where} images at {100 * TIME:.0f} % of the time",
                        "value": 100 * r,
                        "unit": "points",
                        "peer": "limit",
                        "peer_value": 100 * POINT,
                        "ratio": POINT / max(r, 1e-4),
                        "goal": 1.0,
                        "met": r <= POINT,
                    }
                )
    by_chance = judge.of_two_seeds()
    print(f"  two seeds of the grid: regret {100 * by_chance[0]:+.2f} held-out, {100 * by_chance[1]:+.2f} test")
    says_none = not found["is_shown"]
    print(f"  it says {'no difference is shown' if says_none else 'a difference is shown'}")
    if name == "noise":
        lines = [
            {
                "name": "noise: it says that no difference is shown",
                "value": float(says_none),
                "unit": "",
                "peer": "truth",
                "peer_value": 1.0,
                "ratio": float(says_none),
                "goal": 1.0,
                "met": says_none,
            }
        ]
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sets", nargs="+", default=["digits", "noise", "shapes"])
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--cifar", type=Path)
    args = options.parse_args()
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["CONTRASTIVE_LAB_RUNS"] = f"{home}/runs"
        os.environ["CONTRASTIVE_LAB_HOME"] = f"{home}/home"
        for name in args.sets:
            lines += of_set(name, prepared(name, Path(home) / "sets", args.cifar), args.epochs)
    summary("adviser", lines)


if __name__ == "__main__":
    main()
