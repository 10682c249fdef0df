"""Errors of other libraries become sentences of ours, without their traces and advice."""

import pickle
from pathlib import Path

import pytest

from contrastive_core.__main__ import main
from contrastive_core.data import datasets

NAMES = ("cifar10", "cifar100", "mnist", "fashion_mnist", "stl10")
FOLDERS = ("cifar-10-batches-py", "cifar-100-python", "MNIST/raw", "FashionMNIST/raw", "stl10_binary")


@pytest.mark.parametrize(("name", "folder"), zip(NAMES, FOLDERS, strict=True))
def test_a_damaged_download_is_described_in_our_words(name: str, folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "data_batch_1").write_bytes(pickle.dumps(print))
    with pytest.raises(ValueError, match=r"is incomplete or damaged\. Delete its files") as caught:
        datasets.load(name, "test", root=str(tmp_path))
    assert "download=True" not in str(caught.value)


@pytest.mark.parametrize("values", ["{", "[" * 100_000, "3", "null", '{"space": 3}', "{}", '{"space": {"other": 1}}'])
def test_an_analysis_of_other_values_ends_in_one_sentence(values: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "map", values]) == 2
    text = capsys.readouterr().err
    assert "Traceback" not in text
    assert "--debug" not in text
    assert len(text.strip().splitlines()) == 1
