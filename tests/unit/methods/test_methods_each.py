"""Who is compared with whom in each method, and what its memory does."""

from typing import Any

import numpy as np
import pytest
import torch
from methods_setup import BATCH, N_TRAIN, PLAIN, SHAPE, batch, changed, make, optimizer, state, step
from torch import Tensor, nn

from contrastive_core import losses, methods
from contrastive_core.base.errors import BadSetting
from contrastive_core.data import named_sets
from contrastive_core.data.batch_loader import Batch, BatchShare
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.pairs.types import NO_ROW, Pairs
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.setup import prepare

# --- who is compared with whom -----------------------------------------------------------------


def positives(pairs: Pairs) -> list[list[int]]:
    return [row.nonzero()[:, 0].tolist() for row in pairs.masks().positive]


@pytest.mark.parametrize("name", ["simclr", "inva_spread"])
def test_views_of_an_image_are_positives_and_all_else_negative(name: str) -> None:
    pairs = make(name).pairs(batch(n=3), torch.Generator())
    assert positives(pairs) == [[1], [0], [3], [2], [5], [4]]
    assert (pairs.masks().negative.sum(1) == 4).all()


def test_simclr_takes_more_views() -> None:
    pairs = make("simclr", views=3).pairs(batch(n=2), torch.Generator())
    assert positives(pairs)[0] == [1, 2]


def test_one_augmented_view_beside_the_image_itself() -> None:
    method = make("inva_spread", augmented=1).eval()
    pairs = method.pairs(batch(n=3), torch.Generator())
    plain = method(batch(n=3).images / 255)
    assert torch.allclose(pairs.anchors[::2], plain, atol=1e-5)
    assert not torch.allclose(pairs.anchors[1::2], plain, atol=1e-5)


def test_sup_con_attracts_a_class_in_every_view() -> None:
    pairs = make("sup_con").pairs(batch(n=4), torch.Generator())  # labels 0 1 0 1
    assert positives(pairs)[0] == [1, 4, 5]


def test_metric_compares_by_class() -> None:
    pairs = make("metric").pairs(batch(n=4), torch.Generator())
    assert positives(pairs) == [[2], [3], [0], [1]]


@pytest.mark.parametrize("name", methods.names())
def test_every_loss_runs_on_every_method_or_says_why_not(name: str) -> None:
    for loss in losses.names():
        method = make(name)
        method.use_loss(losses.create(loss))
        if reason := method.loss.check(method.pairs(batch(0), torch.Generator())):
            assert isinstance(method.loss, TwoViewLoss), loss
            assert len(reason.split()) > 8
            continue
        if (name, loss) == ("nnclr", "invariance_spread"):
            method.use_loss(losses.create(loss, detach=False))  # its anchors have no gradient either
        out = step(method, optimizer(method), torch.Generator(), 0)
        assert out.value.isfinite(), loss
        assert out.n_valid > 0, loss
    grads = (p.grad for p in method.parameters() if p.grad is not None)
    assert all(g.isfinite().all() for g in grads)


def test_an_impossible_pairing_is_refused_before_training() -> None:
    paper = {"loss": "invariance_spread", "loss_knobs": {"form": "paper"}}
    with pytest.raises(BadSetting, match=r"cannot use the pairs of inst_disc: .*first views"):
        prepare(TrainConfig("inst_disc", "digits", method_knobs={"noise": 16}, **paper))
    prepare(TrainConfig("inva_spread", "digits", **paper))
    with pytest.raises(BadSetting, match=r"no gradient reaches the encoder: .*loss\.detach=off"):
        prepare(TrainConfig("nnclr", "digits", loss="invariance_spread"))
    with pytest.raises(BadSetting, match=r"two views of each image: .*pairs\.from_views"):
        prepare(TrainConfig("cpc", "digits", loss="vicreg"))


def test_lifted_batches_keep_the_hardest_negatives_of_their_pairs() -> None:
    method = make("metric", PLAIN, batches="lifted").eval()
    x, labels = batch().images / 255, torch.tensor([0, 0, 1, 1, 0, 0, 0, 1])
    x[7] = x[0]  # the image of another class that looks most like one of a pair
    before = state(method)
    kept = method.hardest(x, labels, BatchShare.whole(8))
    assert kept[:4].tolist() == [0, 1, 4, 5]
    assert len(kept) == 6
    assert kept[4] == 7
    assert 6 not in kept[4:]  # of the same class as every pair: nobody's negative
    assert changed(before, state(method)) == set()


def test_lifted_batches_tell_rows_apart_whose_cosines_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained encoder's rows are nearly one: which is nearest does not depend on how products are rounded."""
    method = make("metric", PLAIN, batches="lifted").eval()
    for seed in range(20):
        e, other = torch.randn(2, 64, generator=torch.Generator().manual_seed(seed))
        near = 2 + seed % 2
        rows = torch.stack([e, e, *(e + (1 if i == near else 3) * 1e-4 * other for i in (2, 3))])
        monkeypatch.setattr(type(method), "forward", lambda self, x, rows=rows: rows)
        kept = method.hardest(torch.zeros(4, *SHAPE), torch.tensor([0, 0, 1, 1]), BatchShare.whole(4))
        assert kept.tolist() == [0, 1, near]


# --- MoCo --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["moco_v1", "moco_v2"])
def test_moco_compares_with_its_key_and_the_queue_alone(name: str) -> None:
    pairs = make(name, queue=16).pairs(batch(), torch.Generator())
    masks = pairs.masks()
    assert positives(pairs) == [[i] for i in range(BATCH)]
    assert masks.negative[:, BATCH:].all()
    assert not masks.negative[:, :BATCH].any()
    assert not pairs.candidates.requires_grad


@pytest.mark.parametrize("symmetric", [False, True])
def test_moco_enqueues_after_the_loss_and_once_per_image(symmetric: bool) -> None:
    method = make("moco_v1", PLAIN, queue=20, symmetric=symmetric)
    old = method.queue.rows.clone()
    pairs = method.pairs(batch(), torch.Generator())
    assert torch.equal(pairs.candidates[-20:], old)  # none of its own keys is a negative
    assert len(pairs) == BATCH * (1 + symmetric)
    method.after_step(pairs)
    assert int(method.queue.enqueued) == BATCH
    keys = pairs.candidates[: len(pairs) : 1 + symmetric]
    assert torch.allclose(method.queue.rows[:BATCH], nn.functional.normalize(keys), atol=1e-6)
    assert torch.equal(method.queue.rows[BATCH:], old[BATCH:])


def test_moco_symmetric_pairs_each_view_with_the_other_views_key() -> None:
    method = make("moco_v1", symmetric=True).eval()
    g = torch.Generator().manual_seed(1)
    x = method.views(batch(), 2, torch.Generator().manual_seed(1))  # (b, 2, c, h, w)
    pairs = method.pairs(batch(), g)
    z = method.encode_views(x)
    assert torch.allclose(pairs.anchors, z.flatten(0, 1), atol=1e-5)
    assert torch.allclose(pairs.candidates[: 2 * BATCH], z.flip(1).flatten(0, 1), atol=1e-5)


def test_moco_keys_follow_slowly() -> None:
    method = make("moco_v1", momentum=0.75)
    with torch.no_grad():
        for p in method.encoder.parameters():
            p.add_(1.0)
    before = [p.clone() for p in method.key_encoder.parameters()]
    method.after_step(method.pairs(batch(), torch.Generator()))
    for old, now in zip(before, method.key_encoder.parameters(), strict=True):
        assert torch.allclose(now, old + 0.25, atol=1e-6)


def test_moco_shuffling_changes_keys_only_with_split_norms() -> None:
    """Over whole batches the statistics are the same in any order; over parts they are not."""

    def keys(**knobs: Any) -> Tensor:
        method = make("moco_v1", PLAIN, **knobs)
        return method.keys(batch().images / 255, BatchShare.whole(BATCH), torch.Generator().manual_seed(3))

    assert torch.equal(keys(shuffle=True), keys(shuffle=False))
    plain, split, shuffled = keys(), keys(bn_splits=2, shuffle=False), keys(bn_splits=2)
    assert not torch.allclose(plain, split, atol=1e-3)
    assert not torch.allclose(split, shuffled, atol=1e-3)


def test_moco_shuffled_keys_come_back_in_order() -> None:
    method = make("moco_v1", PLAIN, bn_splits=2).eval()  # in evaluation the order cannot matter
    x = batch().images / 255
    assert torch.allclose(
        method.keys(x, BatchShare.whole(BATCH), torch.Generator().manual_seed(3)),
        method.key_head(method.key_encoder(x)),
        atol=1e-5,
    )


# --- Inst Disc ---------------------------------------------------------------------------------


def test_inst_disc_compares_with_slots() -> None:
    method, b = make("inst_disc", noise=6), batch()
    pairs = method.pairs(b, torch.Generator())
    assert pairs.columns is not None
    assert torch.equal(pairs.columns[:, 0], b.index)
    assert (pairs.columns[:, 1:] != b.index[:, None]).all()
    assert pairs.columns.shape == (BATCH, 7)
    assert pairs.population == N_TRAIN
    whole = make("inst_disc", noise=0).pairs(b, torch.Generator())
    assert whole.width == N_TRAIN
    assert positives(whole) == [[int(i)] for i in b.index]


def test_inst_disc_updates_the_slots_of_its_batch_after_the_loss() -> None:
    method, b = make("inst_disc", noise=6), batch()
    before = method.bank.rows.clone()
    pairs = method.pairs(b, torch.Generator())
    assert torch.equal(pairs.candidates, before)
    method.after_step(pairs)
    assert torch.equal(pairs.candidates, before), "the bank must not change what was compared"
    moved = (method.bank.rows != before).any(1).nonzero()[:, 0].tolist()
    assert moved == sorted(b.index.tolist())


@pytest.mark.parametrize("how", ["ema", "first_batch"])
def test_inst_disc_follows_or_keeps_z(how: str) -> None:
    method = make("inst_disc", noise=6, log_z=how)
    opt, g = optimizer(method), torch.Generator().manual_seed(0)
    seen = []
    for seed in range(3):
        step(method, opt, g, seed)
        seen.append(float(method.bank.log_z))
    assert (len(set(seen)) == 1) == (how == "first_batch")
    assert method.extra_metrics() == {"log_z": seen[-1]}


def test_inst_disc_leaves_z_to_a_loss_that_fixes_it() -> None:
    method = make("inst_disc", noise=6)
    for loss in (losses.create("nce", log_z=5.0), losses.create("info_nce")):
        method.loss = loss
        assert method.pairs(batch(), torch.Generator()).log_z is None


# --- CPC ---------------------------------------------------------------------------------------


def test_cpc_cuts_overlapping_patches() -> None:
    from contrastive_core.methods.cpc import patch_grid

    assert patch_grid(32) == (16, 5, 4)
    assert patch_grid(256) == (64, 32, 7)  # the paper's
    assert patch_grid(8)[2] >= 4
    for size in (8, 16, 28, 32, 64, 96):
        side, stride, rows = patch_grid(size)
        assert stride < side
        assert (rows - 1) * stride + side <= size


def test_cpc_predicts_the_true_patch_further_down() -> None:
    method, b = make("cpc", PLAIN, steps=2).eval(), batch(n=2)
    pairs = method.pairs(b, torch.Generator())
    cut = method.cut(b.images / 255)
    z = method(cut.flatten(0, 2)).unflatten(0, cut.shape[:3])  # (b, rows, cols, d)
    rows = z.shape[1]
    assert torch.allclose(pairs.candidates, z.transpose(1, 2).reshape(-1, z.shape[-1]), atol=1e-5)
    assert len(pairs) == 2 * z.shape[2] * (2 * rows - 3)
    found = positives(pairs)
    assert found[0] == [1]  # from row 0, one ahead, in the first column
    assert found[rows - 1] == [rows + 1]  # the next column
    first_of_second_step = 2 * z.shape[2] * (rows - 1)
    assert found[first_of_second_step] == [2]
    assert (pairs.candidate_rows != NO_ROW).all()


def test_cpc_context_sees_only_rows_above() -> None:
    method = make("cpc", PLAIN).eval()
    images = batch(n=2).images
    other = images.clone()
    other[:, :, 8:] = 0  # below the first row of patches
    labels = torch.zeros(2, dtype=torch.long)
    a, b = (method.pairs(Batch(x, labels, labels), torch.Generator()).anchors for x in (images, other))
    assert torch.allclose(a[0], b[0], atol=1e-6)  # predicted from the first row


# --- CLIP --------------------------------------------------------------------------------------


def test_clip_compares_an_image_with_captions_alone() -> None:
    pairs = make("clip").pairs(batch(n=3), torch.Generator())
    assert positives(pairs) == [[3], [4], [5], [0], [1], [2]]
    assert pairs.masks().negative[0].tolist() == [False, False, False, False, True, True]


def test_clip_draws_one_caption_of_each_image_by_the_generator() -> None:
    some = batch(n=4)  # images with 1, 2, 1, 2 captions
    assert some.captions is not None
    texts, seen = some.captions.texts, set()
    for seed in range(20):
        drawn, again = (some.draw_captions(torch.Generator().manual_seed(seed)) for _ in range(2))
        assert drawn == again
        assert [drawn[0], drawn[2]] == [texts[0], texts[3]]
        seen.add(texts.index(drawn[1]))
    assert seen == {1, 2}
    parts = [
        Batch(
            some.images[i], some.labels[i], some.index[i], BatchShare(i.start, i.stop, 4), some.captions.take(rows)
        ).draw_captions(torch.Generator().manual_seed(3))
        for i, rows in ((slice(0, 2), np.arange(2)), (slice(2, 4), np.arange(2, 4)))
    ]
    assert [*parts[0], *parts[1]] == some.draw_captions(torch.Generator().manual_seed(3))


def test_clip_encodes_only_the_captions_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    method, encoded = make("clip"), []
    encode = method.text_tower.encode
    monkeypatch.setattr(method.text_tower, "encode", lambda texts: encoded.extend(texts) or encode(texts))
    method.pairs(batch(n=6), torch.Generator())
    assert len(encoded) == 6


def test_clip_learns_its_temperature_from_the_losss_and_clamps_it() -> None:
    method = make("clip")
    method.use_loss(losses.create("info_nce", temperature=0.2))
    assert method.step_metrics() == {"temperature": pytest.approx(0.2)}
    step(method, optimizer(method), torch.Generator(), 0)
    assert method.step_metrics()["temperature"] != pytest.approx(0.2, abs=1e-5)
    with torch.no_grad():
        method.temperature.log_scale.fill_(9.0)
    method.after_step(method.pairs(batch(), torch.Generator()))
    assert method.step_metrics() == {"temperature": pytest.approx(0.01)}
    fixed = make("clip", learn_temperature=False)
    fixed.use_loss(losses.create("info_nce"))
    assert fixed.step_metrics() == {}
    assert fixed.pairs(batch(), torch.Generator()).temperature is None


def test_clip_learns_siglips_bias_beside_its_temperature() -> None:
    method = make("clip")
    method.use_loss(losses.create("siglip"))
    assert method.step_metrics() == {"temperature": pytest.approx(0.1), "bias": -10.0}
    before = state(method)
    step(method, optimizer(method), torch.Generator(), 0)
    assert {"bias", "temperature.log_scale"} <= changed(before, state(method))
    assert method.step_metrics()["bias"] != -10.0
    method.use_loss(losses.create("info_nce"))
    assert method.bias is None
    assert set(method.step_metrics()) == {"temperature"}
    made = method.pairs(batch(), torch.Generator())
    assert made.bias is None
    method.use_loss(losses.create("triplet"))
    assert method.step_metrics() == {}


def test_the_loader_brings_every_caption_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(named_sets.SHAPES, "train", (200, 0))
    setup = prepare(TrainConfig("clip", "shapes", batch_size=4, encoder_knobs={"width": 0.25}, sample=50))
    rows = np.array([7, 3, 199, 0])
    found = setup.loader.batch(rows).captions
    captions = setup.dataset.captions
    assert captions is not None
    assert found is not None
    for place, row in enumerate(rows):
        own = [text for text, image in zip(captions.texts, captions.image, strict=True) if image == row]
        assert [text for text, image in zip(found.texts, found.image, strict=True) if image == place] == own != []
    assert prepare(TrainConfig("simclr", "digits", sample=50)).loader.batch(rows[[0, 3]]).captions is None
    with pytest.raises(BadSetting, match="digits has no captions; choose shapes"):
        prepare(TrainConfig("clip", "digits"))
