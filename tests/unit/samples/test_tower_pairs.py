"""Pairs of two towers: what was planted comes first in each list, ranks against a plain loop, bad rows, the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from contrastive_core.base.errors import CannotScore
from contrastive_core.cli.main import main
from contrastive_core.samples import tower_pairs
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, GIVEN_NEGATIVES, LISTS, MISMATCHED
from contrastive_core.samples.sample_table import SampleTable
from contrastive_core.samples.tower_pairs import find_tower_pairs, pair_table
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import NEGATIVE_OF, Towers, joined, towers_of

NAMES = ("image", "caption")
N, PER = 150, 2


def vectors(noise: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images (N), captions (2 each) in clusters, and which captions were swapped."""
    rng = np.random.default_rng(0)
    content = rng.normal(size=(12, 16))[rng.integers(12, size=N)] + 0.7 * rng.normal(size=(N, 16))
    images = content + noise * rng.normal(size=(N, 16)) + 1
    captions = np.repeat(content, PER, 0) + noise * rng.normal(size=(N * PER, 16)) - 1
    swapped = rng.choice(N * PER, 15, replace=False)
    captions[swapped] = captions[np.roll(swapped, 1)]
    return images.astype(np.float32), captions.astype(np.float32), swapped


def towers(images: np.ndarray, captions: np.ndarray, image: list[int], reverse: bool = False) -> Towers:
    sides = [(EmbeddingSet(images), list(range(len(images)))), (EmbeddingSet(captions), image)]
    (a, group_a), (b, group_b) = sides[::-1] if reverse else sides
    both = towers_of(joined(a, b, NAMES[::-1] if reverse else NAMES, group_a, group_b))
    assert both is not None
    return both


OWN = np.repeat(np.arange(N), PER).tolist()


def test_swapped_captions_come_first_and_before_the_cosine_alone(monkeypatch) -> None:
    monkeypatch.setattr(tower_pairs, "BLOCK", 5000)  # several blocks
    images, captions, swapped = vectors()
    found = find_tower_pairs(towers(images, captions, OWN))
    truth = np.isin(np.arange(N * PER), swapped)
    precision = average_precision_score(truth, found.mismatch)
    assert precision > 0.75
    assert precision > 0.1 + average_precision_score(truth, -found.similarity)
    assert np.argmax(found.mismatch) in swapped
    assert found.query_tower == 1
    turned = find_tower_pairs(towers(images, captions, OWN, reverse=True))
    assert turned.query_tower == 0
    np.testing.assert_allclose(turned.mismatch, found.mismatch, atol=1e-4)


def test_ranks_are_those_of_a_plain_loop() -> None:
    images, captions, _ = vectors()
    found = find_tower_pairs(towers(images, captions, OWN))
    unit_i, unit_c = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, captions))
    s = unit_c @ unit_i.T
    for j in range(0, N * PER, 7):
        i = OWN[j]
        assert found.similarity[j] == pytest.approx(s[j, i], abs=1e-5)
        assert found.rank[j] == 1 + sum(s[j, k] > s[j, i] for k in range(N) if k != i)
        assert found.rank_back[j] == 1 + sum(s[k, i] > s[j, i] for k in range(N * PER) if OWN[k] != i)
        assert found.better[j] == max((k for k in range(N) if k != i), key=lambda k: s[j, k])


def test_a_row_that_fits_better_is_never_a_right_answer() -> None:
    images, captions, _ = vectors()
    captions = captions[::PER].copy()
    captions[1] = captions[0]
    images[1] = -captions[0]  # its own rank is low; image 0 is right for the equal caption, and fits
    images[0] = captions[0]
    found = find_tower_pairs(towers(images, captions, list(range(N))))
    assert found.query_tower == 1
    assert found.rank[1] > 1
    assert found.better[1] not in (0, 1)
    assert ((found.similarity - found.better_similarity < 1e-6) == (found.rank > 1)).all()


def test_rows_without_a_direction_or_partner_are_counted() -> None:
    images, captions, _ = vectors()
    images[3], captions[10, 0] = 0, np.nan
    own = [*OWN[:-1], -1]
    found = find_tower_pairs(towers(images, captions, own))
    assert found.left_out == {"not_finite": 1, "zero": 1, "unpaired": 3, "negatives": 0}
    assert len(found.query) == N * PER - 4
    assert np.isfinite(found.mismatch).all()


def test_equal_rows_have_no_suspects_and_too_few_groups_a_sentence() -> None:
    same = np.ones((6, 4), np.float32)
    assert not find_tower_pairs(towers(same, same, list(range(6)))).mismatch.any()
    with pytest.raises(CannotScore, match="3 groups have usable rows in both towers; at least 4"):
        find_tower_pairs(towers(same[:3], same[:3], [0, 1, 2]))


def table_of(rows: EmbeddingSet) -> SampleTable:
    both = towers_of(rows)
    assert both is not None
    found = find_tower_pairs(both)
    names = (both.names[found.query_tower], both.names[1 - found.query_tower])
    return pair_table(both.rows, vars(found), {"names": names, "candidates": found.candidates})


def test_each_list_begins_with_what_was_planted_and_names_the_towers() -> None:
    rng, n = np.random.default_rng(0), 40
    x = rng.normal(size=(n, 8))
    a, b = (x + 0.2 * rng.normal(size=(n, 8)) for _ in range(2))
    b[[3, 7]] = b[[7, 3]]  # swapped
    a[20], b[20] = a[21] + 0.01, b[21] + 0.01  # the same said twice
    texts = {"text": np.array([f"says {i}" for i in range(n)])}
    sets = EmbeddingSet(a.astype(np.float32)), EmbeddingSet(b.astype(np.float32), columns=texts)
    rows = joined(*sets, ("query", "document"))
    table = table_of(rows)
    assert table.towers == ("document", "query")  # the algorithm's queries are the documents here
    mismatched, alike = (LISTS[name].order(table) for name in (MISMATCHED, FALSE_NEGATIVES))
    assert sorted(table.texts[str(table.columns["id"][row])] for row in mismatched[:2]) == ["says 3", "says 7"]
    assert (table.extra["margin"][mismatched[:2]] < 0).all()
    line = LISTS[MISMATCHED].values(table, row := int(mismatched[0]))  # type: ignore[misc]
    assert (line["document"], line["query"]) == (table.columns["id"][row], table.extra["partner"][row])
    assert line["document, text"] in ("says 3", "says 7")
    assert line["margin"] == pytest.approx(line["own cosine"] - line["other cosine"], abs=2e-4)
    assert "other document" not in line
    assert "From document to its partner: cosine " in LISTS[MISMATCHED].reason(table, row)
    ends = [(str(i), str(j)) for i, j in zip(table.columns["id"][alike], table.extra["twin"][alike], strict=True)]
    assert {table.texts[name] for name in ends[0]} == {"says 20", "says 21"}
    assert len({frozenset(pair) for pair in ends}) == len(ends)  # each combination once
    twins = LISTS[FALSE_NEGATIVES].values(table, int(alike[0]))  # type: ignore[misc]
    assert twins["other document, text"] in ("says 20", "says 21")
    unit, at = rows.features / rows.lengths[:, None], {name: i for i, name in enumerate(rows.ids)}
    both = ([at[str(i)] for i in ids[alike]] for ids in (table.columns["id"], table.extra["twin_partner"]))
    cosine = np.einsum("nd,nd->n", *(unit[end] for end in both))
    np.testing.assert_allclose(table.extra["twin_cosine"][alike], cosine, atol=1e-5)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"features": np.eye(5, dtype=np.float32)}, "holds one tower; pairs needs a run of clip, two files"),
        (
            {"a": np.eye(5, dtype=np.float32), "b": np.eye(4, 5, dtype=np.float32)}
            | {"a_pair": np.arange(5), "b_pair": np.arange(10, 14)},
            "a and b have no group in common",
        ),
    ],
)
def test_bad_files_get_one_sentence(
    arrays: dict[str, np.ndarray], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    assert main(["pairs", str(tmp_path / "x.npz")]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_given_negative_that_resembles_an_answer_comes_first() -> None:
    rng, n = np.random.default_rng(1), 40
    x, far = rng.normal(size=(n, 8)), rng.normal(size=(n, 8))
    queries, answers = (x + 0.2 * rng.normal(size=(n, 8)) for _ in range(2))
    far[5] = answers[5] + 0.1 * rng.normal(size=8)  # the query's second answer
    pairs, none = np.arange(n).astype(str), np.full(n, "")
    documents = EmbeddingSet(np.concatenate([answers, far]).astype(np.float32))
    documents.columns[NEGATIVE_OF] = np.concatenate([none, pairs])
    both = joined(EmbeddingSet(queries.astype(np.float32)), documents, ("query", "document"), pairs, [*pairs, *none])
    rows, table = both, table_of(both)
    one = LISTS[GIVEN_NEGATIVES]
    order = one.order(table)
    assert len(order) == n  # each negative once
    row, ids = int(order[0]), list(rows.ids)
    assert table.extra["given"][row] == ids[n + n + 5]
    assert table.extra[one.other][row] == ids[n + n + 5]
    shown = [*one.front(table, row), *one.beside(table, row)]
    assert [each.id for each in shown] == [ids[5], ids[n + n + 5], ids[n + 5]]
    unit = rows.features / rows.lengths[:, None]
    query, answer, negative = (unit[at] for at in (5, n + 5, n + n + 5))
    assert table.extra["given_cosine"][row] == pytest.approx(float(query @ negative), abs=1e-5)
    line = one.values(table, row)  # type: ignore[misc]
    assert line["given negative"] == ids[n + n + 5]
    assert {line["query"], line["document"]} == {ids[5], ids[n + 5]}
    means = unit[:n].mean(0), unit[n:].mean(0)
    parts = (query - means[0], answer - means[1], negative - means[1])
    q, a, far_one = (part / np.linalg.norm(part) for part in parts)
    assert table.score("given_negatives")[row] == pytest.approx(float(far_one @ (q + a)) / 2, abs=1e-5)
    found = vars(find_tower_pairs(towers_of(rows)))  # type: ignore[arg-type]
    old = {name: values for name, values in found.items() if not name.startswith("given")}  # a result of version 0.2
    about = {"names": table.towers, "candidates": found["candidates"]}
    np.testing.assert_array_equal(pair_table(rows, old, about).extra["given"], table.extra["given"])


def test_the_command_prints_and_writes_the_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, captions, swapped = vectors()
    file, out = tmp_path / "both.npz", tmp_path / "pairs.csv"
    texts = np.array([f"text {j}" for j in range(N * PER)])
    np.savez(file, image=images, caption=captions, image_pair=np.arange(N), caption_pair=OWN, caption_text=texts)
    assert main(["pairs", str(file), "--out", str(out), "--top", "3"]) == 0
    text = capsys.readouterr().out
    assert f"{N * PER} pairs of caption and image" in text
    assert "Mismatched pairs, by mismatch score" in text
    assert "its own image, cosine " in text
    assert "False negatives, by similarity of the two pairs" in text
    lines = out.read_text().splitlines()
    assert len(lines) == 1 + N * PER
    assert lines[0].startswith("query,text,mismatched,false_negatives,partner,own_cosine,own_rank,own_rank_back")
    assert int(lines[1].split(",")[1].removeprefix("text ")) in swapped
    assert main(["pairs", str(file), "--json", "--top", "2"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["mismatched"]) == len(record["false_negatives"]) == 2
    assert record["given_negatives"] == record["notes"] == []
    np.savez(file, image=images[:, :4], caption=np.random.default_rng(0).normal(size=(N, 4)))
    assert main(["pairs", str(file)]) == 0
    assert "Recall is at chance in both directions" in capsys.readouterr().out
