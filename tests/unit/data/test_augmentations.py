"""Augmentations equal torchvision's, own parameters per image, reproducible by the generator."""

import dataclasses
import math

import pytest
import torch
from cases import cases
from torchvision.transforms.v2 import functional as tv

from contrastive_core.data import augmentations
from contrastive_core.data.augmentations import augment, make_views
from contrastive_core.data.recipe import Recipe
from contrastive_core.train.settings import create_recipe

TOLERANCE = 2 / 255
OFF = Recipe(crop=0, flip=0, jitter=0, gray=0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(b: int = 6, c: int = 3, h: int = 32, w: int = 32) -> torch.Tensor:
    """Smooth and noisy uint8 images, with some flat gray ones for the hue's corner cases."""
    g = generator(1)
    x = torch.rand(b, c, h, w, generator=g) * 0.3 + torch.rand(b, c, 1, 1, generator=g) * 0.7
    if b > 2:
        x[-1] = 0.5
        x[-2, :, : h // 2] = torch.tensor([1.0, 0.0, 1.0][:c])[:, None, None]
    return (x * 255).round().to(torch.uint8)


def close(mine: torch.Tensor, theirs: list[torch.Tensor]) -> None:
    assert (mine - torch.stack(theirs)).abs().max() <= TOLERANCE


@cases(
    ("mine", "theirs", "values"),
    [
        (augmentations.adjust_brightness, tv.adjust_brightness, [0.0, 0.2, 0.6, 1.0, 1.4, 1.8]),
        (augmentations.adjust_contrast, tv.adjust_contrast, [0.0, 0.2, 0.6, 1.0, 1.4, 1.8]),
        (augmentations.adjust_saturation, tv.adjust_saturation, [0.0, 0.2, 0.6, 1.0, 1.4, 1.8]),
        (augmentations.adjust_hue, tv.adjust_hue, [-0.5, -0.2, 0.0, 0.1, 0.33, 0.5]),
        (
            augmentations.rotate,
            lambda x, a: tv.rotate(x, a, tv.InterpolationMode.BILINEAR),
            [-170.0, -15.0, 0.0, 7.0, 45.0, 90.0],
        ),
        (augmentations.solarize, tv.solarize, [0.0, 0.25, 0.5, 0.6, 0.9, 1.0]),
    ],
)
@cases("size", [(32, 32), (24, 40)])
def test_steps_equal_torchvision(mine, theirs, values, size) -> None:
    x = augmentations.to_float(images(h=size[0], w=size[1]))
    got = mine(x, torch.tensor(values))
    close(got, [theirs(x[i], v) for i, v in enumerate(values)])


@pytest.mark.parametrize("size", [(32, 32), (8, 8), (24, 40)])
def test_blur_equals_torchvision(size) -> None:
    x = augmentations.to_float(images(h=size[0], w=size[1]))
    sigmas = [0.1, 0.4, 0.8, 1.2, 1.6, 2.0]
    for kernel in (3, 5):
        got = augmentations.gaussian_blur(x, torch.tensor(sigmas), kernel)
        close(got, [tv.gaussian_blur(x[i], [kernel] * 2, [s] * 2) for i, s in enumerate(sigmas)])


@pytest.mark.parametrize("out", [(32, 32), (16, 12), (48, 64)])
def test_resized_crop_and_flip_equal_torchvision(out) -> None:
    x = augmentations.to_float(images(h=32, w=40))
    boxes = [(0, 0, 32, 40), (3, 5, 20, 17), (31, 39, 1, 1), (0, 8, 32, 9), (9, 0, 2, 40)]
    boxes.append((4, 4, 24, 32))
    flip = torch.tensor([False, True, False, True, True, False])
    got = augmentations.resized_crop(x, torch.tensor(boxes), flip, out)
    theirs = [tv.resized_crop(x[i], *box, size=list(out)) for i, box in enumerate(boxes)]
    close(got, [tv.horizontal_flip(t) if f else t for t, f in zip(theirs, flip, strict=True)])


def test_gray_and_cutout_equal_torchvision() -> None:
    x = augmentations.to_float(images())
    close(augmentations.grayscale(x), [tv.rgb_to_grayscale(i, num_output_channels=3) for i in x])
    center = torch.tensor([[16, 16], [0, 0], [31, 31], [5, 20], [20, 5], [8, 8]])
    want = []
    for image, (row, column) in zip(x, center.tolist(), strict=True):
        top, left = max(0, row - 5), max(0, column - 5)
        want.append(tv.erase(image, top, left, row + 5 - top, column + 5 - left, torch.zeros(1)))
    close(augmentations.cutout(x, center, 10), want)


def test_sobel_against_a_slow_loop() -> None:
    x = augmentations.to_float(images(b=2, h=6, w=7))
    gray = tv.rgb_to_grayscale(x)[:, 0]
    padded = torch.nn.functional.pad(gray[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    got = augmentations.sobel(x)
    for i in range(2):
        for r in range(6):
            for c in range(7):
                p = padded[i, r : r + 3, c : c + 3].tolist()
                dx = sum(k * (p[a][2] - p[a][0]) for a, k in enumerate((1, 2, 1))) / 4
                dy = sum(k * (p[2][a] - p[0][a]) for a, k in enumerate((1, 2, 1))) / 4
                want = min(1.0, math.hypot(dx, dy))
                assert got[i, :, r, c].tolist() == pytest.approx([want] * 3, abs=1e-4)


def test_crop_boxes_are_distributed_as_torchvisions() -> None:
    recipe = Recipe(crop_low=0.2, crop_high=0.9)
    boxes = augmentations.crop_boxes(4000, 32, 32, recipe, generator()).float()
    top, left, height, width = boxes.T
    area = height * width / 32**2
    assert ((top + height <= 32) & (left + width <= 32) & (top >= 0) & (left >= 0)).all()
    assert area.min() > 0.15
    assert area.max() < 1.0
    assert area.mean() == pytest.approx(0.54, abs=0.03)
    assert (width / height).log().mean() == pytest.approx(0, abs=0.02)


def test_own_parameters_for_every_image() -> None:
    same = images(b=1).repeat(16, 1, 1, 1)
    out = augment(same, Recipe(jitter=1), generator())
    assert len({tuple(v.flatten()[:50].tolist()) for v in out}) == 16


def test_the_generator_decides_everything() -> None:
    x, recipe = images(), dataclasses.replace(Recipe(), **dict.fromkeys(_SWITCHES, 0.7))
    torch.manual_seed(5)
    one = make_views(x, recipe, 3, generator(3))
    torch.manual_seed(6)
    assert torch.equal(one, make_views(x, recipe, 3, generator(3)))
    assert not torch.equal(one, make_views(x, recipe, 3, generator(4)))
    assert one.shape == (6, 3, 3, 32, 32)
    assert not torch.equal(one[:, 0], one[:, 1])
    assert one.min() >= 0
    assert one.max() <= 1


_SWITCHES = "crop flip rotation jitter gray blur solarize noise sobel cutout".split()


@cases("switch", _SWITCHES)
@cases("c", [1, 3])
def test_each_step_is_a_switch(switch: str, c: int) -> None:
    x = images(c=c)
    plain = augment(x, OFF, generator())
    assert torch.equal(plain, augmentations.to_float(x))
    got = augment(x, dataclasses.replace(OFF, **{switch: 1.0}), generator())
    changed = (got - plain).flatten(1).abs().amax(1) > 1e-6
    assert got.shape == x.shape
    assert bool(changed.any()) == (not (switch == "gray" and c == 1))


def test_the_order_of_steps_can_be_chosen() -> None:
    assert augmentations.steps_of(Recipe())[:3] == ("crop", "rotation", "jitter")
    assert augmentations.steps_of(Recipe(order="blur, crop"))[:3] == ("blur", "crop", "rotation")
    with pytest.raises(ValueError, match="known: crop"):
        augmentations.steps_of(Recipe(order="zoom"))
    x, both = images(), dataclasses.replace(OFF, sobel=1.0, noise=1.0, noise_sigma=0.2)
    edges_of_noise = augment(x, both, generator())
    noisy_edges = augment(x, dataclasses.replace(both, order="sobel noise"), generator())
    gray = (noisy_edges - noisy_edges.mean(1, keepdim=True)).abs().amax((1, 2, 3))
    assert (gray > 0.1).all()  # noise after the edges colors them
    assert torch.equal(edges_of_noise[:, 0], edges_of_noise[:, 2])


def test_autocast_changes_nothing() -> None:
    x, recipe = images(), dataclasses.replace(Recipe(), **dict.fromkeys(_SWITCHES, 1.0))
    plain = augment(x, recipe, generator())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(augment(x, recipe, generator()), plain)


def test_noise_has_its_strength() -> None:
    gray = torch.full((8, 3, 32, 32), 128, dtype=torch.uint8)
    got = augment(gray, dataclasses.replace(OFF, noise=1, noise_sigma=0.1), generator())
    assert got.std().item() == pytest.approx(0.1, abs=0.005)


def test_each_view_gets_its_own_recipe() -> None:
    x = images(b=1).repeat(500, 1, 1, 1)
    recipe = dataclasses.replace(OFF, views="solarize=1 | flip=1, solarize=0.2 | blur=0.5")
    views = make_views(x, recipe, 5, generator())
    plain = augmentations.to_float(x)
    inverted = torch.where(plain >= 0.5, 1 - plain, plain)
    assert torch.equal(views[:, 0], inverted)
    assert torch.equal(views[:, 3], inverted)  # further views begin anew
    mirrored = plain.flip(-1)
    as_mirrored = (views[:, 1] - mirrored).flatten(1).abs().amax(1) < 1e-6
    as_both = (views[:, 1] - inverted.flip(-1)).flatten(1).abs().amax(1) < 1e-6
    assert bool((as_mirrored | as_both).all())
    assert as_both.float().mean() == pytest.approx(0.2, abs=0.06)
    unblurred = (views[:, 2] - plain).flatten(1).abs().amax(1) < 1e-6
    assert unblurred.float().mean() == pytest.approx(0.5, abs=0.08)
    assert torch.equal(augment(x, recipe, generator()), inverted)  # one view: the first


def test_views_alike_are_what_they_were() -> None:
    x, alike = images(), dataclasses.replace(Recipe(), views="")
    assert torch.equal(make_views(x, Recipe(), 2, generator()), make_views(x, alike, 2, generator()))
    same = dataclasses.replace(Recipe(), views="crop=1 | crop=1")
    assert torch.equal(make_views(x, same, 2, generator()), make_views(x, alike, 2, generator()))


def test_byols_two_strengths() -> None:
    """Table 6 of its appendix B."""
    first, second = dataclasses.replace(Recipe(), views="byol").each
    assert (first.blur, first.solarize, second.blur, second.solarize) == (1.0, 0.0, 0.1, 0.2)
    for view in (first, second):
        assert (view.crop, view.flip, view.jitter, view.gray) == (1.0, 0.5, 0.8, 0.2)
        strengths = (view.brightness, view.contrast, view.saturation, view.hue)
        assert strengths == (0.4, 0.4, 0.2, 0.1)


@cases(
    ("text", "why"),
    [
        ("blurr=1", "'blurr=1' is no setting of a view"),
        ("blur", "'blur' is no setting"),
        ("blur=1 | order=blur", "order"),
        ("blur=2", "blur must be at most 1"),
        ("views=byol", "no setting of a view"),
    ],
)
def test_what_a_view_cannot_have_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        create_recipe(Recipe(), {"views": text})
