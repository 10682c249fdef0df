"""Messages from a file take little memory, whatever their structure; errors of libraries become our sentences."""

import json
import pickle
import random
import string
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contrastive_core.__main__ import main
from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged
from contrastive_core.base.messages import LONGEST, Message, decode, encode, join, message
from contrastive_core.data import datasets


def nested(levels: int, times: int, inner: Any = "x") -> Any:
    for _ in range(levels):
        inner = {"message": "{a}" * times, "values": {"a": inner}}
    return inner


def some_node(rng: random.Random, depth: int) -> Any:
    """A message, or nearly one, whose values may be messages."""
    names = rng.sample(string.ascii_lowercase, rng.randrange(1, 4))
    parts = rng.choices([*(f"{{{name}}}" for name in names), "text "], k=9) * rng.randrange(1, 9)
    if rng.random() < 0.1:
        parts.append(rng.choice(("{", "}", "{}", "{a.b}", "{a:9999999}", "{a!r}", "{missing}")))
    leaves = ["x" * rng.randrange(300), 10 ** rng.randrange(300), None, 1e300, ""]
    leaves += [[], {}] * (rng.random() < 0.1)
    values = {n: some_node(rng, depth - 1) if depth and rng.random() < 0.7 else rng.choice(leaves) for n in names}
    return {"message": "".join(parts), "values": values}


def least_peak(text: str) -> int:
    """The bytes that reading this takes: the least of three times if the first took many, since what other threads
    of the process take meanwhile counts, too."""
    peaks: list[int] = []
    while not peaks or (len(peaks) < 3 and peaks[-1] > 1 << 18):
        tracemalloc.start()
        json.loads(text, object_hook=decode)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return min(peaks)


def test_messages_in_messages_do_not_expand(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    text = json.dumps({"status": "failed", "reason": nested(9, 10)})
    path.write_text(text)
    assert len(text) < 813
    tracemalloc.start()
    with pytest.raises(Damaged):
        json_files.read_object(path, json_files.fields({"reason": json_files.Schema((str,))}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("levels", [33, 200])
def test_deep_messages_stay_plain_objects(levels: int) -> None:
    assert isinstance(json.loads(json.dumps(nested(levels, 1)), object_hook=decode), dict)


def test_mutated_structures_never_grow(record_property: Callable[..., None]) -> None:
    rng, made, count = random.Random(0), 0, 1000
    for _ in range(count):
        text = json.dumps(some_node(rng, rng.randrange(5)))
        assert least_peak(text) < 100 * len(text) + (1 << 18), text[:200]
        found = json.loads(text, object_hook=decode)
        if isinstance(found, Message):
            made += 1
            assert len(found) <= min(LONGEST, 2 * len(text))
            assert isinstance(found.in_language(str), str)
    record_property("hostile", ["messages", count - made, made])
    assert made > 20


def test_our_own_messages_come_back_whole() -> None:
    shown = message("{a} of {b}", a=3, b=join(" ", ["the first.", message("the {name}", name="second")]))
    found = json.loads(json.dumps(encode(shown)), object_hook=decode)
    assert found == shown
    french = {"{a} of {b}": "{a} de {b}", "the first.": "la première.", "the {name}": "la {name}", "second": "seconde"}
    assert found.in_language(lambda text: french.get(text, text)) == "3 de la première. la seconde"


def test_running_out_of_memory_is_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "status.json"
    path.write_text('{"message": "x", "values": {}}')

    def fail(node: object) -> None:
        raise MemoryError

    monkeypatch.setattr(json_files, "decode", fail)
    with pytest.raises(Damaged):
        json_files.read_json(path)
    assert json_files.object_of(path.read_bytes()) is None


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
