"""Mismatched pairs are found where they were planted, false negatives too; ranks against a plain loop; bad rows."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from contrastive_core.base.errors import CannotScore
from contrastive_core.cli.main import main
from contrastive_core.samples import tower_pairs
from contrastive_core.samples.tower_pairs import find_tower_pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import Towers, joined, towers_of

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
    assert found.mismatched()[0] in swapped
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


def test_two_images_of_one_content_are_false_negatives_once() -> None:
    images, captions, _ = vectors(0.3)
    images[90], captions[[180, 181]] = images[20] + 0.01, captions[[40, 41]] + 0.01
    found = find_tower_pairs(towers(images, captions, OWN))
    two = found.false_negatives()
    assert {frozenset(OWN[i] for i in pair) for pair in two[:2].tolist()} == {frozenset((20, 90))}
    assert len(np.unique(np.sort(two, 1), axis=0)) == len(two)


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


def test_the_command_prints_and_writes_both_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, captions, swapped = vectors()
    file, out = tmp_path / "both.npz", tmp_path / "pairs.csv"
    texts = np.array([f"text {j}" for j in range(N * PER)])
    np.savez(file, image=images, caption=captions, image_pair=np.arange(N), caption_pair=OWN, caption_text=texts)
    assert main(["pairs", str(file), "--out", str(out), "--top", "3"]) == 0
    text = capsys.readouterr().out
    assert f"{N * PER} pairs of caption and image" in text
    assert "Mismatched pairs" in text
    assert "False negatives" in text
    lines = out.read_text().splitlines()
    assert len(lines) == 1 + N * PER
    assert lines[0].startswith("query,partner,text,mismatch,similarity,rank,rank_back")
    assert int(lines[1].split(",")[2].removeprefix("text ")) in swapped
    assert main(["pairs", str(file), "--json", "--top", "2"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["mismatched"]) == len(record["false_negatives"]) == 2
    assert record["notes"] == []
    np.savez(file, image=images[:, :4], caption=np.random.default_rng(0).normal(size=(N, 4)))
    assert main(["pairs", str(file)]) == 0
    assert "Recall is at chance in both directions" in capsys.readouterr().out


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
