"""Contract of every registered method, and what each does beyond it."""

from __future__ import annotations

import copy
import dataclasses
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from contrastive_core import losses, methods
from contrastive_core.config import BadSetting, TrainConfig
from contrastive_core.encoders import create_encoder
from contrastive_core.methods import Method
from contrastive_core.prepare import prepare
from contrastive_core.types import NO_ROW, Batch, LossOutput, Pairs
from contrastive_core.views import Recipe

SHAPE, N_TRAIN, BATCH = (3, 16, 16), 40, 8
PLAIN = Recipe(crop=0, flip=0, jitter=0, grey=0)  # every view is the image itself


def make(name: str, recipe: Recipe | None = None, **knobs: Any) -> Method:
    torch.manual_seed(0)
    encoder = create_encoder("small", SHAPE[0], SHAPE[1], width=0.25)
    method = methods.create(
        name, encoder=encoder, image_shape=SHAPE, n_train=N_TRAIN, recipe=recipe, **knobs
    )
    cls = methods.get(name)
    method.loss = losses.create(cls.default_loss, **cls.loss_knobs)
    return method.train()


def batch(seed: int = 0, n: int = BATCH) -> Batch:
    g = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, *SHAPE), generator=g, dtype=torch.uint8)
    return Batch(images, torch.arange(n) % 2, torch.randperm(N_TRAIN, generator=g)[:n])


def optimiser(method: Method) -> torch.optim.Optimizer:
    return torch.optim.AdamW([p for p in method.parameters() if p.requires_grad], lr=1e-2)


def step(method: Method, opt: torch.optim.Optimizer, g: torch.Generator, seed: int) -> LossOutput:
    pairs = method.pairs(batch(seed), g)
    assert method.loss is not None
    out = method.loss(pairs)
    opt.zero_grad()
    out.value.backward()
    opt.step()
    method.after_step(pairs)
    return out


def state(method: nn.Module) -> dict[str, Tensor]:
    return {k: v.clone() for k, v in method.state_dict().items()}


def changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    assert before.keys() == after.keys()
    return {k for k in before if not torch.equal(before[k].nan_to_num(9), after[k].nan_to_num(9))}


every = pytest.mark.parametrize("name", methods.names())


# --- the contract ------------------------------------------------------------------------------


def test_the_names() -> None:
    expected = "cpc inst_disc inva_spread metric moco_v1 moco_v2 simclr sup_con".split()
    assert set(expected) <= set(methods.names())


@every
def test_two_steps_change_what_they_should(name: str) -> None:
    method, g = make(name), torch.Generator().manual_seed(0)
    before, opt = state(method), optimiser(method)
    for seed in (1, 2):
        out = step(method, opt, g, seed)
        assert out.value.isfinite()
        assert out.n_valid == len(out.per_anchor)
    moved = changed(before, state(method))
    trained = {k for k, p in method.named_parameters() if p.requires_grad}
    assert {k for k in trained if "head" not in k} <= moved, "a trained weight stood still"
    assert all(v.isfinite().all() for v in state(method).values() if v.is_floating_point())


@every
def test_it_goes_on_bit_equal(name: str) -> None:
    """All state is in the state dict: a fresh method that loads it takes the same next step."""
    one, g = make(name), torch.Generator().manual_seed(0)
    opt = optimiser(one)
    step(one, opt, g, 1)
    two = make(name)
    for p in two.parameters():
        torch.nn.init.ones_(p)
    two.load_state_dict(one.state_dict())
    other = optimiser(two)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    h = torch.Generator()
    h.set_state(g.get_state())
    for seed in (2, 3):
        assert torch.equal(step(one, opt, g, seed).per_anchor, step(two, other, h, seed).per_anchor)
    assert changed(state(one), state(two)) == set()


@every
def test_gradients_reach_what_is_trained_and_nothing_else(name: str) -> None:
    method, g = make(name), torch.Generator().manual_seed(0)
    if name in ("moco_v1", "moco_v2"):
        assert {k.split(".")[0] for k, p in method.named_parameters() if not p.requires_grad} == {
            "key_encoder",
            "key_head",
        }
    else:
        assert all(p.requires_grad for p in method.parameters())
    pairs = method.pairs(batch(), g)
    assert method.loss is not None
    method.loss(pairs).value.backward()
    for key, p in method.named_parameters():
        if p.requires_grad:
            assert p.grad is not None, key
            assert p.grad.abs().sum() > 0 or key.endswith("bias"), key
        else:
            assert p.grad is None, key
    assert not any(b.requires_grad for b in method.buffers())


@every
def test_only_after_step_changes_memory(name: str) -> None:
    """Building pairs moves the norms' running statistics, as any forward pass does; no more."""
    method, g = make(name), torch.Generator().manual_seed(0)
    before = state(method)
    pairs = method.pairs(batch(), g)
    moved = changed(before, state(method))
    assert all(k.split(".")[-1].startswith(("running_", "num_batches")) for k in moved)
    between = {k: v.clone() for k, v in vars(pairs).items() if isinstance(v, Tensor)}
    method.after_step(pairs)
    assert all(torch.equal(v, getattr(pairs, k)) for k, v in between.items())


@every
def test_every_knob_has_help_and_is_checked(name: str) -> None:
    for key, knob in methods.knobs(name).items():
        assert knob.help, key
        assert knob.check(key, knob.default) == knob.default
    with pytest.raises(ValueError, match="has no setting 'speed'"):
        make(name, speed=3)


@every
def test_the_card_is_filled_in(name: str) -> None:
    cls = methods.get(name)
    for field in ("title", "idea", "compared", "measured_by_paper", "differences", "paper_recipe"):
        assert isinstance(getattr(cls, field), str), field
        assert getattr(cls, field), field
    assert cls.paper.startswith("https://")
    assert 1990 < cls.year < 2030
    assert cls.default_loss in losses.names()
    assert len(cls.flow) >= 1
    assert cls.idea.count(".") >= 2


@every
@pytest.mark.parametrize(
    ("shape", "n_train"), [((3, 32, 32), 5000), ((1, 8, 8), 1437), ((3, 96, 96), 100_000)]
)
def test_defaults_can_be_used_and_have_reasons(
    name: str, shape: tuple[int, int, int], n_train: int
) -> None:
    cls = methods.get(name)
    found = cls.defaults(shape, n_train, 10)
    assert all(isinstance(reason, str) and reason for _, reason in found.values())
    values = {k: v for k, (v, _) in found.items()}
    losses.create(values.get("loss", cls.default_loss), **values.get("loss_knobs", {}))
    knobs = methods.knobs(name)
    own = {k: knobs[k].check(k, v) for k, v in values.get("method_knobs", {}).items()}
    if "queue" in own:
        assert 2 * own["queue"] <= n_train
    assert values["batch_size"] <= n_train
    if shape[0] == 1:
        assert values["recipe"].hue == values["recipe"].saturation == values["recipe"].grey == 0
    assert cls.problem(n_train, shape, 10, values["batch_size"], own) is None


@every
def test_features_are_of_whole_images_and_do_not_depend_on_the_batch(name: str) -> None:
    method = make(name).eval()
    images = torch.rand(5, *SHAPE)
    with torch.no_grad():
        h = method.features(images)
        assert h.shape == (5, method.encoder.out_dim)
        assert torch.allclose(h[2:3], method.features(images[2:3]), atol=1e-5)
        assert method.project(h).shape == (5, method.head.out_dim)


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


@pytest.mark.parametrize(
    "loss",
    [
        "pair_contrastive",
        "triplet",
        "lifted_structure",
        "n_pair",
        "soft_nearest_neighbour",
        "sup_con",
    ],
)
def test_metric_takes_any_supervised_loss(loss: str) -> None:
    method = make("metric")
    method.loss = losses.create(loss)
    out = step(method, optimiser(method), torch.Generator(), 0)
    assert out.value.isfinite()
    assert out.n_valid > 0


@every
def test_every_loss_runs_on_every_method_or_says_why_not(name: str) -> None:
    for loss in losses.names():
        method = make(name)
        method.loss = losses.create(loss)
        out = step(method, optimiser(method), torch.Generator(), 0)
        assert out.value.isfinite(), loss
        assert out.n_valid > 0, loss
    grads = (p.grad for p in method.parameters() if p.grad is not None)
    assert all(g.isfinite().all() for g in grads)


def test_an_impossible_pairing_is_refused_before_training() -> None:
    paper = {"loss": "invariance_spread", "loss_knobs": {"form": "paper"}}
    with pytest.raises(BadSetting, match=r"cannot use the pairs of inst_disc: .*first views"):
        prepare(TrainConfig("inst_disc", "digits", method_knobs={"noise": 16}, **paper))
    prepare(TrainConfig("inva_spread", "digits", **paper))


@pytest.mark.parametrize("kind", ["class_balanced", "n_pair", "lifted"])
def test_metric_draws_its_batches_in_three_ways(kind: str) -> None:
    method = make("metric", batches=kind)
    assert method.batch_kind == kind
    assert step(method, optimiser(method), torch.Generator(), 0).n_valid > 0


def test_lifted_batches_keep_the_hardest_negatives_of_their_pairs() -> None:
    method = make("metric", PLAIN, batches="lifted").eval()
    x, labels = batch().images / 255, torch.tensor([0, 0, 1, 1, 0, 0, 0, 1])
    x[7] = x[0]  # the image of another class that looks most like one of a pair
    before = state(method)
    kept = method.hardest(x, labels)
    assert kept[:4].tolist() == [0, 1, 4, 5]
    assert len(kept) == 6
    assert kept[4] == 7
    assert 6 not in kept[4:]  # of the same class as every pair: nobody's negative
    assert changed(before, state(method)) == set()


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


def test_moco_momentum_can_warm_up() -> None:
    method = make("moco_v1", momentum=0.9, momentum_warmup=True)
    seen = []
    for _ in range(200):
        seen.append(method.m)
        method.steps += 1
    assert seen[0] == pytest.approx(0.1)
    assert seen == sorted(seen)
    assert seen[-1] == 0.9


def test_moco_shuffling_changes_keys_only_with_split_norms() -> None:
    """Over whole batches the statistics are the same in any order; over parts they are not."""

    def keys(**knobs: Any) -> Tensor:
        method = make("moco_v1", PLAIN, **knobs)
        return method.keys(batch().images / 255, torch.Generator().manual_seed(3))

    assert torch.equal(keys(shuffle=True), keys(shuffle=False))
    plain, split, shuffled = keys(), keys(bn_splits=2, shuffle=False), keys(bn_splits=2)
    assert not torch.allclose(plain, split, atol=1e-3)
    assert not torch.allclose(split, shuffled, atol=1e-3)


def test_moco_shuffled_keys_come_back_in_order() -> None:
    method = make("moco_v1", PLAIN, bn_splits=2).eval()  # in evaluation the order cannot matter
    x = batch().images / 255
    assert torch.allclose(
        method.keys(x, torch.Generator().manual_seed(3)),
        method.key_head(method.key_encoder(x)),
        atol=1e-5,
    )


def test_moco_v1_and_v2_differ_in_head_temperature_and_blur() -> None:
    one, two = methods.get("moco_v1"), methods.get("moco_v2")
    assert methods.knobs("moco_v1")["head"].default == "linear"
    assert methods.knobs("moco_v2")["head"].default == "nonlinear"
    a, b = (cls.defaults((3, 32, 32), 5000, 8) for cls in (one, two))
    assert a["recipe"][0].blur == 0 < b["recipe"][0].blur
    assert a["loss_knobs"][0]["temperature"] < b["loss_knobs"][0]["temperature"]


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
    opt, g = optimiser(method), torch.Generator().manual_seed(0)
    seen = []
    for seed in range(3):
        step(method, opt, g, seed)
        seen.append(float(method.bank.log_z))
    assert (len(set(seen)) == 1) == (how == "first_batch")
    assert method.report() == {"log_z": seen[-1]}


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
    a, b = (
        method.pairs(Batch(x, labels, labels), torch.Generator()).anchors for x in (images, other)
    )
    assert torch.allclose(a[0], b[0], atol=1e-6)  # predicted from the first row


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("moco_v1", (100, SHAPE, 2, 16, {"queue": 4096}), "queue of 4096.*method.queue=32"),
        ("moco_v2", (100, SHAPE, 2, 16, {"queue": 101}), "method.queue="),
        ("moco_v1", (100, SHAPE, 2, 9, {"bn_splits": 8}), "method.bn_splits=4"),
        ("inst_disc", (2, SHAPE, 2, 2, {}), "at least 3 images"),
        ("cpc", (100, (3, 5, 5), 2, 8, {}), "at least 4 rows of patches; images of 5 pixels"),
    ],
)
def test_what_cannot_be_trained_names_the_remedy(
    name: str, arguments: tuple, sentence: str
) -> None:
    said = methods.get(name).problem(*arguments)
    assert said is not None
    assert re.search(sentence, said), said


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        make("simclr").settings.dim = 3
