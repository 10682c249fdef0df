"""What differs between two spaces: planted factors are found, and nothing is where there is nothing."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.base.errors import CannotScore
from contrastive_core.cli.main import main
from contrastive_core.compare.differences import contrast_axes, find_differences
from contrastive_core.spaces.embedding_set import EmbeddingSet

N, WIDTH, KINDS = 600, 32, 6
generator = np.random.default_rng(0)
CONTENT = generator.standard_normal((N, 6)) @ generator.standard_normal((6, WIDTH))
COLOR = generator.integers(0, KINDS, N)
PLANTED = CONTENT + 2.5 * generator.standard_normal((KINDS, WIDTH))[COLOR]


def space(x: np.ndarray, **more: object) -> EmbeddingSet:
    columns = {"color": np.array(["red", "blue", "green", "gray", "pink", "teal"])[COLOR[: len(x)]]}
    rows = EmbeddingSet(x.astype(np.float32), ids=tuple(f"s{i}" for i in range(len(x))), columns=columns)
    return replace(rows, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("near", [0, 1])
def test_the_groups_are_the_kinds_of_a_factor_that_one_space_lacks(near: int) -> None:
    sets = [space(PLANTED), space(CONTENT)]
    found = find_differences(sets[:: 1 - 2 * near])
    assert {group.near for group in found.groups} == {near}
    assert len(found.groups) >= 3
    for group in found.groups[:3]:
        kinds, counts = np.unique(sets[0].columns["color"][group.rows], return_counts=True)
        fact = group.facts[0]
        assert (fact.factor, fact.kind) == ("color", kinds[counts.argmax()])
        assert fact.share == pytest.approx(counts.max() / len(group.rows))
        assert fact.share > 0.8
        assert fact.base == pytest.approx((sets[0].columns["color"] == fact.kind).mean())
        assert group.gap > found.bar
        assert group.p <= 0.05
    names = ["one", "two"]
    assert str(found.groups[0].sentence(names)).startswith(
        f"{len(found.groups[0].rows)} samples lie together in {names[near]} and apart in {names[1 - near]}: "
    )


def test_the_axes_are_the_eigenvectors_of_the_difference_of_the_kernels() -> None:
    a, b = generator.standard_normal((40, 5)), generator.standard_normal((40, 7))
    values, phi, turn = contrast_axes(a, b)
    kernels = a @ a.T / np.square(a).sum() - b @ b.T / np.square(b).sum()
    dense = np.linalg.eigvalsh(kernels)
    assert values == pytest.approx(dense[np.abs(dense) > 1e-12], abs=1e-12)
    axes = phi @ turn
    assert kernels @ axes == pytest.approx(axes * values, abs=1e-9)
    assert axes.T @ axes == pytest.approx(np.eye(12), abs=1e-9)


def test_a_space_does_not_differ_from_itself_turned_or_from_another_half_of_it() -> None:
    rotation = np.linalg.qr(generator.standard_normal((WIDTH, WIDTH)))[0]
    for other in (PLANTED, PLANTED @ rotation, 3 * PLANTED + 1):
        found = find_differences([space(PLANTED), space(other)])
        assert found.groups == []
    units = np.maximum(0, PLANTED @ generator.standard_normal((WIDTH, 256)))
    found = find_differences([space(units[:, :128]), space(units[:, 128:])])  # as two seeds would be
    assert found.groups == []


def test_runs_with_another_seed_raise_the_bar() -> None:
    sets = [space(PLANTED), space(CONTENT)]
    assert find_differences(sets).groups
    found = find_differences(sets, seeds=[("twin", sets[0], sets[1])])
    assert found.groups == []
    assert "another seed do not reach it either: twin" in str(found.notes[1])


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (PLANTED[:49], "at least 50 shared rows; got 49"),
        (np.ones((N, WIDTH)), "all rows of B are equal"),
        (PLANTED[:, :1], "B has a single column"),
    ],
)
def test_what_cannot_be_compared_is_refused(x: np.ndarray, said: str) -> None:
    with pytest.raises(CannotScore, match=said):
        find_differences([space(PLANTED[: len(x)]), space(x)])


def test_numbers_and_hues_are_described_by_their_range_and_color() -> None:
    hue = (COLOR / KINDS + 0.02) % 1
    columns = {"hue": hue, "size": COLOR + generator.random(N), "broken": np.full(N, np.nan)}
    found = find_differences([space(PLANTED, columns=columns), space(CONTENT)])
    facts = {(fact.factor, str(fact.kind)) for group in found.groups for fact in group.facts}
    assert {name for name, _ in facts} == {"hue", "size"}
    assert {kind for name, kind in facts if name == "hue"} <= {"red", "yellow", "green", "cyan", "blue", "magenta"}
    assert all(" to " in kind for name, kind in facts if name == "size")


def test_the_command_names_the_groups_of_the_shared_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    order = generator.permutation(N)[:500]
    space(PLANTED).save(files[0])
    space(CONTENT).take(order).save(files[1])
    assert main(["compare", *files, "--differences", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["n"], said["left_out"]) == (500, [100, 0])
    assert "Only the 500 samples in both spaces are compared: 100 of A and 0 of B are left out." in said["notes"]
    group = said["groups"][0]
    rows = [int(name[1:]) for name in group["ids"]]
    assert rows == group["rows"]  # numbers of the first file
    assert np.bincount(COLOR[rows]).max() / len(rows) == pytest.approx(group["facts"][0]["share"])
    assert main(["compare", *files, "--differences"]) == 0
    assert group["sentence"] in capsys.readouterr().out
    space(2 * PLANTED).save(files[1])
    assert main(["compare", *files, "--differences"]) == 0
    assert capsys.readouterr().out.startswith("No difference stands out.\nA group is shown if its gap exceeds ")
    assert main(["compare", *files, "simclr-shapes", "--differences"]) == 2
    assert "differences compare two spaces; got 3" in capsys.readouterr().err
