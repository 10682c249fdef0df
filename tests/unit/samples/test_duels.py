"""Duels: which queries are judged, what a decision counts, and that decisions survive."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.cli.main import main
from contrastive_core.samples import annotations
from contrastive_core.samples.duels import DONE, KEYS, OPEN, SAME, STOP, Duels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined

N = 200


def pair_of(answers: np.ndarray, texts: bool = False) -> EmbeddingSet:
    """N queries, each with the given document as its first answer."""
    documents = np.eye(N, dtype=np.float32)
    ids = [tuple(f"{letter}{i}" for i in range(N)) for letter in "qd"]
    columns = {"text": np.array([f"text {i // 2}" for i in range(N)])} if texts else {}
    sides = EmbeddingSet(documents[answers], ids=ids[0]), EmbeddingSet(documents, ids=ids[1], columns=columns)
    return joined(*sides, ("query", "document"))


def sets(wrong_a: int, wrong_b: int, texts: bool = False) -> list[EmbeddingSet]:
    """A answers the first queries wrongly, and B those that follow."""
    first, second = np.arange(N), np.arange(N)
    first[:wrong_a] ^= 1
    second[wrong_a : wrong_a + wrong_b] ^= 1
    return [pair_of(first, texts), pair_of(second, texts)]


def duels(wrong_a: int, wrong_b: int, texts: bool = False) -> Duels:
    return Duels.of(["a", "b"], sets(wrong_a, wrong_b, texts))


def judge(of: Duels, most: int = N) -> int:
    """Decide for the right answer until the result is known; the number of clicks."""
    for click in range(most):
        number = of.next(of.marks())
        if number is None or of.standing(of.marks()).is_over():
            return click
        left = of.shown(number)[0]
        of.decide(number, "left" if of.rows.ids[left][1:] == of.rows.ids[of.queries[number]][1:] else "right", "me")
    return most


def test_only_different_answers_are_judged_and_the_difference_is_over_all_queries() -> None:
    of = duels(2, 24)
    assert of.standing({}).differing == 26
    assert of.standing({}).sentence() == OPEN
    clicks = judge(of)
    found = of.standing(of.marks())
    assert found.decided == clicks < 26
    assert found.contrast.sign == 1
    assert STOP in found.sentence()
    assert "a is better than b by" in found.sentence()
    assert found.contrast.difference == (found.wins[0] - found.wins[1]) / found.reached
    swapped = Duels.of(["b", "a"], sets(2, 24)[::-1])
    assert swapped.standing(swapped.marks()).wins == found.wins[::-1]


def test_all_decided_without_a_result_gives_the_difference_on_these_queries() -> None:
    of = duels(6, 7)
    while (number := of.next(of.marks())) is not None:
        right = [of.rows.ids[row][1:] for row in of.shown(number)].index(of.rows.ids[of.queries[number]][1:])
        of.decide(number, KEYS[right])
    found = of.standing(of.marks())
    assert (found.wins, found.reached, found.contrast.difference) == ((7, 6), N, 1 / N)
    assert found.sentence().endswith(DONE)
    assert "may be worse by more than 2 points" in found.sentence()
    assert found.is_over(0.2)
    assert "differ by less than 20 points" in found.sentence(0.2)


def test_answers_of_the_same_text_are_the_same_and_other_answers_have_a_random_side() -> None:
    assert duels(4, 16, texts=True).standing({}).sentence() == SAME.format(queries=N)
    of = duels(60, 60)
    is_first = [of.shown(n) == of.answers[:, n].tolist() for n in np.flatnonzero(of.differ).tolist()]
    assert 40 <= sum(is_first) <= 80
    assert [of.shown(n) for n in range(N)] == [duels(60, 60).shown(n) for n in range(N)]


def test_a_torn_line_costs_no_decision_and_undo_takes_the_last_one_back() -> None:
    of = duels(4, 4)
    first = of.next({})
    assert first is not None
    of.decide(first, "both", "me")
    second = of.next(of.marks())
    assert second is not None
    of.decide(second, "left", "me")
    with of.file.open("ab") as file:
        file.write(b'{"id": "q1", "what": "bo')  # a kill while it was written
    assert of.standing(of.marks()).decided == 2
    annotations.undo([of.file], "me")
    assert of.next(of.marks()) == second
    of.decide(second, "neither", "me")
    found = of.standing(of.marks())
    assert (found.both, found.neither, found.decided) == (1, 1, 2)


def test_rows_of_one_encoder_are_judged_by_their_nearest_other_row() -> None:
    x = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9], [np.nan, 0]], np.float32)
    turned = x[:, :].copy()
    turned[3] = (0.95, 0.05)
    of = Duels.of(["a", "b"], [EmbeddingSet(x), EmbeddingSet(turned)])
    answers = dict(zip(of.queries.tolist(), of.answers.T.tolist(), strict=True))
    assert answers == {0: [1, 3], 1: [0, 3], 2: [3, 1], 3: [2, 1]} or answers[2][0] == 3
    assert 4 not in answers
    assert answers[0][0] == 1
    with pytest.raises(ValueError, match="duels compare two spaces; got 1"):
        Duels.of(["a"], [EmbeddingSet(x)])


def test_the_command_asks_in_a_terminal_and_reads_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, x = np.random.default_rng(0), np.eye(20, dtype=np.float32)
    for name, noise in (("a", 0.2), ("b", 0.6)):
        np.savez(tmp_path / f"{name}.npz", query=x + noise * rng.normal(size=x.shape).astype(np.float32), document=x)
    command = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--duels"]
    keys = iter(["b", "?", "l", "u", "n", "q"])
    ask = input
    monkeypatch.setattr("builtins.input", lambda prompt: next(keys))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "Decided: 2 (0 for a.npz, 0 for b.npz, 1 both, 1 neither)." in said
    monkeypatch.setattr("builtins.input", ask)
    monkeypatch.setattr(sys, "stdin", io.StringIO("u\nu\nn\nb\n"))  # lines of a pipe
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "then press Enter" in out + err
    assert "1 both, 1 neither" in out
    assert main([*command, "--json"]) == 0  # asks nothing
    record = json.loads(capsys.readouterr().out)
    assert (record["both"], record["neither"], record["margin"]) == (1, 1, 0.02)
    assert record["interval"][0] < 0 < record["interval"][1]
