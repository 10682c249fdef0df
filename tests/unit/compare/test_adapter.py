"""A map from old to new vectors: each kind is the best of its kind, and the recall that it keeps has a bound."""

import json
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.score import lower_bound
from contrastive_core.cli.main import main
from contrastive_core.compare.adapter import Adapter, fit_adapters, judge
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined

RNG = np.random.default_rng(0)
OLD = unit_rows(RNG.normal(size=(600, 12)).astype(np.float32))
TURN = np.linalg.qr(RNG.normal(size=(12, 12)))[0].astype(np.float32)
QUERIES = unit_rows(RNG.normal(size=(120, 12)).astype(np.float32))


def test_a_rotation_is_found_and_keeps_every_answer() -> None:
    _, found, _, first = judge((OLD, OLD @ TURN), (QUERIES, QUERIES @ TURN))
    kept = next(one for one in found["kept"] if one["kind"] == "procrustes")
    assert 0.9 < kept["bound"] < kept["value"]
    assert kept["value"] > 0.98
    procrustes = fit_adapters(OLD, OLD @ TURN)[0]
    assert procrustes.matrix == pytest.approx(TURN, abs=1e-4)
    assert procrustes(QUERIES) == pytest.approx(QUERIES @ TURN, abs=1e-4)
    assert [share for share, *_ in found["partial"]] == [0.0, 0.05, 0.1, 0.2, 0.3, 0.5]
    assert [found[name] for name in ("fitted", "held", "queries", "k")] == [400, 200, 120, 10]
    assert len({*first.tolist()}) == len(first) == 200


def test_ridge_and_low_rank_are_those_of_their_formulas() -> None:
    new = unit_rows(OLD @ RNG.normal(size=(12, 9)) + 0.3 * RNG.normal(size=(600, 9)) + 0.2).astype(np.float32)
    _, ridge, low_rank = fit_adapters(OLD, new)
    x, y = OLD - OLD.mean(0), new - new.mean(0)
    gram = x.T @ x
    by_hand = np.linalg.solve(gram + ridge.setting * np.trace(gram) / 12 * np.eye(12), x.T @ y)
    assert ridge.matrix == pytest.approx(by_hand, abs=1e-4)
    assert ridge.offset == pytest.approx(new.mean(0) - OLD.mean(0) @ by_hand, abs=1e-4)
    rank = int(low_rank.setting)
    assert np.linalg.matrix_rank(low_rank.matrix, tol=1e-4) == rank
    leading = np.linalg.svd(x @ by_hand)[2][:rank]
    assert low_rank.matrix == pytest.approx(by_hand @ leading.T @ leading, abs=1e-4)


def test_the_lower_bound_is_below_the_mean_in_95_of_100_draws() -> None:
    rng = np.random.default_rng(1)
    shares, wrong, bounds = np.array([0.3, 0.8, 1.0]), 0, []
    for _ in range(200):
        counts = rng.multinomial(60, [0.2, 0.3, 0.5])
        bounds.append(lower_bound(shares, counts, 0.0, 1.0))
        wrong += bounds[-1] > shares @ [0.2, 0.3, 0.5]
    assert wrong <= 10
    assert np.mean(bounds) > shares @ [0.2, 0.3, 0.5] - 0.12
    assert lower_bound(shares, np.zeros(3, int), 0.0, 1.0) == 0


def test_frequent_answers_encoded_again_keep_more_and_the_group_that_loses_is_named() -> None:
    lost = OLD.copy()
    labels = np.arange(120) % 3
    queries = QUERIES.copy()
    queries[labels == 0, 6:] *= 0.1  # these ask for what the old model does not see
    lost[:, :6] = 0.05 * RNG.normal(size=(600, 6))
    _, found, *_ = judge((unit_rows(lost), OLD), (unit_rows(queries), unit_rows(queries)), labels)
    group = found["groups"][0]
    assert group["label"] == 0
    assert group["p"] < 0.01
    assert group["difference"] < 0
    kept = {share: values for share, *values in found["partial"]}
    assert kept[0.5][0] > kept[0.3][0] > kept[0.3][1]
    assert kept[0.3][0] > kept[0.0][0] == kept[0.0][1]


def test_the_command_writes_the_map(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    for name, turn in (("old", np.eye(12, dtype=np.float32)), ("new", TURN[:, :8])):
        sides = EmbeddingSet(QUERIES @ turn), EmbeddingSet(OLD @ turn)
        groups = (["x"] * 120, ["x"] * 600)
        joined(*sides, ("query", "document"), *groups).save(tmp_path / f"{name}.npz")
    files = [str(tmp_path / f"{name}.npz") for name in ("old", "new")]
    assert main(["compare", *files, "--adapter", str(tmp_path / "map.npz"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["widths"] == [12, 8]
    assert (made["queries"], made["held"], made["fitted"]) == (120, 200, 400)
    with np.load(tmp_path / "map.npz") as kept:
        adapter = Adapter(str(kept["kind"]), kept["matrix"], kept["offset"])
    nearest_new = (unit_rows(OLD @ TURN[:, :8]) @ adapter(OLD).T).argmax(1)
    assert (nearest_new == np.arange(len(OLD))).mean() > 0.9
    for arguments, said in (
        ([*files, "--adapter", "map.txt"], "--adapter must end in .npz or .onnx; got 'map.txt'"),
        ([*files, files[0], "--adapter", str(tmp_path / "a.npz")], "--adapter takes two spaces"),
    ):
        assert main(["compare", *arguments]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(CannotScore, match="at least 60 documents that both models encoded; got 20"):
        judge((OLD[:20], OLD[:20]), (QUERIES, QUERIES))
