"""Similarities where naive ones are wrong: zero rows, near rows, empty masks."""

import pytest
import torch

from contrastive_core.ops import similarity


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_a_zero_row_stays_zero_without_gradient() -> None:
    z = rows(4, 3)
    z[1] = 0
    z.requires_grad_()
    u = similarity.normalize(z)
    u.square().cumsum(1).sum().backward()
    assert (u[1] == 0).all()
    assert (z.grad[1] == 0).all()
    torch.testing.assert_close(u.norm(dim=1), torch.tensor([1.0, 0, 1, 1]))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_row_that_is_not_finite_does_not_become_a_zero_row(value: float) -> None:
    z = rows(4, 3)
    z[1, 2] = value
    assert similarity.normalize(z).isnan().any(1).tolist() == [False, True, False, False]


@pytest.mark.parametrize("size", [1e-20, 1e-6, 1.0, 1e18])
def test_tiny_and_huge_rows_become_unit_rows(size: float) -> None:
    u = similarity.normalize(size * rows(5, 7))
    torch.testing.assert_close(u, torch.nn.functional.normalize(rows(5, 7), dim=1))


@pytest.mark.parametrize("size", [1.0, 1e-18])
def test_normalize_has_right_first_and_second_derivatives(size: float) -> None:
    z = rows(4, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: similarity.normalize(size * z), z)
    assert torch.autograd.gradgradcheck(lambda z: similarity.normalize(size * z), z)


def test_a_zero_row_has_no_second_derivative_either() -> None:
    z = rows(4, 3)
    z[1] = 0
    z.requires_grad_()
    (grad,) = torch.autograd.grad(similarity.normalize(z).cumsum(1).square().sum(), z, create_graph=True)
    (second,) = torch.autograd.grad(grad.square().sum(), z)
    assert second.isfinite().all()
    assert (second[1] == 0).all()


@pytest.mark.parametrize("ratio", [1e-4, 1e-3, 1e-2, 1.0])
def test_near_rows_have_right_distances(ratio: float) -> None:
    a = torch.nn.functional.normalize(rows(64, 32), dim=1)
    step = torch.nn.functional.normalize(torch.randn(64, 32), dim=1)
    b = a + ratio * step
    got = similarity.distance(a, b).diagonal()
    want = (a.double() - b.double()).norm(dim=1)
    torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=0)


def test_distance_gradient() -> None:
    a, b = rows(3, 4).double().requires_grad_(), rows(5, 4).double()[:, [1, 0, 2, 3]]
    assert torch.autograd.gradcheck(lambda x: similarity.distance(x, b), a)
    same = rows(3, 4).requires_grad_()
    similarity.distance(same, same).sum().backward()
    assert same.grad.isfinite().all()


def test_log_sum_exp_over_masked_entries_only() -> None:
    x = torch.tensor([[1000.0, 1.0, 2.0], [0.0, 5.0, 1e30]]).requires_grad_()
    mask = torch.tensor([[False, True, True], [False, False, False]])
    got = similarity.masked_logsumexp(x, mask)
    assert got[0].item() == pytest.approx(torch.tensor([1.0, 2.0]).logsumexp(0).item())
    assert got[1].item() == -torch.inf
    got[0].backward()
    assert (x.grad[~mask] == 0).all()


def test_exactly_restores_the_precision() -> None:
    torch.set_float32_matmul_precision("high")
    with similarity.full_precision(torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == "high"
    first, second = (similarity.full_precision(torch.device("cpu")) for _ in range(2))  # of two threads
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == "highest"
    second.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
