"""Recordings of two towers: the loss is the library's, partners are found again, bad rows cost one step and a line."""

import json

import numpy as np
import pytest
import torch
from cases import cases
from torch import nn
from torch.nn import functional

from contrastive_core import losses, pairs, watch
from contrastive_core.base.errors import Damaged
from contrastive_core.compare.towers import modality_gap, retrieval
from contrastive_core.data import datasets
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest, TowerBatch
from contrastive_core.lab.view import compute_view
from contrastive_core.recording import steps
from contrastive_core.spaces import recorded_rows
from contrastive_core.spaces.recorded_rows import Recorded
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import Towers, towers_of

TOWERS = ("image", "text")
CAPTIONS = [0, 0, 1, 2, 2, 2, 3, 4, 5, 9]  # image of each; image 9 is not there


def rows(n: int, d: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def recorded(*views: torch.Tensor, loss: str | None = "info_nce", positives: str = "auto", knobs=None, **given):
    knobs = {"temperature": 0.1} | (knobs or {}) if loss else {}
    with watch("towers", loss, every=1, strict=True, towers=TOWERS, positives=positives, **knobs) as w:
        w.step(*views, **given)
    return w.run, w.run.metrics()[0]


def towers_at(run, step: int = 1) -> Towers:
    found = towers_of(Recorded(run, "step", step).rows())
    assert found is not None
    return found


@cases("name", ["info_nce", "siglip", "decoupled", "hard_negative", "triplet"])
@cases("captions", [False, True])
def test_the_loss_is_the_library_s(name: str, captions: bool) -> None:
    a, b = rows(6), rows(10 if captions else 6, seed=1)
    groups = (torch.arange(6), torch.tensor(CAPTIONS)) if captions else (None, None)
    loss = losses.create(name)
    with watch("loss", name, every=1, strict=True, towers=TOWERS) as w:
        w.step(a, b, ids=None if not captions else (list(range(6)), CAPTIONS))
    want = loss(pairs.from_towers(a.double(), b.double(), *groups))
    line = w.run.metrics()[0]
    assert line["loss"] == pytest.approx(float(want.value), rel=1e-6)
    kept = recorded_rows.read(w.run, 1).loss
    assert np.nansum(kept) == pytest.approx(float(want.per_anchor.sum()), rel=1e-4)


def test_figures_are_the_scores_of_the_rows() -> None:
    a = rows(30)
    run, line = recorded(a, a + 0.8 * rows(30, seed=1), temperature=torch.tensor(0.25), bias=torch.tensor(-9.0))
    towers = towers_at(run)
    assert line["recall_1_forth"] == retrieval(towers).recall(1).value
    assert line["recall_1_back"] == retrieval(towers, reverse=True).recall(1).value
    assert line["modality_gap"] == pytest.approx(modality_gap(towers), abs=1e-6)
    assert 0 < line["recall_1_forth"] < 1
    assert (line["temperature"], line["bias"]) == (0.25, -9.0)


def test_several_captions_are_partners_of_their_image() -> None:
    run, line = recorded(rows(6), rows(10, seed=1), ids=(list("abcdef"), [("abcdef" + "x" * 4)[i] for i in CAPTIONS]))
    towers = towers_at(run)
    assert Space.of_name("towers").rows().columns["tower"].tolist() == ["image"] * 6 + ["text"] * 10
    assert towers.names == TOWERS
    assert towers.group_a.tolist() == [0, 1, 2, 3, 4, 5]
    assert towers.group_b.tolist() == [*CAPTIONS[:-1], -1]
    assert towers.without_partner == (0, 1)
    assert len(set(towers.rows.ids)) == 16
    assert line["n_valid"] == 15


def test_towers_of_different_size_pair_rows_of_one_label() -> None:
    run, _ = recorded(rows(4), rows(6, seed=1), labels=([0, 1, 2, -1], [0, 0, 1, 1, 2, -1]))
    towers = towers_at(run)
    assert towers.group_a.tolist() == [0, 1, 2, -1]
    assert towers.group_b.tolist() == [0, 0, 1, 1, 2, -1]
    assert towers.rows.labels.tolist() == [0, 1, 2, -1, 0, 0, 1, 1, 2, -1]


def test_a_sample_keeps_partners_together_and_a_share_of_the_negatives() -> None:
    with watch("sample", "info_nce", every=1, rows=12, strict=True, towers=TOWERS) as w:
        w.step(rows(16), rows(32, seed=1), ids=list(range(16)))
    towers = towers_at(w.run)
    assert len(towers.rows) == 12
    assert towers.without_partner == (0, 4)


def test_negatives_without_a_partner_count_in_the_recording_and_the_lab() -> None:
    queries, positives, negatives = rows(6), rows(6, seed=1), rows(12, seed=2)
    unit = functional.normalize(torch.cat([positives, negatives]))
    want = float(functional.cross_entropy(functional.normalize(queries) @ unit.T / 0.1, torch.arange(6)))
    run, line = recorded(queries, torch.cat([positives, negatives]), positives="keys", ids=list("abcdef"))
    assert line["loss"] == pytest.approx(want, abs=1e-5)
    batch = load_batch(run, BatchRequest("step:1", 64, 1, 0))
    view = compute_view(batch, "a_to_b", "info_nce", {"temperature": 0.1})
    assert view.value == pytest.approx(want, abs=1e-5)
    assert "without a partner: 12" in view.note
    few = load_batch(run, BatchRequest("step:1", 8, 1, 0))
    assert (len(few.a.rows), len(few.b.rows)) == (4, 8)


def test_large_steps_are_thinned_alike(monkeypatch) -> None:
    monkeypatch.setattr(steps, "MOST_ROWS", 16)
    with watch("large", "info_nce", every=1, strict=True, towers=TOWERS) as w:
        w.step(rows(20), rows(20, seed=1), ids=list(range(20)))
    towers = towers_at(w.run)
    assert towers.group_a.tolist() == towers.group_b.tolist()
    assert len(towers.a) == 7
    assert "rows (26: the step has more rows than the limit)" in w.run.status()["note"]


@cases(
    ("views", "given", "why"),
    [
        ([rows(4)], {}, "two towers need rows"),
        ([rows(4), rows(4, 7)], {}, "of the same width; got (4, 6), (4, 7)"),
        ([rows(4), rows(4), rows(4)], {}, "two towers need rows"),
        ([rows(4), rows(5)], {}, "need ids or labels"),
        ([rows(4), rows(5)], {"ids": ([1, 2, 3, 4], None)}, "ids must be (5,)"),
        ([rows(4), rows(5)], {"ids": ([1, 2, 3, 4], [5, 6, 7, 8, 9])}, "the two towers have no ids in common"),
        ([rows(4), rows(4)], {"labels": ([1.5] * 4, [0] * 4)}, "whole numbers"),
        ([rows(4), rows(4)], {"queue": rows(9)}, "two towers have no queue"),
    ],
)
def test_what_are_no_towers(views: list, given: dict, why: str) -> None:
    with watch("wrong", "info_nce", every=1, towers=TOWERS) as w:
        w.step(*views, **given)
        w.step(rows(4), rows(4, seed=1))
    assert why in w.run.status()["note"]
    assert 2 in recorded_rows.steps(w.run)


def test_a_damaged_recording_is_told_of() -> None:
    run, _ = recorded(rows(5), rows(5, seed=1))
    manifest = run.path / "run.json"
    about = json.loads(manifest.read_text())
    for names in (["image"], "image", ["text", "text"], [1, 2]):
        about["recording"]["towers"] = names
        manifest.write_text(json.dumps(about))
        with pytest.raises(Damaged, match="not belong to two towers"):
            Space.of_name("towers").rows()


# --- losses of others ---


class ClipLoss(nn.Module):
    """The call of open_clip's ClipLoss, and its formula."""

    def forward(self, image_features, text_features, logit_scale, logit_bias=None, output_dict=False):
        logits = logit_scale * image_features @ text_features.T + (0 if logit_bias is None else logit_bias)
        target = torch.arange(len(logits))
        value = (functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)) / 2
        return {"contrastive_loss": value} if output_dict else value


class SigLipLoss(nn.Module):
    """The call of open_clip's SigLipLoss, and its formula."""

    def forward(self, image_features, text_features, logit_scale, logit_bias, output_dict=False):
        logits = logit_scale * image_features @ text_features.T + logit_bias
        value = -functional.logsigmoid((2 * torch.eye(len(logits)) - 1) * logits).sum() / len(logits)
        return {"contrastive_loss": value} if output_dict else value


@cases("name", ["info_nce", "siglip"])
@cases("output_dict", [False, True])
def test_open_clip_losses_are_ours(name: str, output_dict: bool) -> None:
    criterion = {"info_nce": ClipLoss, "siglip": SigLipLoss}[name]()
    scale = torch.tensor(np.log(12.0), dtype=torch.float32, requires_grad=True)
    bias = torch.tensor(-4.0, requires_grad=True) if name == "siglip" else None
    a, b = (functional.normalize(rows(8, seed=k)).requires_grad_() for k in (0, 1))
    with watch("clip", name, every=1, strict=True, towers=TOWERS) as w:
        wrapped = w.wrap(criterion)
        value = wrapped(a, b, scale.exp(), bias, output_dict=output_dict)
        wrapped(image_features=a, text_features=b, logit_scale=scale.exp(), logit_bias=bias)
        with torch.no_grad():
            wrapped(a, b, scale.exp(), bias)  # validation is no step
    value = (value["contrastive_loss"] if output_dict else value).detach()
    lines = w.run.metrics()
    assert len(lines) == 2
    for line in lines:
        assert line["loss"] == pytest.approx(float(value), rel=1e-4)
        assert line["caller_loss"] == pytest.approx(float(value), rel=1e-4)
        assert line["temperature"] == pytest.approx(1 / 12, rel=1e-5)
    assert ("bias" in lines[0]) == (name == "siglip")
    assert scale.grad is None
    assert "note" not in w.run.status() or not w.run.status()["note"]


def test_without_names_they_are_views_and_it_says_so() -> None:
    with watch("views", "info_nce", every=1) as w:
        w.wrap(ClipLoss())(rows(4), rows(4, seed=1), torch.tensor(5.0))
    assert recorded_rows.read(w.run, 1).has_views
    assert "records them as two towers" in w.run.status()["note"]


def test_rows_of_images_have_pictures_and_those_of_texts_none() -> None:
    digits = datasets.load("digits", "train")
    owners = [3, 3, 5, 7, 9, 11]  # several captions of one image
    with watch("pictured", "info_nce", every=1, strict=True, towers=TOWERS, dataset="digits") as w:
        w.step(rows(4), rows(6, seed=1), ids=([3, 5, 7, 9], owners))
    pictures = Space.of_recording(Recorded(w.run, "step", 1)).images()
    assert pictures is not None
    at = towers_at(w.run)
    np.testing.assert_array_equal(pictures[at.a], digits.images[[3, 5, 7, 9]])
    assert len({*pictures[at.b].ravel().tolist()}) == 1  # gray
    batch = load_batch(w.run, BatchRequest("step:1", 4, 1, 0))
    assert isinstance(batch, TowerBatch)
    assert (batch.a.title, batch.b.title) == TOWERS
    assert set(batch.a.groups) == set(batch.b.groups)
    assert min(batch.a.thumbs) >= 0
    assert set(batch.b.thumbs) == {-1}
