"""Train SimCLR on the digits data set and score it beside raw pixels and an untrained encoder.

    python examples/train_and_evaluate.py [EPOCHS]

The script runs the same commands as `contrastive-lab train` and `evaluate`.
"""

import sys

from contrastive_core import runs
from contrastive_core.cli.main import main as command
from contrastive_core.compare.evaluation import read_evaluation

SOURCES = {"raw": "raw pixels", "random": "untrained encoder", "h": "trained encoder"}


def main(epochs: int = 20, run: str = "example-simclr") -> None:
    if run not in {known.name for known in runs.list_runs()}:
        settings = ["--method", "simclr", "--dataset", "digits", "--epochs", str(epochs), "--seed", "0"]
        if command(["train", *settings, "--run", run]):
            raise SystemExit(1)
    if command(["evaluate", run, "--metrics", "knn"]):
        raise SystemExit(1)

    evaluation = read_evaluation(runs.load(run), metrics=["knn"])
    assert evaluation is not None, "the command has just written it"
    print()
    for source, title in SOURCES.items():
        score = evaluation.scores[source]["knn"]
        low, high = score.interval
        print(f"{title:<18} kNN {100 * score.value:.1f} % (95 % CI {100 * low:.1f} to {100 * high:.1f})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
