"""Find wrong labels in a data set whose errors are known.

    python examples/find_wrong_labels.py

The script changes 2 % of the labels of scikit-learn's digits, lists the most suspicious samples and counts how many
of them were changed.
"""

import numpy as np
from sklearn.datasets import load_digits

from contrastive_core.samples.issues import find_issues
from contrastive_core.spaces.embedding_set import EmbeddingSet


def change_labels(labels: np.ndarray, share: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Replace a share of the labels by another class. Return the labels and the changed row numbers."""
    generator = np.random.default_rng(seed)
    rows = generator.choice(len(labels), round(share * len(labels)), replace=False)
    changed = labels.copy()
    changed[rows] = (changed[rows] + generator.integers(1, 10, len(rows))) % 10
    return changed, rows


def main() -> None:
    digits = load_digits()
    labels, changed = change_labels(digits.target.astype(np.int64), share=0.02)
    rows = EmbeddingSet(digits.data.astype(np.float32), labels, classes=tuple(map(str, range(10))))

    probability = find_issues(rows, device="cpu").scores["mislabeled"]  # (n)
    order = np.argsort(-probability)
    print("row   given  true  probability that the label is wrong")
    for row in order[:10]:
        print(f"{row:<5} {labels[row]:<6} {digits.target[row]:<5} {probability[row]:.2f}")

    listed = np.isin(order[: len(changed)], changed).sum()
    print(f"\n{listed} of the first {len(changed)} samples have a changed label.")


if __name__ == "__main__":
    main()
