"""Compare of two pairs of towers: all rows are judged, by recall, which stands side by side; gaps have words."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opened_page import opened

from contrastive_core.base.score import Scores
from contrastive_core.cli.main import main
from contrastive_core.compare.comparison import Comparison, comparison_request
from contrastive_core.compare.towers import tower_scores
from contrastive_core.engine import answers
from contrastive_core.engine.answers.comparisons import judged
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import joined, towers_of
from contrastive_lab import locale, path_input
from contrastive_lab.compare import space_picker, towers, verdict
from contrastive_lab.compare.disagreements import ComparedSamples

N = 30


def pair(names: tuple[str, str], labels: bool = False) -> EmbeddingSet:
    rng = np.random.default_rng(0)
    of = np.arange(N) % 3 if labels else None
    sides = [EmbeddingSet(rng.normal(size=(N, 4)).astype(np.float32), of) for _ in names]
    return joined(*sides, names)


def files(noises: tuple[float, float], of_question: dict[str, Any], of_answer: dict[str, Any]) -> list[Space]:
    """Two opened files of questions and answers, which lie further off with more noise."""
    rng = np.random.default_rng(0)
    x, move = rng.normal(size=(N, 4)).astype(np.float32), rng.normal(size=(N, 4)).astype(np.float32)
    keys = []
    for noise in noises:
        rows = joined(
            EmbeddingSet(x, **of_question), EmbeddingSet(x + noise * move, **of_answer), ("question", "answer")
        )
        keys.append(loaded_vectors.save_vectors(rows, f"{noise}.npz"))
    return [Space.of_vectors(key) for key in keys]


def recall(names: tuple[str, str]) -> Scores:
    towers = towers_of(pair(names))
    assert towers is not None
    return tower_scores(towers)[0]


@pytest.mark.parametrize("labels", [False, True])
def test_no_row_teaches_one_of_the_other_tower_and_all_are_judged(labels: bool) -> None:
    key = loaded_vectors.save_vectors(pair(("a", "b"), labels), "ab.npz")
    train, test = judged(Space.of_vectors(key), lambda stage, fraction: None, "cpu")
    assert len(test) == 2 * N
    assert train is None


def test_the_page_says_which_is_better_and_shows_both_answers_to_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [{"columns": {"text": np.array([f"{name} {i}" for i in range(N)])}} for name in ("why", "because")]
    spaces = files((0.1, 4.0), *texts)
    for every_score in (False, True):
        answers.make("comparison", comparison_request(spaces, every_score=every_score))
    app = opened("compare", monkeypatch, runs=",".join(space.name for space in spaces), view="Disagreements")
    assert not app.exception
    found = verdict.known(spaces)
    assert found is not None
    samples = ComparedSamples(spaces, found, "recall_1_forth")
    rows = samples.ways["A right, B wrong"]
    assert len(rows) > N / 2
    for row in samples.table(rows):
        number = row["text"].removeprefix("why ")
        assert row["A says"] == f"because {number}" != row["B says"]
        assert "class" not in row
    head, below = verdict.headline(found, "recall_1_forth")
    assert head == f"● wins by {100 * found.differences[0].value:.1f} points"
    assert below.startswith(f"{100 * found.differences[0].interval[0]:.1f} to ")
    assert below.endswith("(95 % interval over queries, not seeds)")
    assert any(f"of {N} queries**: " in part.value for part in app.markdown)


def test_files_of_the_same_samples_are_compared_first(monkeypatch: pytest.MonkeyPatch) -> None:
    x, names = np.eye(6, dtype=np.float32), {"shown": "abcdef", "same": "abcdef", "other": "uvwxyz"}
    keys = [loaded_vectors.save_vectors(EmbeddingSet(x + n, ids=tuple(names[k])), k) for n, k in enumerate(names)]
    monkeypatch.setattr(space_picker, "st", SimpleNamespace(session_state={"vectors": keys[0]}))
    assert space_picker.open_files() == [loaded_vectors.PREFIX + key for key in keys]


def test_the_page_compares_by_relevance_judgments_and_orders_queries_by_their_difference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spaces = files((0.1, 2.0), *({"ids": tuple(f"{letter}{i}" for i in range(N))} for letter in "qd"))
    judged = tmp_path / "test.tsv"
    judged.write_text("".join(f"q{i}\td{i}\t2\nq{i}\td{(i + 1) % N}\t1\n" for i in range(N)))
    for every_score in (False, True):
        made = answers.make("comparison", comparison_request(spaces, every_score, judged))
    found = Comparison.of(made.meta, made.arrays)
    names, file = ",".join(space.name for space in spaces), path_input.remember(judged)
    app = opened("compare", monkeypatch, runs=names, qrels=file)
    assert not app.exception
    assert f"● wins by {100 * found.differences[0].value:.1f} points" in [head.value for head in app.header]
    assert f"nDCG@10, {N} queries" in [caption.value for caption in app.caption]
    assert app.button_group(key="compare-color").options == ["tower", "which encoder is right"]
    samples = ComparedSamples(spaces, found, "ndcg_10")
    rows = samples.ways["A right, B wrong"]
    table = samples.table(rows)
    lead = [row["A"] - row["B"] for row in table]
    assert lead == sorted(lead, reverse=True)
    assert lead[-1] > 0
    assert table[0]["A says"] == table[0]["id"].replace("q", "d")
    assert samples.way_title("A right, B wrong") == "● higher"
    field = next(box for box in app.text_input if box.label == "Relevance judgments")
    field.set_value("/none.tsv").run()
    assert [error.value.replace("\\", "") for error in app.error] == ["No such file: /none.tsv. Enter the full path."]
    assert "No relevance judgments" in [head.value for head in app.header]


def test_recall_stands_side_by_side_where_towers_have_other_names() -> None:
    same, other, one = recall(("image", "text")), recall(("question", "answer")), {}
    assert towers.side_by_side([same, same, one]) == [same, same, one]
    first, second, none = towers.side_by_side([same, other, one])
    assert not none
    titles = [[locale.text(score.title) for score in scores.values()] for scores in (first, second)]
    assert titles[0] == titles[1]
    assert "Recall@1, first tower → second tower" in titles[0]
    assert "Recall@5, second tower → first tower" in titles[0]


def test_commands_say_recall_beside_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("a.npy", "b.npy", "pair.npz", "plain.npz")]
    both = pair(("a", "b"))
    a, b = both.features[:N], both.features[N:]
    for file, rows in zip(files, (a, b), strict=False):
        np.save(file, rows)
    assert main(["evaluate", str(files[0]), "--other", str(files[1])]) == 0
    said = capsys.readouterr().out
    assert said.startswith("a.npy + b.npy: 60 rows, 30 pairs\n\na.npy + b.npy:\n")
    assert "chance 3.3 %" in said
    np.savez(files[2], a=a, b=b)
    np.savez(files[3], a=b, b=a)
    assert main(["compare", str(files[2]), str(files[3])]) == 0
    assert "Recall@1, a → b of plain.npz: " in capsys.readouterr().out
