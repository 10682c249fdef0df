"""Compare two files of embeddings of the same samples.

    python examples/compare_embeddings.py [A.npz B.npz]

Without arguments, the script writes two embeddings of scikit-learn's digits: the pixels, and their first two
principal components.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from contrastive_core.cli.main import main as command


def write_files(folder: Path) -> list[Path]:
    """Write pixels.npz and pca.npz with the arrays that the lab knows by name: features, label, id."""
    digits = load_digits()
    pixels = digits.data.astype(np.float32)
    embeddings = {"pixels": pixels, "pca": PCA(2, random_state=0).fit_transform(pixels).astype(np.float32)}
    files = []
    for name, features in embeddings.items():
        files.append(folder / f"{name}.npz")
        np.savez(files[-1], features=features, label=digits.target, id=np.arange(len(features)))
    return files


def main(files: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = files or write_files(Path(folder))
        status = command(["compare", *map(str, files), "--metrics", "knn"])
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
