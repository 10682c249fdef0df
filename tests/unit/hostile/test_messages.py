"""Messages from a file: whatever their structure, little memory and no more text than the file holds twice."""

import json
import random
import string
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged
from contrastive_core.base.messages import LONGEST, Message, decode, encode, join, message

SHOWN = message("{a} of {b}", a=3, b=join(" ", ["the first.", message("the {name}", name="second")]))


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
    found = json.loads(json.dumps(encode(SHOWN)), object_hook=decode)
    assert found == SHOWN
    assert found.in_language(lambda text: text.replace("the", "le")) == "3 of le first. le second"


def test_running_out_of_memory_is_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "status.json"
    path.write_text('{"message": "x", "values": {}}')

    def fail(node: object) -> None:
        raise MemoryError

    monkeypatch.setattr(json_files, "decode", fail)
    with pytest.raises(Damaged):
        json_files.read_json(path)
    assert json_files.object_of(path.read_bytes()) is None
