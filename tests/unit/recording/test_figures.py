"""The figures of a step are those of the library: per row, per batch, and by slow loops."""

import numpy as np
import pytest
import torch
from cases import cases

from contrastive_core import losses, metrics, pairs, watch
from contrastive_core.recording import figures
from contrastive_core.recording.steps import RecordedBatch
from contrastive_core.runs import free_name
from contrastive_core.runs.run import Run
from contrastive_core.spaces import recorded_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

KNOBS = {"invariance_spread": {"form": "paper"}, "n_pair": {"l2_penalty": 0.02}}


def recorded_once(loss: str | None, *views: torch.Tensor, knobs=None, **given) -> tuple[Run, dict]:
    with watch(free_name("once"), loss=loss, strict=True, **(knobs or {})) as w:
        w.step(*views, **given)
    return w.run, w.run.metrics()[0]


@pytest.fixture
def views() -> torch.Tensor:
    return torch.randn(24, 2, 8, generator=torch.Generator().manual_seed(0))


LABELS = torch.arange(24) % 5


@cases("name", losses.names(), homes=True)
def test_each_loss_is_the_library_s(name: str, views: torch.Tensor) -> None:
    knobs = KNOBS.get(name, {})
    run, line = recorded_once(name, views, labels=LABELS, ids=torch.arange(24), knobs=knobs)
    by_label = losses.get(name).card.by_label
    out = losses.create(name, **knobs)(pairs.from_views(views, LABELS if by_label else None))
    assert line["loss"] == pytest.approx(out.value.item(), rel=1e-5)
    assert line["n_valid"] == out.n_valid
    rows = recorded_rows.read(run, 1)
    expected = torch.where(out.weight > 0, out.per_anchor, torch.nan).numpy()
    assert rows.loss == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True)
    assert rows.ids.tolist() == [str(i) for i in range(24) for _ in range(2)]
    assert rows.view.tolist() == [0, 1] * 24
    assert run.config["loss_knobs"] | knobs == run.config["loss_knobs"]


@pytest.mark.parametrize("name", ["nt_xent", "triplet", "lifted_structure"])
def test_a_large_batch_is_asked_of_some_anchors(name: str, views: torch.Tensor, monkeypatch) -> None:
    batch = batch_of(views)
    whole, _ = figures.measure(batch, losses.create(name), "views", 16)
    monkeypatch.setattr(figures, "SCORES", 100)
    some, _ = figures.measure(batch, losses.create(name), "views", 16)
    taken = np.isfinite(some)
    assert taken.sum() == 16
    assert some[taken] == pytest.approx(whole[taken])


def batch_of(views: torch.Tensor) -> RecordedBatch:
    b, v, d = views.shape
    image, view = np.divmod(np.arange(b * v), v)
    return RecordedBatch(views.reshape(-1, d).double(), image, view, np.full(b * v, -1), image.astype(str))


@cases("name", ["nt_xent", "sup_con", "triplet", "pair_contrastive"], homes=True)
def test_gradients_by_class_in_a_slow_loop(name: str, views: torch.Tensor) -> None:
    """The gradient of an anchor's own loss, with all others' rows held, split by pair class."""
    criterion, z = losses.create(name), views[:4].reshape(-1, 8).double()
    labels = torch.arange(4) % 2
    _, line = recorded_once(name, views[:4], labels=labels)
    groups = labels.repeat_interleave(2) if losses.get(name).card.by_label else torch.arange(8) // 2
    p = pairs.from_labels(z, groups)
    lengths = {"positive": [], "negative": []}
    for i in range(8):
        one = p.take_anchors(torch.tensor([i]))
        masks = one.masks()
        for kind in lengths:
            leaf = z[i : i + 1].clone().requires_grad_()
            mask = getattr(masks, kind)[0]
            lengths[kind].append(one_sided(criterion, leaf, z, mask, i, groups))
    assert line["grad_positive"] == pytest.approx(np.mean(lengths["positive"]), rel=1e-4)
    assert line["grad_negative"] == pytest.approx(np.mean(lengths["negative"]), rel=1e-4)


def one_sided(criterion, leaf, others, mask, i, groups) -> float:
    """Σ over the columns of `mask` of ∂L_i/∂s_ij · ∂s_ij/∂a_i, by two separate derivatives."""
    p = pairs.from_labels(others, groups).take_anchors(torch.tensor([i]))
    anatomy = criterion.anatomy(p)
    weight = anatomy.grad_scores[0].double() * mask
    unit = torch.nn.functional.normalize(leaf) if criterion.normalize else leaf
    columns = torch.nn.functional.normalize(others) if criterion.normalize else others
    scores = {
        "dot": lambda: (unit @ columns.T)[0],
        "distance": lambda: (unit - columns).square().sum(1).clamp_min(1e-30).sqrt(),
        "squared_distance": lambda: (unit - columns).square().sum(1),
    }[criterion.score]()
    return torch.autograd.grad((scores * weight).sum(), leaf)[0].norm().item()


def test_the_figures_are_the_metrics_(views: torch.Tensor) -> None:
    _, line = recorded_once("nt_xent", views, labels=LABELS)
    rows = EmbeddingSet(views[:, 0].numpy(), LABELS.numpy(), views=views.numpy())
    for name in ("alignment", "uniformity", "rankme"):
        score = metrics.create(name)(None, rows, Graphs("cpu"))
        assert line[name] == pytest.approx(score.value, rel=1e-5)
    assert 0 <= line["knn"] <= 1
    tau = torch.nn.Parameter(torch.tensor(0.1))  # learned
    _, line = recorded_once("nt_xent", views, temperature=tau)
    anatomy = losses.create("nt_xent", temperature=0.1).anatomy(pairs.from_views(views))
    assert line["temperature"] == pytest.approx(0.1)
    assert line["loss"] == pytest.approx(anatomy.output.value.item(), rel=1e-5)
    expected = anatomy.output.extras.get("effective_negatives", anatomy.extras["effective_negatives"])
    assert line["effective_negatives"] == pytest.approx(float(expected.mean()), rel=1e-5)
    assert line["negatives"] == 46


def test_queries_keys_and_queue(views: torch.Tensor) -> None:
    queue = torch.randn(100, 8, generator=torch.Generator().manual_seed(1))
    run, line = recorded_once("info_nce", views[:, 0], views[:, 1], queue=queue, ids=list("abcdefgh" * 3))
    out = losses.create("info_nce")(pairs.from_queue(views[:, 0], views[:, 1], queue))
    assert line["loss"] == pytest.approx(out.value.item(), rel=1e-5)
    assert recorded_rows.read(run, 1).queue.shape == (100, 8)
    q, k = views[:, 0], views[:, 1]
    _, line = recorded_once("info_nce", q, k, knobs={"positives": "keys", "temperature": 0.05})
    unit = torch.nn.functional.normalize
    expected = torch.nn.functional.cross_entropy(unit(q) @ unit(k).T / 0.05, torch.arange(24))
    assert line["loss"] == pytest.approx(expected.item(), rel=1e-4)


def test_the_callers_own_losses(views: torch.Tensor) -> None:
    own = torch.arange(48.0)
    run, line = recorded_once(None, views[:, 0], views[:, 1], losses=own)
    assert line["loss"] == pytest.approx(own.mean().item())
    rows = recorded_rows.read(run, 1)
    assert rows.loss[rows.view == 0].tolist() == list(range(24))
    assert rows.loss[rows.view == 1].tolist() == list(range(24, 48))


def test_rows_that_share_an_id_are_views(views: torch.Tensor) -> None:
    flat = torch.cat([views[:, 0], views[:, 1]])
    ids = torch.arange(24).repeat(2)
    run, line = recorded_once("nt_xent", flat, ids=ids, labels=LABELS.repeat(2))
    expected = losses.create("nt_xent")(pairs.from_views(views)).value
    assert line["loss"] == pytest.approx(expected.item(), rel=1e-5)
    assert recorded_rows.read(run, 1).ids.tolist()[:4] == ["0", "0", "1", "1"]


def test_the_sample_is_of_a_fixed_size(views: torch.Tensor) -> None:
    run, _ = recorded_once("nt_xent", views, ids=torch.arange(24), knobs={"rows": 10})
    rows = recorded_rows.read(run, 1)
    assert rows.ids[rows.view == 0].tolist() == ["0", "6", "12", "17", "23"]
