"""Two towers in the Loss Lab: which rows are shown, both directions, and files that cannot be used as towers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from cases import cases

from contrastive_core import losses, pairs
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest, LabBatch, TowerBatch, direction_names
from contrastive_core.lab.view import compute_view
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined

RNG = np.random.default_rng(0)


def tower(n: int, name: str, d: int = 6) -> EmbeddingSet:
    texts = np.array([f"{name} text {i}" for i in range(n)])
    return EmbeddingSet(RNG.standard_normal((n, d)).astype(np.float32), columns={"text": texts})


def loaded(found: EmbeddingSet, most: int = 64, pictures: np.ndarray | None = None, seed: int = 0) -> TowerBatch:
    key = loaded_vectors.save_vectors(found, "mine.npz", pictures)
    made = load_batch(Run(Path(), {}), BatchRequest(f"file:{key}", most, 1, seed))
    assert isinstance(made, TowerBatch)
    return made


def captioned(images: int = 5, each: int = 3) -> EmbeddingSet:
    groups = np.repeat(np.arange(images), each)
    return joined(tower(images, "i"), tower(images * each, "c"), ("image", "caption"), np.arange(images), groups)


@cases("direction", ["a_to_b", "b_to_a"])
@cases("loss", ["info_nce", "siglip", "hard_negative", "decoupled", "triplet"])
def test_a_view_is_the_library_s_anatomy_in_one_direction(loss: str, direction: str) -> None:
    made = loaded(captioned())
    view = compute_view(made, direction, loss, {})
    anchors, candidates = made.sides(direction)
    shape = (len(anchors.rows), len(candidates.rows))
    assert view.scores.shape == view.mask.shape == view.grad.shape == view.weight.shape == shape
    assert np.array_equal(view.mask == 1, anchors.groups[:, None] == candidates.groups)
    assert not (view.mask % 3 == 0).any()  # all are compared, none is itself
    a, b = (torch.from_numpy(side.rows) for side in (made.a, made.b))
    both = [torch.from_numpy(side.groups) for side in (made.a, made.b)]
    wanted = losses.create(loss)(pairs.from_towers(a, b, *both, direction=direction))
    assert view.value == pytest.approx(float(wanted.value), rel=1e-6)
    assert view.per_anchor == pytest.approx(wanted.per_anchor.numpy(), rel=1e-6)
    assert list(view.towers) == [anchors.title, candidates.title]
    assert view.names[0].startswith(f"{anchors.title} ")


def test_names_tell_tower_and_id_and_long_texts_are_cut() -> None:
    text = "first line\nsecond <b> " + "x" * 500
    long = EmbeddingSet(tower(4, "a").features, columns={"text": np.array([text] * 4)})
    made = loaded(joined(long, EmbeddingSet(long.features), ("question", "answer")))
    assert sorted(made.a.names) == [f"question {i}" for i in range(4)]
    assert sorted(made.b.names) == [f"answer {i}" for i in range(4)]
    assert all(said.startswith("first line second <b> x") and len(said) == 200 for said in made.a.texts)
    view = compute_view(made, "b_to_a", "info_nce", {})
    assert view.texts == ()
    assert view.column_texts == made.a.texts
    assert direction_names(("question", "answer")) == {"a_to_b": "question → answer", "b_to_a": "answer → question"}


@cases("most", [1, 4, 7, 64])
def test_as_many_whole_groups_as_fit_are_shown_and_said(most: int) -> None:
    made = loaded(captioned(10, 3), most)
    n, m = len(made.a.rows), len(made.b.rows)
    assert (n, m) == {1: (1, 1), 4: (2, 4), 7: (3, 7), 64: (10, 30)}[most]
    assert set(made.a.groups) == set(made.b.groups)
    assert made.part == (
        ""
        if most == 64
        else f"Shown: {n} of 10 rows of image and {m} of 30 rows of caption. Change the batch number for others."
    )
    if most == 4:
        assert loaded(captioned(10, 3), most, seed=1).a.names != made.a.names


def test_rows_without_a_partner_are_negatives_and_counted() -> None:
    both = joined(tower(4, "q"), tower(3, "a"), ("q", "a"), ["x", "y", "", "z"], ["y", "x", "w"])
    made = loaded(both)
    assert (len(made.a.rows), len(made.b.rows)) == (4, 3)
    assert made.note == "Rows without a partner: 3. They are negatives of every row of the other tower."
    assert np.array_equal(compute_view(made, "a_to_b", "info_nce", {}).mask.sum(1), [5, 5, 6, 6])
    few = loaded(joined(tower(20, "q"), tower(80, "a"), ("q", "a"), range(20), range(80)), 16)
    assert (len(few.a.rows), len(few.b.rows)) == (8, 16)  # of 60 in 80 answers without a question at most half
    assert few.part.startswith("Shown: 8 of 20 rows of q and 16 of 80 rows of a.")


@cases("most", [9, 64])
def test_given_negatives_come_with_their_query_as_multiple_negatives_ranking_has_them(most: int) -> None:
    q, d, n = 12, 6, 2
    anchors, positives, negatives = (RNG.standard_normal((k, d)).astype(np.float32) for k in (q, q, n * q))
    documents = EmbeddingSet(np.concatenate([positives, negatives]))
    documents.columns["negative_of"] = np.array([""] * q + [str(i // n) for i in range(n * q)])
    groups = [*map(str, range(q)), *[""] * n * q]
    made = loaded(joined(EmbeddingSet(anchors), documents, ("query", "document"), [*map(str, range(q))], groups), most)
    at = [int(name.split()[1]) for name in made.a.names]
    assert len(at) == {9: 3, 64: q}[most]
    view = compute_view(made, "a_to_b", "info_nce", {"temperature": 0.05})
    rows = torch.from_numpy(np.concatenate([positives[at], *(negatives[n * i : n * (i + 1)] for i in at)]))
    cosines = torch.nn.functional.normalize(torch.from_numpy(anchors[at])) @ torch.nn.functional.normalize(rows).T
    wanted = torch.nn.functional.cross_entropy(20 * cosines, torch.arange(len(at)))
    assert view.value == pytest.approx(float(wanted), rel=1e-5)
    assert view.n_valid == len(at)
    assert made.note.rpartition("Given negatives: ")[2].startswith(f"{n * len(at)}. ")
    assert "without a partner" not in made.note
    back = compute_view(made, "b_to_a", "info_nce", {})
    for shown, names, others in ((view, view.names, view.column_names), (back, back.column_names, back.names)):
        pairs = [divmod(k, len(shown.column_names))[:: 1 if shown is view else -1] for k in shown.given]
        found = {(int(names[i].split()[1]), int(others[j].split()[1])) for i, j in pairs}
        assert found == {(i, q + n * i + k) for i in at for k in range(n)}


def test_a_document_may_be_a_negative_of_several_queries_and_the_answer_to_another() -> None:
    documents = tower(3, "d")
    documents.columns["negative_of"] = np.array(["1", "0", "0 1 7"])
    made = loaded(joined(tower(2, "q"), documents, ("query", "document"), ["0", "1"], ["0", "1", ""]))
    mask = compute_view(made, "a_to_b", "info_nce", {}).mask
    assert sorted(map(tuple, np.sort(mask).tolist())) == [(1, 2, 2)] * 2


def test_rows_of_a_class_stand_together() -> None:
    both = joined(tower(8, "q"), tower(8, "a"), ("q", "a"))
    labels = np.tile(np.arange(8) % 2, 2)
    made = loaded(EmbeddingSet(both.features, labels, both.ids, columns=both.columns))
    numbers = [int(name.split()[1]) for name in made.a.names]
    assert [i % 2 for i in numbers] == [0] * 4 + [1] * 4
    assert [int(name.split()[1]) for name in made.b.names] == numbers


def test_only_rows_with_a_picture_have_a_thumbnail() -> None:
    both = joined(tower(3, "i"), tower(3, "c"), ("image", "caption"))
    pictures = np.full((6, 3, 2, 2), 128, np.uint8)
    pictures[:3, 0, 0, 0] = [1, 2, 3]
    made = loaded(both, pictures=pictures)
    assert made.thumbs is not None
    ids = [int(name.split()[1]) for name in made.a.names]
    assert made.thumbs[made.a.thumbs, 0, 0, 0].tolist() == [i + 1 for i in ids]
    assert made.b.thumbs == [-1] * 3
    assert all(made.a.texts)  # words and a picture
    assert loaded(both, pictures=np.full_like(pictures, 128)).thumbs is None


def test_towers_that_cannot_be_compared_say_why() -> None:
    both = joined(tower(3, "q"), tower(3, "a"), ("q", "a"))
    apart = both.columns | {"pair": np.array(["1", "2", "3", "4", "5", "6"])}
    with pytest.raises(ValueError, match="No usable row of q has a partner in a"):
        loaded(EmbeddingSet(both.features, columns=apart))
    with pytest.raises(ValueError, match="one of a_to_b, b_to_a; got 'views'"):
        compute_view(loaded(both), "views", "info_nce", {})
    with pytest.raises(ValueError, match="compares the dimensions of two views"):
        compute_view(loaded(both), "a_to_b", "vicreg", {})
    one = joined(tower(1, "q"), tower(1, "a"), ("q", "a"))
    assert "all rows belong together" in compute_view(loaded(one), "a_to_b", "decoupled", {}).reason
    assert compute_view(loaded(one), "a_to_b", "info_nce", {}).value == 0


def test_three_towers_are_one_set_and_the_batch_says_so() -> None:
    names = np.array(["image", "caption", "audio"] * 3)
    found = EmbeddingSet(RNG.standard_normal((9, 4)).astype(np.float32), columns={"tower": names, "pair": names})
    key = loaded_vectors.save_vectors(found, "mine.npz")
    made = load_batch(Run(Path(), {}), BatchRequest(f"file:{key}", 8, 1, 0))
    assert isinstance(made, LabBatch)
    lacking = "Two towers need two names and a column pair."
    assert made.note.endswith(lacking)
    two = EmbeddingSet(found.features, columns={"tower": np.where(names == "audio", "image", names)})
    key = loaded_vectors.save_vectors(two, "mine.npz")
    assert load_batch(Run(Path(), {}), BatchRequest(f"file:{key}", 8, 1, 0)).note.endswith(lacking)


def test_a_clip_run_gives_its_images_and_captions(clip_run: Run) -> None:
    made = load_batch(clip_run, BatchRequest("towers", 8, 1, 0))
    assert isinstance(made, TowerBatch)
    assert (made.a.title, made.b.title) == ("image", "caption")
    assert len(made.b.rows) == 8
    assert made.thumbs is not None
    assert made.a.thumbs == list(range(len(made.a.rows)))
    assert made.b.thumbs == [-1] * 8  # a caption is shown by its words
    assert not any(made.a.texts)
    color = {"red": 0, "green": 1, "blue": 2}
    for group, text in zip(made.b.groups, made.b.texts, strict=True):
        word = next(name for name in color if name in text)
        picture = made.thumbs[made.a.thumbs[made.a.groups.tolist().index(group)]]
        assert picture.mean((1, 2)).argmax() == color[word]
    view = compute_view(made, "b_to_a", "siglip", {})
    assert list(view.column_texts) == []
    assert view.texts == made.b.texts
