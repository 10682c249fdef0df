"""Plain PyTorch loops with planted faults, and the same loops without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from contrastive_core.recording.watch import Watch

ROWS, WIDTH = 48, 16
TAU = 0.2
Step = Callable[["Loop", Watch], None]
Kind = torch.dtype | None  # of autocast


class Loop:
    """An encoder, its data and what a loop needs from step to step."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, WIDTH))
        self.tau = nn.Parameter(torch.tensor(TAU))
        self.optimizer = torch.optim.SGD([{"params": self.model.parameters()}, {"params": self.tau, "lr": 1e-3}], 0.05)
        self.points = torch.randn(512, 32)
        self.classes = torch.randint(0, 8, (512,))
        self.scale = 1.0  # of the loss, in mixed precision
        self.queue = normalize(torch.randn(96, WIDTH), dim=1)

    def batch(self, repeated: int = 0) -> tuple[Tensor, Tensor]:
        """Row numbers (n), some of them twice, and two noisy views (2n, 32), the first views first."""
        index = torch.randperm(512)[:ROWS]
        if repeated:
            index[-repeated:] = index[:repeated]
        x = self.points[index]
        return index, torch.cat([x, x]) + 0.3 * torch.randn(2 * ROWS, 32)

    def autocast(self, kind: Kind) -> torch.autocast:
        """Mixed precision; float16 with a scaled loss, as `GradScaler` does."""
        self.scale = 2.0**12 if kind == torch.float16 else 1.0
        return torch.autocast("cpu", kind or torch.bfloat16, enabled=kind is not None)

    def learn(self, loss: Tensor, clip: float | None = None) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        (loss * self.scale).backward()
        self.update(clip)

    def update(self, clip: float | None = None) -> None:
        grads = [p.grad for p in (*self.model.parameters(), self.tau) if p.grad is not None]
        if not all(bool(torch.isfinite(grad).all()) for grad in grads):
            return
        for grad in grads:
            grad /= self.scale
        if clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), clip)
        self.optimizer.step()


def two_views(z: Tensor) -> Tensor:
    return torch.stack(z.chunk(2), 1)


def scores_of(z: Tensor, unit: bool = True) -> Tensor:
    u = normalize(z, dim=1) if unit else z
    return u @ u.T


def nt_xent(z: Tensor, fault: str = "") -> Tensor:
    """NT-Xent of rows (2n, d), the first views first."""
    n = len(z)
    scores = scores_of(z, fault != "not_normalized") / TAU
    scores = scores / TAU if fault == "tau_twice" else scores * TAU * TAU if fault == "tau_as_scale" else scores
    target = (torch.arange(n) + n // 2) % n
    if fault == "view_order":
        target = torch.arange(n) ^ 1
    positive = scores[torch.arange(n), target]
    if fault != "self_among_negatives":
        scores = scores.masked_fill(torch.eye(n, dtype=torch.bool), -torch.inf)
    if fault == "positive_among_negatives":
        scores = torch.cat([positive[:, None], scores], 1)
    each = scores.logsumexp(1) - positive
    if fault == "one_direction":
        each = each[: n // 2]
    return each.sum() if fault == "wrong_count" else each.mean()


def simclr(
    fault: str = "", scale: float = 1.0, repeated: int = 0, clip: float | None = None, kind: Kind = None
) -> Step:
    def step(loop: Loop, w: Watch) -> None:
        index, x = loop.batch(repeated)
        with loop.autocast(kind):
            rows = two_views(loop.model(x))
            z = torch.cat(rows.unbind(1))
            if fault == "noise":
                z = normalize(z, dim=1) + 0.05 * torch.randn(z.shape)
            if fault == "detached":
                z = torch.cat([rows[:, 0], rows[:, 1].detach()])
            loss = nt_xent(z, fault)
        w.step(rows, ids=index, caller_loss=loss)
        if fault == "wrong_count":
            loop.optimizer.param_groups[0]["lr"] = 5e-4
        loop.learn(loss * scale, clip)

    return step


def clip_loss(a: Tensor, b: Tensor, tau: Tensor | float, fault: str = "") -> Tensor:
    """CLIP's loss of rows a (n, d) and b (m, d), of which the first n are partners."""
    n = len(a)
    if fault != "not_normalized":
        a, b = normalize(a, dim=1), normalize(b, dim=1)
    logits = a @ (b[:n] if fault == "negatives_unused" else b).T / tau
    target = torch.arange(n)
    target = target.roll(1) if fault == "target_shifted" else target * 0 if fault == "column_0" else target
    forth = cross_entropy(logits, target)
    if fault == "one_direction" or len(b) > n:
        return forth
    return (forth + cross_entropy(logits.T, target)) / 2


def clip(fault: str = "", learned: bool = False, kind: Kind = None, repeated: int = 0) -> Step:
    def step(loop: Loop, w: Watch) -> None:
        index, x = loop.batch(repeated)
        with loop.autocast(kind):
            a, b = loop.model(x).chunk(2)
            tau: Any = loop.tau if learned else TAU
            loss = clip_loss(a, b, tau, fault)
        w.step(a, b, ids=index, caller_loss=loss, temperature=tau if learned else None)
        if fault == "not_normalized":
            loop.optimizer.param_groups[0]["lr"] = 1e-3
        loop.learn(loss)

    return step


def with_negatives(fault: str = "") -> Step:
    def step(loop: Loop, w: Watch) -> None:
        index, x = loop.batch()
        a, b = loop.model(x).chunk(2)
        hard = loop.model(loop.points[torch.randperm(512)[:ROWS]])
        loss = clip_loss(a, candidates := torch.cat([b, hard]), TAU, fault)
        ids = [str(i) for i in index.tolist()]
        w.step(a, candidates, ids=(ids, ids + [f"{i}, negative" for i in ids]), caller_loss=loss)
        loop.learn(loss)

    return step


def moco(fault: str = "", kind: Kind = None) -> Step:
    def step(loop: Loop, w: Watch) -> None:
        index, x = loop.batch()
        with loop.autocast(kind):
            q = loop.model(x[:ROWS])
            with torch.no_grad():
                k = loop.model(x[ROWS:])
            filled = torch.cat([normalize(k.float(), dim=1), loop.queue])[: len(loop.queue)]
            if fault == "own_keys_in_queue":
                loop.queue = filled
            u, key = normalize(q, dim=1), normalize(k, dim=1)
            if fault == "queue_unused":
                loss = cross_entropy(u @ key.T / TAU, torch.arange(ROWS))
            else:
                logits = torch.cat([(u * key).sum(1, keepdim=True), u @ loop.queue.T.to(u.dtype)], 1) / TAU
                loss = cross_entropy(logits, torch.zeros(ROWS, dtype=torch.long))
        w.step(q, k, queue=loop.queue, ids=index, caller_loss=loss)
        if fault not in ("queue_unfilled", "own_keys_in_queue"):
            loop.queue = filled
        loop.learn(loss)

    return step


def sup_con(fault: str = "", kind: Kind = None) -> Step:
    def step(loop: Loop, w: Watch) -> None:
        index, x = loop.batch()
        labels = torch.where(torch.arange(ROWS) < ROWS // 6, 100 + index, loop.classes[index])  # some are alone
        with loop.autocast(kind):
            z = loop.model(x[:ROWS])
            scores = scores_of(z).float() / TAU
            itself = torch.eye(ROWS, dtype=torch.bool)
            positive = (labels[:, None] == labels) & ~itself
            if fault == "first_positive_only":
                positive &= positive.cumsum(1) == 1
            log_p = scores - scores.masked_fill(itself, -torch.inf).logsumexp(1, keepdim=True)
            each, count = -(log_p * positive).sum(1), positive.sum(1)
            loss = (each / count.clamp_min(1)).sum() / (ROWS if fault == "wrong_count" else (count > 0).sum())
            if fault == "mean_over_pairs":
                loss = each.sum() / count.sum()
        w.step(z, labels=labels, caller_loss=loss)
        loop.learn(loss)

    return step


def accumulated(divide: bool = True, kind: Kind = None) -> Step:
    def step(loop: Loop, w: Watch) -> None:
        loop.optimizer.zero_grad(set_to_none=True)
        for _ in range(4):
            index, x = loop.batch()
            with loop.autocast(kind):
                z = loop.model(x)
                loss = nt_xent(z)
            w.step(z, ids=index.repeat(2), caller_loss=loss)
            (loss / 4 * loop.scale if divide else loss).backward()
        loop.update()

    return step


def collapsing(loop: Loop, w: Watch) -> None:
    loop.optimizer.param_groups[0]["lr"] = 1.0
    index, x = loop.batch()
    rows = two_views(loop.model(x))
    loss = 2 - 2 * torch.nn.functional.cosine_similarity(rows[:, 0], rows[:, 1]).mean()
    w.step(rows, ids=index, caller_loss=loss)
    loop.learn(loss)


def evaluated(fault: str = "dropout", kind: Kind = None) -> Step:
    """SimCLR, with a probe set after each step."""
    train, dropout = simclr(kind=kind), nn.Dropout(0.2)

    def step(loop: Loop, w: Watch) -> None:
        train(loop, w)
        loop.model.eval()
        w.probe(lambda x: loop.model(dropout(x) if fault == "dropout" else x), [loop.points[:64]])
        loop.model.train()

    return step


VIEWS: dict[str, Any] = {"loss": "nt_xent", "temperature": TAU}
TOWERS: dict[str, Any] = {"loss": "info_nce", "temperature": TAU, "towers": ("a", "b")}
QUEUE: dict[str, Any] = {"loss": "info_nce", "temperature": TAU}
LABELS: dict[str, Any] = {"loss": "sup_con", "temperature": TAU, "positives": "labels"}
NEGATIVES: dict[str, Any] = {**TOWERS, "positives": "keys"}
PLANTED: dict[str, tuple[str, Step, dict[str, Any]]] = {  # by title: the name, the loop, what it declares
    "τ twice": ("tau_twice", simclr("tau_twice"), VIEWS),
    "τ as a scale": ("tau_as_scale", simclr("tau_as_scale"), VIEWS),
    "rows not normalized": ("not_normalized", clip("not_normalized"), TOWERS),
    "positive among the negatives": ("positive_among_negatives", simclr("positive_among_negatives"), VIEWS),
    "diagonal not masked": ("self_among_negatives", simclr("self_among_negatives"), VIEWS),
    "duplicates in the batch": ("duplicates", simclr(repeated=5), VIEWS),
    "duplicate captions": ("duplicates", clip(repeated=5), TOWERS),
    "accumulated, not divided": ("gradient_scaled", accumulated(divide=False), {**VIEWS, "accumulate": 4}),
    "gradient divided by 8": ("gradient_scaled", simclr(scale=1 / 8), VIEWS),
    "one direction": ("one_direction", clip("one_direction"), TOWERS),
    "normalized twice with noise": ("noise", simclr("noise"), VIEWS),
    "one side detached": ("detached", simclr("detached"), VIEWS),
    "views in another order": ("view_order", simclr("view_order"), VIEWS),
    "targets shifted": ("target_shifted", clip("target_shifted"), TOWERS),
    "target always column 0": ("column_0", clip("column_0"), TOWERS),
    "one positive of several": ("first_positive_only", sup_con("first_positive_only"), LABELS),
    "negatives unused": ("negatives_unused", with_negatives("negatives_unused"), NEGATIVES),
    "queue unused": ("queue_unused", moco("queue_unused"), QUEUE),
    "queue holds own keys": ("own_keys_in_queue", moco("own_keys_in_queue"), QUEUE),
    "queue never filled": ("queue_unfilled", moco("queue_unfilled"), QUEUE),
    "sum in place of mean": ("wrong_count", simclr("wrong_count"), VIEWS),
    "mean over rows without a positive": ("wrong_count", sup_con("wrong_count"), LABELS),
    "mean over pairs": ("mean_over_pairs", sup_con("mean_over_pairs"), LABELS),
    "collapse": ("collapse", collapsing, {"loss": "negative_cosine"}),
    "evaluation with dropout": ("random_evaluation", evaluated(), VIEWS),
}
HEALTHY: dict[str, tuple[Callable[[Kind], Step], dict[str, Any]]] = {
    "SimCLR": (lambda kind: simclr(kind=kind), VIEWS),
    "SimCLR, clipped": (lambda kind: simclr(kind=kind, clip=0.1), VIEWS),
    "CLIP": (lambda kind: clip(kind=kind), TOWERS),
    "CLIP, learned τ": (lambda kind: clip(kind=kind, learned=True), TOWERS),
    "accumulated": (lambda kind: accumulated(kind=kind), {**VIEWS, "accumulate": 4}),
    "explicit negatives": (lambda kind: with_negatives(), NEGATIVES),
    "MoCo": (lambda kind: moco(kind=kind), QUEUE),
    "SimCLR, evaluated": (lambda kind: evaluated("", kind), VIEWS),
    "SupCon": (lambda kind: sup_con(kind=kind), LABELS),
}
