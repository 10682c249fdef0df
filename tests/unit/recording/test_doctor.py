"""The doctor of training loops: it names planted faults, and stays silent on healthy loops."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from benchmarks import loop_doctor
from contrastive_core import losses, pairs, watch
from contrastive_core.base.json_files import read_object
from contrastive_core.cli.main import main
from contrastive_core.recording import loop_checks
from contrastive_core.recording.doctor import diagnose
from contrastive_core.recording.faults import SavedBatch
from contrastive_core.recording.steps import Omissions, batch_of, copy_step
from contrastive_core.runs.records import CHECK, CHECK_FILE

SLOW = ("collapse",)  # needs more steps


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_doctor, "STEPS", 3)
    monkeypatch.setattr(loop_checks, "CONFIRMED", 2)


@pytest.mark.parametrize("title", [title for title in loop_doctor.PLANTED if title not in SLOW])
def test_planted_faults_are_named(title: str) -> None:
    name, step, declared = loop_doctor.PLANTED[title]
    names, _ = loop_doctor.reported(step, declared, seed=0)
    assert names == [name]


@pytest.mark.parametrize("kind", [None, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("title", loop_doctor.HEALTHY)
def test_healthy_loops_are_silent(title: str, kind: torch.dtype | None) -> None:
    make, declared = loop_doctor.HEALTHY[title]
    assert loop_doctor.reported(make(kind), declared, seed=0)[0] == []


def saved(views: torch.Tensor, **values: object) -> SavedBatch:
    """A healthy batch of NT-Xent, or another with these values."""
    z = views.clone().requires_grad_()
    value = losses.create("nt_xent")(pairs.from_views(z)).value
    value.backward()
    rows = batch_of(copy_step(1, [views], 0.0, Omissions("")), Omissions(""))
    assert z.grad is not None
    return replace(SavedBatch(rows, value.item(), z.grad.flatten(0, 1).double()), **values)


def test_one_batch() -> None:
    loss, views = losses.create("nt_xent"), torch.randn(16, 2, 8)
    healthy = saved(views)
    assert diagnose(healthy, loss).is_healthy
    assert healthy.grad is not None
    assert diagnose(replace(healthy, grad=healthy.grad * 65536), loss).is_healthy  # the scale of mixed precision
    [fault] = diagnose(replace(healthy, grad=healthy.grad / 4), loss).faults
    assert "accumulate=4" in fault.text
    assert diagnose(replace(healthy, grad=healthy.grad / 4, accumulate=4), loss).is_healthy
    assert [fault.name for fault in diagnose(replace(healthy, grad=healthy.grad / 2), loss).faults] == [
        "gradient_scaled"
    ]
    strange = diagnose(replace(healthy, grad=healthy.grad.roll(1, 0)), loss)
    assert not strange.is_explained
    assert strange.faults == ()
    assert "another loss may also send gradients" in strange.text
    assert "cosine" in strange.numbers
    assert "no known fault explains it" in diagnose(replace(healthy, value=7.0), losses.create("vicreg")).text
    flat = torch.ones(16, 2, 8) + 1e-3 * views
    assert [fault.name for fault in diagnose(saved(flat), loss).faults] == ["collapse"]


def test_what_a_recording_keeps(caplog: pytest.LogCaptureFixture) -> None:
    ids = torch.arange(8) % 7
    with watch("checked", loss="nt_xent", temperature=0.5, every=1, strict=True) as w:
        for _ in range(3):
            z = torch.randn(8, 2, 4, requires_grad=True)
            loss = losses.create("nt_xent", temperature=0.5)(pairs.from_views(z)).value
            w.step(z, ids=ids, caller_loss=loss)
            loss.backward()
    assert w.run is not None
    record = read_object(w.run.path / CHECK_FILE, CHECK)
    [fault] = record["faults"]
    assert (record["checked"], fault["name"], fault["steps"], fault["rows"]) == (3, "duplicates", 3, ["0"])
    assert str(record["numbers"]).endswith("Gradient: 1 times the declared one (cosine 1.000).")
    assert len([r for r in caplog.records if "negatives of each other" in r.getMessage()]) == 1


def test_a_wrapped_loss_is_checked() -> None:
    """Its call is before the backward pass, and has the value: nothing else is passed."""

    def criterion(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return losses.create("nt_xent")(pairs.from_views(torch.stack([a, b.detach()], 1))).value

    with watch("wrapped", loss="nt_xent", every=1, strict=True) as w:
        wrapped = w.wrap(criterion)
        for _ in range(3):
            a, b = (torch.randn(8, 4, requires_grad=True) for _ in range(2))
            wrapped(a, b).backward()
        findings = w._recorder.findings
    assert findings.confirmed() == ["detached"]


def diagnosed(name: str, computes: Callable[[torch.Tensor], torch.Tensor], z: torch.Tensor, **how: Any) -> list[str]:
    """Names of the faults of a loss of rows z that is declared by this name."""
    grown = z.clone().requires_grad_()
    value = computes(grown)
    value.backward()
    extra = {key: how.pop(key) for key in ("positives", "process", "scale") if key in how}
    labels, ids = how.pop("labels", None), how.pop("ids", None)
    rows = batch_of(copy_step(1, [z], 0.0, Omissions(""), labels=labels, ids=ids), Omissions(""))
    grad = grown.grad.flatten(0, -2).double() * extra.pop("scale", 1.0)
    found = diagnose(SavedBatch(rows, value.item(), grad, **extra), losses.create(name, **how))
    assert found.is_explained
    return [fault.name for fault in found.faults]


def nt_xent(z: torch.Tensor, **how: Any) -> torch.Tensor:
    return losses.create("nt_xent", **how)(pairs.from_views(z)).value


def test_more_faults() -> None:
    views, labels = torch.randn(16, 2, 8), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 0, 1, 1, 2])
    three, z = torch.randn(10, 3, 8), torch.randn(12, 8)
    assert diagnosed("nt_xent", lambda z: nt_xent(z, temperature=0.3), views) == ["other_tau"]
    assert diagnosed("nt_xent", lambda z: nt_xent(z[:, :2]), three) == ["view_unused"]
    assert diagnosed("nt_xent", lambda z: nt_xent(z[:, 1:]), three) == ["view_unused"]

    def of_other_rows(z: torch.Tensor) -> torch.Tensor:
        return losses.create("sup_con")(pairs.from_labels(z, labels.roll(1))).value

    assert diagnosed("sup_con", of_other_rows, z, labels=labels, positives="labels") == ["target_shifted"]

    def next_to_the_pair(z: torch.Tensor) -> torch.Tensor:
        u = torch.nn.functional.normalize(torch.cat(z.unbind(1)), dim=1)
        scores = (u @ u.T / 0.5).fill_diagonal_(-torch.inf)
        return torch.nn.functional.cross_entropy(scores, (torch.arange(32) + 17) % 32)

    assert diagnosed("nt_xent", next_to_the_pair, views, temperature=0.5) == ["target_shifted"]

    def both(z: torch.Tensor) -> torch.Tensor:
        return losses.create("info_nce")(pairs.from_towers(z[:, 0], z[:, 1])).value

    assert diagnosed("info_nce", both, views, positives="keys") == ["both_directions"]


def test_rows_that_are_normalized_before() -> None:
    """The loss has a gradient along them, which reaches nothing."""
    views = torch.nn.functional.normalize(torch.randn(16, 2, 8), dim=-1)
    assert diagnosed("nt_xent", lambda z: nt_xent(z, normalize=False), views) == []
    assert diagnosed("nt_xent", lambda z: nt_xent(z, normalize=False), 2 * views) == ["not_normalized"]


def test_rows_of_two_processes() -> None:
    """What reaches those of the first, of the sum of both losses."""
    views, process = torch.randn(16, 2, 8), np.repeat([0, 1], 16)

    def apart(z: torch.Tensor) -> torch.Tensor:
        return (nt_xent(z[:8]) + nt_xent(z[8:])) / 2

    def without_gradient(z: torch.Tensor) -> torch.Tensor:
        """The value of the whole, the gradient of the first process's anchors."""
        every = losses.create("nt_xent")(pairs.from_views(z)).per_anchor
        return every.mean().detach() + (every[:16].mean() - every[:16].mean().detach()) / 2

    how = {"process": process, "scale": 2.0}
    assert diagnosed("nt_xent", nt_xent, views, **how) == []
    assert diagnosed("nt_xent", apart, views, **how) == ["processes_apart"]
    assert diagnosed("nt_xent", without_gradient, views, **how) == ["gathered_detached"]
    assert diagnosed("nt_xent", nt_xent, views, **{**how, "scale": 1.0}) == ["gradient_scaled"]


def test_columns_that_each_process_standardizes() -> None:
    """As lightly's BarlowTwinsLoss does: no fault. Its gradient is half where the sum over two processes has none."""
    views, process = torch.randn(16, 2, 8), np.repeat([0, 1], 16)

    def of_parts(*parts: torch.Tensor) -> torch.Tensor:
        unit = [torch.nn.functional.batch_norm(z, None, None, training=True) for part in parts for z in part.unbind(1)]
        c = sum(a.T @ b for a, b in zip(unit[::2], unit[1::2], strict=True)) / sum(map(len, parts))
        return (c.diagonal() - 1).square().sum() + 0.005 * (c - torch.diag(c.diagonal())).square().sum()

    def in_each(z: torch.Tensor) -> torch.Tensor:
        return of_parts(z[:8], z[8:])

    def apart(z: torch.Tensor) -> torch.Tensor:
        return (of_parts(z[:8]) + of_parts(z[8:])) / 2

    how = {"process": process, "scale": 2.0}
    assert diagnosed("barlow_twins", of_parts, views, **how) == []
    assert diagnosed("barlow_twins", in_each, views, **how) == []
    assert diagnosed("barlow_twins", in_each, views, process=process) == ["gradient_scaled"]
    assert diagnosed("barlow_twins", apart, views, **how) == ["processes_apart"]


def test_a_scale_in_place_of_a_learned_temperature() -> None:
    healthy = saved(torch.randn(16, 2, 8))
    rows = replace(healthy.rows, temperature=2.0)
    z = rows.z.clone().requires_grad_()
    value = losses.create("nt_xent", temperature=2.0)(pairs.from_views(z.unflatten(0, (16, 2)))).value
    value.backward()
    found = diagnose(SavedBatch(rows, value.item(), z.grad), losses.create("nt_xent"))
    assert [fault.name for fault in found.faults] == ["tau_as_scale"]


def test_parts_of_rows() -> None:
    """One side of two that stem from one operation, without a gradient; and candidates in two tensors."""
    with watch("parts", loss="info_nce", every=1, strict=True, towers=("a", "b"), positives="keys") as w:
        for _ in range(3):
            q, p, n = torch.randn(18, 4, requires_grad=True).chunk(3)
            ids = [*range(6)]
            loss = losses.create("info_nce")(pairs.from_towers(q, p.detach(), direction="a_to_b")).value
            w.step(q, (p, n), ids=(ids, [*ids, *range(6, 12)]), caller_loss=loss)
            loss.backward()
        findings = w._recorder.findings
    assert findings.confirmed() == ["negatives_unused"]


def test_steps_that_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_checks, "FIRST", 2)
    monkeypatch.setattr(loop_checks, "EVERY", 5)
    with watch("some", loss="nt_xent", every=1, strict=True) as w:
        for _ in range(11):
            w.step(torch.randn(4, 2, 3), caller_loss=torch.tensor(1.0))
        findings = w._recorder.findings
    assert findings.checked == 4  # steps 1, 2, 6 and 11
    with watch("none", loss="nt_xent", every=1, strict=True, check=False) as w:
        w.step(torch.randn(4, 2, 3), caller_loss=torch.tensor(1.0))
    assert not (w.run.path / CHECK_FILE).exists()


@pytest.mark.parametrize(
    ("rows", "factor", "declared", "sentence"),
    [
        (16, 1.0, {"loss": torch.nn.MSELoss()}, "The loss is not checked: Contrastive Lab has no equivalent loss."),
        (16, 1.0, {"loss": "lejepa"}, "Not checked: LeJEPA needs inputs that are not recorded."),
        (16, float("nan"), {"loss": "nt_xent"}, "Not checked: the loss is not finite."),
        (1100, 1.0, {"loss": "nt_xent"}, "Not checked: 2,200 rows are too many to compare; the limit is 2,048."),
        (5000, 1.0, {"loss": "nt_xent"}, "Not checked: the step has more rows than are recorded."),
    ],
)
def test_a_loop_that_cannot_be_compared_says_so_once(caplog, rows: int, factor: float, declared, sentence: str) -> None:
    """On the console; without ids, which no check needs."""
    with watch("unchecked", every=1, **declared) as w:
        for _ in range(3):
            z = torch.randn(rows, 2, 3, requires_grad=True)
            loss = z.square().mean() * factor
            w.step(z, caller_loss=loss)
            loss.backward()
            w._recorder.wait()
    assert caplog.text.count(sentence) == 1
    assert "The loss" not in caplog.text.replace(sentence, "")  # no fault beside it


def test_rows_without_numbers(caplog) -> None:
    """Not finite, or with a gradient that is not."""
    for name, of_rows, of_loss in (("rows", torch.nan, 1.0), ("gradient", 1.0, torch.inf)):
        with watch(name, loss="nt_xent", every=1) as w:
            for _ in range(3):
                z = torch.randn(4, 2, 3, requires_grad=True)
                rows = torch.cat([z[:3], z[3:] * of_rows])
                loss = nt_xent(rows.nan_to_num())
                w.step(rows, caller_loss=loss)
                (loss * of_loss).backward()
                w._recorder.wait()
    assert caplog.text.count("Not checked: rows are not finite.") == 1
    assert caplog.text.count("Not checked: the gradient is not finite.") == 1


def test_a_saved_batch(tmp_path, capsys) -> None:
    z = torch.randn(16, 2, 8, requires_grad=True)
    loss = losses.create("nt_xent", temperature=0.04)(pairs.from_views(z)).value
    loss.backward()
    path = str(tmp_path / "step.safetensors")
    save_file({"z": z.detach(), "grad": z.grad, "loss": loss.detach(), "ids": torch.arange(16)}, path)
    command = ["doctor", "loop", path, "--loss", "nt_xent", "--set"]
    assert main([*command, "temperature=0.04"]) == 0
    assert main([*command, "temperature=0.2", "--json"]) == 1
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["faults"][0]["name"] == "tau_twice"


@pytest.mark.parametrize(
    ("tensors", "options", "problem"),
    [
        ({"x": torch.ones(2)}, ["--loss", "nt_xent"], "has no tensor z"),
        ({"z": torch.randn(4, 2, 3)}, ["--loss", "nt_xent"], "no gradient reached"),
        ({"z": torch.randn(4, 2, 3)}, [], "needs a file and --loss"),
        ({"z": torch.randn(4, 2, 3), "grad": torch.ones(4, 3)}, ["--loss", "nt_xent"], "another shape"),
        ({"z": torch.randn(4, 3), "loss": torch.ones(())}, ["--loss", "nt_xent"], "no views and no labels"),
        ({"z": torch.randn(4, 2, 3), "loss": torch.ones(2)}, ["--loss", "nt_xent"], "one number; got shape (2,)"),
        (None, ["--loss", "nt_xent"], "no safetensors file"),
    ],
)
def test_files_that_cannot_be_compared(tmp_path, capsys, tensors, options: list[str], problem: str) -> None:
    path = tmp_path / "step.safetensors"
    path.write_bytes(np.arange(9).tobytes())
    if tensors is not None:
        save_file(tensors, str(path))
    assert main(["doctor", "loop", str(path), *options]) == 2
    assert problem in capsys.readouterr().err
