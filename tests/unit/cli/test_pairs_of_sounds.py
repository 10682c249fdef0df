"""Audio and text, products and queries: commands read two towers that are no images, and never call them so."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cases import cases

from contrastive_core.__main__ import main

N = 60


def two_towers() -> tuple[np.ndarray, np.ndarray]:
    """Partners beside each other, but for the rows 3 and 4, whose partners are swapped."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(N, 8)).astype(np.float32)
    b = a + 0.1 * rng.normal(size=(N, 8)).astype(np.float32)
    b[[3, 4]] = b[[4, 3]]
    return a, b


def words(kind: str) -> list[str]:
    return [f"{kind} number {i}" for i in range(N)]


@cases(("first", "second", "as_table"), [("audio", "text", False), ("product", "query", True)])
def test_every_command_calls_rows_by_their_tower(
    tmp_path: Path, capsys, first: str, second: str, as_table: bool
) -> None:
    a, b = two_towers()
    if as_table:
        columns = {"id": words("id"), "text": words(second), first: list(a), second: list(b)}
        pq.write_table(pa.table(columns), tmp_path / "both.parquet")
        of = [str(tmp_path / "both.parquet")]
    else:
        for name, rows in ((first, a), (second, b)):
            columns = {"id": words("id"), "text": words(name), "vector": list(rows)}
            pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        of = [str(tmp_path / f"{first}.parquet"), "--other", str(tmp_path / f"{second}.parquet")]
    out = tmp_path / "pairs.csv"
    for command in (["pairs", *of], ["pairs", *of, "--out", str(out)], ["evaluate", *of], ["samples", *of]):
        status, told = main(command), capsys.readouterr()
        assert "image" not in (told.out + told.err).lower(), (command, told)
        if command[0] != "samples":
            assert status == 0, told.err
            assert first in told.out
            assert second in told.out
    assert "image" not in out.read_text()
    assert main(["pairs", *of, "--json", "--top", "2"]) == 0
    found = json.loads(capsys.readouterr().out)["mismatched"]
    assert all("number 3" in str(one) or "number 4" in str(one) for one in found), found
