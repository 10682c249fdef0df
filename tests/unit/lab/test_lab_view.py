"""The Loss Lab's batches: loaded vectors, who is compared with whom, and why nothing can be."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.compare.embed import data_of, load_model
from contrastive_core.engine import catalog
from contrastive_core.lab import lab_view as records_view
from contrastive_core.lab import view as lab_view
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest, LabBatch, snapshots_of
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab.loss_setting import further_knobs_of, knobs_to_compute


def batch(found: EmbeddingSet, rows: int = 16, pictures: np.ndarray | None = None) -> LabBatch:
    """A batch as the page asks for it: by the key of loaded vectors."""
    key = loaded_vectors.save_vectors(found, "mine.npz", pictures)
    return load_batch(Run(Path(), {}), BatchRequest(f"file:{key}", rows // 2, 2, 0))


@pytest.mark.parametrize("key", ["../../etc/passwd", "0" * 16, ""])
def test_an_address_opens_nothing_but_loaded_vectors(key: str) -> None:
    with pytest.raises(ValueError, match=r"[oO]pen the(ir)? file again"):
        load_batch(Run(Path(), {}), BatchRequest(f"file:{key}", 8, 2, 0))


def test_pictures_that_came_along_stand_by_their_rows() -> None:
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    pictures = np.arange(20, dtype=np.uint8)[:, None, None, None].repeat(3, 1)
    made = batch(EmbeddingSet(x, labels=np.arange(20) % 4), 8, pictures)
    assert made.thumbs is not None
    assert made.thumbs[:, 0, 0, 0].tolist() == [int(i) for i in made.ids]


def test_rows_of_texts_are_called_rows_and_say_what_they_say() -> None:
    x = np.random.default_rng(5).standard_normal((12, 4)).astype(np.float32)
    columns = {"text": np.array([f"question {i}?" for i in range(12)])}
    made = batch(EmbeddingSet(x, labels=np.arange(12) % 3, columns=columns))
    view = lab_view.compute_view(made, "classes", "sup_con", {})
    assert view.texts == view.column_texts == [f"question {i}?" for i in made.ids]
    assert not any("image" in name for name in [*view.names, *view.column_names, view.note, view.reason])
    two = batch(EmbeddingSet(x, ids=tuple(f"{i // 2}" for i in range(12)), columns=columns))
    view = lab_view.compute_view(two, "queue", "info_nce", {})
    assert view.names[0] == "row 1, view a"
    assert [int(text.split()[1][:-1]) // 2 for text in view.texts] == [int(two.ids[i]) for i in (0, 4)]


def test_rows_of_one_id_are_views_of_one_image() -> None:
    rng = np.random.default_rng(1)
    ids = tuple(f"image {k % 5}" for k in range(15))
    made = batch(EmbeddingSet(rng.standard_normal((15, 4)).astype(np.float32), ids=ids))
    assert made.rows.shape == (5, 3, 4)
    view = lab_view.compute_view(made, "views", "nt_xent", {})
    assert view.scores.shape == (15, 15)
    assert (view.mask == 1).sum() == 15 * 2


def test_labeled_rows_are_compared_by_class_and_unlabeled_ones_say_why_not() -> None:
    x = np.random.default_rng(2).standard_normal((12, 4)).astype(np.float32)
    labels = np.arange(12) % 3
    made = batch(EmbeddingSet(x, labels=labels))
    view = lab_view.compute_view(made, "classes", "triplet", {"margin": 0.2})
    assert (view.mask == 1).sum() == 12 * 3
    assert view.names[0] == "row 1 (class 0)"
    assert "one view of each sample" in lab_view.compute_view(made, "views", "nt_xent", {}).reason
    bare = batch(EmbeddingSet(x))
    assert "no labels" in lab_view.compute_view(bare, "classes", "nt_xent", {}).reason
    with pytest.raises(ValueError, match="two views"):
        lab_view.compute_view(made, "queue", "info_nce", {})


@pytest.mark.parametrize("loss", ["nt_xent", "triplet"])
def test_the_anchor_to_begin_with_has_a_confusable_negative(loss: str) -> None:
    """Row 4's other view is across the circle, and row 2 beside it."""
    degrees = np.radians([0, 5, 170, 175, 172, 350])
    x = np.stack([np.cos(degrees), np.sin(degrees)], 1).astype(np.float32)
    made = batch(EmbeddingSet(x, ids=tuple(f"image {k // 2}" for k in range(6))))
    view = lab_view.compute_view(made, "views", loss, {})
    anchor = records_view.confusable_anchor(view)
    near = view.scores[anchor] * (1 if loss == "nt_xent" else -1)
    assert near[view.mask[anchor] == 2].max() > near[view.mask[anchor] == 1].max()
    alone = EmbeddingSet(x[:2], ids=("a", "a"))
    assert records_view.confusable_anchor(lab_view.compute_view(batch(alone), "views", loss, {})) == 0


@pytest.mark.parametrize("pairing", ["queue", "bank"])
def test_queries_meet_one_key_each_and_many_negatives(pairing: str) -> None:
    rng = np.random.default_rng(3)
    ids = tuple(str(k // 2) for k in range(32))
    made = batch(EmbeddingSet(rng.standard_normal((32, 4)).astype(np.float32), ids=ids), 32)
    view = lab_view.compute_view(made, pairing, "info_nce", {"temperature": 0.2})
    assert view.scores.shape == (4, 16)
    assert ((view.mask == 1).sum(1) == 1).all()
    assert ((view.mask == 2).sum(1) == {"queue": 12, "bank": 15}[pairing]).all()
    mates = [view.column_thumbs[j] // 2 for j in (view.mask == 1).argmax(1)]
    assert mates == [t // 2 for t in view.row_thumbs]  # the positive is another view of the image


# --- what MoCo and Inst Disc remember ------------------------------------------------------------


def a_run(folder: Path, name: str, **changed: torch.Tensor) -> Run:
    """A run with a shipped run's settings and weights of its whole method, memory included."""
    shipped = runs.load(name)
    method = load_model(shipped, data_of(shipped, "train"), "cpu")
    shutil.copy(shipped.path / "run.json", folder)
    made = Run(folder, shipped.manifest)
    json_files.write_json(folder / "run.json", shipped.manifest)
    checkpoints.save_weights(made, {**method.state_dict(), **changed})
    return made


@pytest.mark.parametrize("source", ["z", "pixels"])
def test_without_a_queue_training_images_stand_in_it(source: str) -> None:
    made = load_batch(runs.load("moco_v1-digits"), BatchRequest(source, 8, 2, 0, "queue"))
    assert made.memory is not None
    why = {"z": "hold no queue", "pixels": "these vectors are not z"}[source]
    assert why in made.note
    assert "24 of 512 keys" in made.note
    view = lab_view.compute_view(made, "queue", "info_nce", {"temperature": 0.1})
    assert view.scores.shape == (8, 32)
    assert ((view.mask == 1).sum(1) == 1).all()
    assert ((view.mask == 2).sum(1) == 24).all()
    assert view.column_thumbs == [2 * i + 1 for i in range(8)] + list(range(16, 40))
    assert made.thumbs is not None
    assert len(made.thumbs) == 40
    assert view.column_names[-1].startswith("key ")


def test_the_queue_of_a_run_is_its_own_newest_first(tmp_path: Path) -> None:
    rows = torch.nn.functional.normalize(torch.randn(512, 64, generator=torch.Generator()))
    own = {
        "queue.rows": rows,
        "queue.pointer": torch.tensor(3),
        "queue.enqueued": torch.tensor(20),
        "key_head.layers.0.bias": torch.full((64,), 7.0),
    }
    run = a_run(tmp_path, "moco_v1-digits", **own)
    made = load_batch(run, BatchRequest("z", 8, 2, 0, "queue"))
    assert made.memory is not None
    assert "own queue after training: all 20 keys" in made.note
    order = [2, 1, 0, *range(511, 494, -1)]  # backwards from the pointer, what was enqueued only
    assert np.array_equal(made.memory.rows, rows[order].numpy())
    view = lab_view.compute_view(made, "queue", "info_nce", {})
    assert view.column_names[8:] == [f"queue key {age}" for age in range(1, 21)]
    assert view.column_thumbs[8:] == [-1] * 20
    bare = load_batch(runs.load("moco_v1-digits"), BatchRequest("z", 8, 2, 0, "queue"))
    assert np.array_equal(made.rows[:, 0], bare.rows[:, 0])  # queries are the encoder's
    assert np.abs(made.rows[:, 1] - bare.rows[:, 1]).min() > 3  # keys are the key encoder's


def test_the_bank_of_a_run_is_its_own_and_else_made_of_its_images(tmp_path: Path) -> None:
    n = len(data_of(runs.load("inst_disc-digits"), "train"))
    bank = torch.nn.functional.normalize(torch.randn(n, 128, generator=torch.Generator()))
    kept = {"bank.rows": bank, "bank.log_z": torch.tensor(5.0)}
    run = a_run(tmp_path, "inst_disc-digits", **kept)
    made = load_batch(run, BatchRequest("z", 8, 2, 0, "bank"))
    assert made.memory is not None
    assert made.memory.query_slots is not None
    assert f"32 of {n:,} slots" in made.note
    slots = [int(name.split()[1]) for name in made.memory.names]
    assert np.array_equal(made.memory.rows, bank[slots].numpy())
    known = list(data_of(run, "train").ids)
    queries = [known.index(i) for i in made.ids]
    assert [slots[at] for at in made.memory.query_slots] == queries
    view = lab_view.compute_view(made, "bank", "nce", {"temperature": 0.1})
    assert view.extras["log_z"] == 5.0
    assert [int(j) for j in (view.mask == 1).argmax(1)] == made.memory.query_slots.tolist()
    filled = load_batch(runs.load("inst_disc-digits"), BatchRequest("z", 8, 2, 0, "bank"))
    assert filled.memory is not None
    assert "hold no bank" in filled.note
    assert filled.memory.names == made.memory.names
    z = lab_view.compute_view(filled, "bank", "info_nce", {"temperature": 0.1}).scores
    assert z[np.arange(8), filled.memory.query_slots].mean() > z.mean() + 0.3  # own slots are own images


def test_snapshots_show_the_same_images_after_different_epochs() -> None:
    run = runs.load("simclr-shapes")
    sources = list(snapshots_of(run))
    assert sources[0] == f"snapshot:{run.snapshots()[0]}"
    assert sources[-1] == f"snapshot:{run.snapshots()[-1]}"
    first, last = (load_batch(run, BatchRequest(s, 16, 2, 0)) for s in (sources[0], sources[-1]))
    assert first.ids == last.ids
    assert first.rows.shape == (32, 1, first.rows.shape[2])
    assert first.ids[0].startswith("train/")
    pulls = []
    for made in (first, last):
        view = lab_view.compute_view(made, "classes", "sup_con", {"temperature": 0.2})
        pulls.append(np.abs(view.grad[view.mask == 1]).sum())
    assert pulls[1] < pulls[0]
    assert "one view of each sample" in lab_view.compute_view(first, "views", "nt_xent", {}).reason
    with pytest.raises(ValueError, match="no snapshot of epoch 99"):
        load_batch(run, BatchRequest("snapshot:99", 16, 2, 0))


def test_zero_vectors_are_told_and_give_no_nan() -> None:
    x = np.random.default_rng(4).standard_normal((8, 1, 4)).astype(np.float32)
    x[[1, 5]] = 0
    made = LabBatch(x, np.arange(8) // 4, None, ("a", "b"), [str(i) for i in range(8)])
    assert made.note.startswith("2 of these vectors are zero")
    for loss in ("sup_con", "nt_xent", "triplet", "pair_contrastive"):
        view = lab_view.compute_view(made, "classes", loss, {})
        assert np.isfinite(view.value), loss
        assert all(np.isfinite(a).all() for a in (view.scores, view.grad, view.weight)), loss


def test_a_drag_asks_the_library_for_nothing_where_the_browser_has_a_kernel() -> None:
    losses = catalog.read()["losses"]
    for name, other in (
        ("nt_xent", {"temperature": 0.03}),
        ("triplet", {"margin": 1.7}),
        ("nce", {"temperature": 0.3}),
    ):
        first = {key: knob["default"] for key, knob in losses[name]["knobs"].items()}
        same = knobs_to_compute(losses[name], first | other) == knobs_to_compute(losses[name], first)
        assert same == bool(losses[name]["kernel"]), name


def test_the_width_of_weights_is_dragged_only_where_positives_are_weighed() -> None:
    losses = catalog.read()["losses"]
    for knobs, shown in (({}, []), ({"weighting": "none"}, []), ({"weighting": "von_mises"}, ["sigma"])):
        assert [knob.name for knob in further_knobs_of(losses["decoupled"], knobs)] == shown


# --- what a temperature trades ---


def test_a_trade_is_the_softmax_over_negatives_written_out() -> None:
    scores = np.array([[9.0, 0.5, 0.2, -0.1]])
    negative = np.array([[False, True, True, True]])  # what is positive does not count
    same = np.array([[True, True, False, False]])
    (found,) = lab_view.trade(scores, negative, same, (0.3,))
    e = [math.exp(s / 0.3) for s in (0.5, 0.2, -0.1)]
    p = [x / sum(e) for x in e]
    assert found.own_class == pytest.approx(p[0])
    assert found.hardest == pytest.approx(p[0])
    assert found.spread == pytest.approx(math.exp(-sum(x * math.log(x) for x in p)) / 3)


def test_a_low_temperature_pushes_the_own_class_and_a_high_one_all_alike() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 5
    x = np.eye(5, 16)[labels] + 0.5 * rng.normal(size=(60, 16))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    negative, same = ~np.eye(60, dtype=bool), labels[:, None] == labels
    found = lab_view.trade(x @ x.T, negative, same)
    spread = [f.spread for f in found]
    own = [f.own_class for f in found]
    assert spread == sorted(spread)
    assert own == sorted(own, reverse=True)
    assert own[-1] < 0.3 < own[0]
    assert [f.temperature for f in found] == list(lab_view.TEMPERATURES)
    # at any τ: no overflow, and shares that are shares
    extreme = lab_view.trade(1e4 * (x @ x.T), negative, same, (1e-4, 1e4))
    assert all(0 < f.spread <= 1 and 0 <= f.own_class <= 1 for f in extreme)


def test_a_trade_without_labels_or_negatives() -> None:
    scores, none = np.zeros((2, 3)), np.zeros((2, 3), bool)
    assert lab_view.trade(scores, ~none, None)[0].own_class is None
    with pytest.raises(ValueError, match="no anchor"):
        lab_view.trade(scores, none, None)
