"""The network that learns in the browser: its layers, losses, gradients and steps are PyTorch's and the library's."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from node import Node
from PIL import Image
from torch.nn.functional import normalize

from contrastive_core import losses, pairs
from contrastive_core.base.errors import BadSetting
from contrastive_core.spaces.small_samples import MOST, SmallImages, load_samples
from contrastive_lab.desktop.command import main
from contrastive_lab.playground import LOSSES
from contrastive_lab.playground.file import kernels, page

KERNELS = kernels()
HOSTILE = "</script><b>"
CLOSE = {"rtol": 1e-5, "atol": 2e-6}

STEP = """async ({sizes, w, X, n, slope, rate}) => {
  const net = await load("/playground/network.js"), it = {sizes, w: Float32Array.from(w)}, state = net.adam(it);
  const rows = net.forward(it, Float32Array.from(X), n);
  const {gradient, slope: below} = net.backward(it, rows, Float32Array.from(slope), n, true);
  const first = Array.from(rows.at(-1));
  net.descend(it, state, gradient, rate);
  net.descend(it, state, gradient, rate);
  return {Y: first, gradient: Array.from(gradient), below: Array.from(below), w: Array.from(it.w)};
}"""
COMPARE = """async ({kernel, Y, d, labels, keys}) => {
  const {compare} = await load("/playground/objective.js"), more = {};
  if (labels) more.labels = labels;
  if (keys) more.keys = Float32Array.from(keys);
  const {value, slope} = compare(kernel, Float32Array.from(Y), d, more);
  return {value, slope: Array.from(slope)};
}"""
VICREG = """async ({Y, d}) => {
  const {vicReg} = await load("/playground/objective.js");
  const knobs = {invariance: 25, variance: 25, covariance: 1, deviation: 1};
  const {value, slope} = vicReg(knobs, Float32Array.from(Y), d);
  return {value, slope: Array.from(slope)};
}"""
COSINE = """async ({P, Y, d}) => {
  const {crossCosine} = await load("/playground/objective.js");
  const {value, ofPredictions, ofRows} = crossCosine(Float32Array.from(P), Float32Array.from(Y), d);
  return {value, ofPredictions: Array.from(ofPredictions), ofRows: Array.from(ofRows)};
}"""
SESSION = """async ({settings, steps, images, labels, kernels, shape}) => {
  const {session} = await load("/playground/session.js"), {meanOf} = await load("/playground/training.js");
  const told = [], take = session((message) => told.push(message)), X = Float32Array.from(images);
  const data = {images: X, labels, shape, learned: 40, mean: meanOf(X, 16, 40), kernels};
  take({kind: "start", data, settings, seed: 3});
  for (let k = 0; k < steps; k++) take({kind: "step"});
  const last = told.findLast(({kind}) => kind === "state");
  return {kinds: told.map(({kind}) => kind), sides: last.sides.map(({points, ...side}) =>
    ({...side, views: Array.from(side.views), points: Array.from(points)}))};
}"""
PROJECT = """async ({Z, d, looks}) => {
  const {begin, project} = await load("/playground/training.js"), rows = Float32Array.from(Z);
  const data = {images: new Float32Array(16), mean: new Float32Array(16), labels: null, shape: [4, 4], learned: 1};
  const t = begin(data, 0, {dimensions: d});
  for (let k = 1; k < looks; k++) project(t, rows);
  return Array.from(project(t, rows));
}"""
CHANGED = """async ({images, kernels, changes}) => {
  const {session} = await load("/playground/session.js"), {meanOf} = await load("/playground/training.js");
  const {readSettings} = await load("/playground/setting.js"), X = Float32Array.from(images), told = [], due = [];
  const take = session((message) => told.push(message), (then) => due.push(then));
  const data = {images: X, labels: null, shape: [4, 4], learned: 40, mean: meanOf(X, 16, 40), kernels};
  take({kind: "start", data, settings: readSettings("[0, {}]", false).settings, seed: 3});
  take({kind: "step"});
  for (const sides of changes) {
    take({kind: "set", settings: readSettings(JSON.stringify([0, ...sides]), false).settings});
    due.splice(0).forEach((then) => then());
  }
  return told.map(({sides}) => sides.map(({step, setting, views}) => ({step, setting, seen: views[0]})));
}"""
SETTINGS = """async (text) => {
  const {readSettings} = await load("/playground/setting.js"), read = readSettings(text, true);
  const again = readSettings(JSON.stringify([read.seed, ...read.settings]), true);
  return {...read, again, withoutLabels: readSettings(text, false)};
}"""


def rows(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def flat(tensor: torch.Tensor) -> list[float]:
    return [float(v) for v in tensor.detach().flatten()]


def test_layers_and_two_steps_are_pytorchs(modules: Node) -> None:
    sizes, n, rate = [5, 7, 6, 3], 9, 0.01
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
    for seed, layer in enumerate(layers):
        layer.weight.data, layer.bias.data = (
            rows(*layer.weight.shape, seed=seed),
            rows(*layer.bias.shape, seed=seed + 9),
        )

    def weights() -> list[float]:
        return [v for layer in layers for part in (layer.weight.T, layer.bias) for v in flat(part)]

    X, slope, before = rows(n, 5, seed=20).requires_grad_(), rows(n, 3, seed=21), weights()
    parts = [m for layer in layers for m in (layer, torch.nn.ReLU())]
    model = torch.nn.Sequential(*parts[:-1])
    Y = model(X)
    Y.backward(slope)
    sent = {"sizes": sizes, "w": before, "X": flat(X), "n": n, "slope": flat(slope), "rate": rate}
    found = modules.evaluate(STEP, sent)
    np.testing.assert_allclose(found["Y"], flat(Y), **CLOSE)
    gradient = [v for layer in layers for part in (layer.weight.grad.T, layer.bias.grad) for v in flat(part)]
    np.testing.assert_allclose(found["gradient"], gradient, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["below"], flat(X.grad), rtol=1e-4, atol=1e-5)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    optimizer.step()
    optimizer.step()
    np.testing.assert_allclose(found["w"], weights(), **CLOSE)


@pytest.mark.parametrize("name", [*LOSSES, "vicreg"])
@pytest.mark.parametrize("knob", [0.05, 0.7])
def test_losses_of_a_batch_are_the_librarys(modules: Node, name: str, knob: float) -> None:
    d, z, of_class = 3, rows(12, 2, 3, seed=5).requires_grad_(), (torch.arange(12) % 4).repeat_interleave(2)
    knobs, script, more = {"margin" if name == "triplet" else "temperature": knob}, COMPARE, {}
    match name:
        case "nt_xent":
            built = pairs.from_views(z)
        case "info_nce":  # with a queue
            z = rows(8, d, seed=1).requires_grad_()
            keys, queue = normalize(rows(8, d, seed=2), dim=1), normalize(rows(30, d, seed=3), dim=1)
            built, more = pairs.from_queue(z, keys, queue), {"keys": [*flat(keys), *flat(queue)]}
        case "vicreg":
            z = (0.6 * rows(10, 2, d, seed=4)).requires_grad_()
            built, knobs, script = (
                pairs.from_views(z),
                {"invariance": 25.0, "variance": 25.0, "covariance": 1.0},
                VICREG,
            )
        case _:
            built, more = pairs.from_labels(z.reshape(-1, d), of_class), {"labels": of_class.tolist()}
    value = losses.create(name, **knobs)(built).value
    value.backward()
    found = modules.evaluate(script, {"kernel": {**KERNELS.get(name, {}), **knobs}, "Y": flat(z), "d": d, **more})
    assert found["value"] == pytest.approx(float(value.detach()), rel=1e-5)
    np.testing.assert_allclose(found["slope"], flat(z.grad), rtol=2e-4, atol=2e-5)


def test_cosine_of_predictions_and_the_other_view(modules: Node) -> None:
    P, Y = rows(12, 3, seed=6).requires_grad_(), rows(12, 3, seed=7).requires_grad_()
    other = normalize(Y, dim=1).reshape(6, 2, 3).flip(1).reshape(12, 3)
    value = -(normalize(P, dim=1) * other).sum(1).mean()
    value.backward()
    found = modules.evaluate(COSINE, {"P": flat(P), "Y": flat(Y), "d": 3})
    assert found["value"] == pytest.approx(float(value.detach()), rel=1e-5)
    np.testing.assert_allclose(found["ofPredictions"], flat(P.grad), **CLOSE)
    np.testing.assert_allclose(found["ofRows"], flat(Y.grad), **CLOSE)


def course(
    modules: Node, *settings: dict[str, Any], steps: int = 3, has_labels: bool = True, shape: tuple[int, int] = (4, 4)
) -> dict[str, Any]:
    first = modules.evaluate(SETTINGS, "[0, {}]")["settings"][0]
    images = np.random.default_rng(8).random((50, 16)).round(3)
    full = [{**first, "batch": 16, **some} for some in settings]
    labels = [i % 3 for i in range(50)] if has_labels else None
    sent = {
        "settings": full,
        "steps": steps,
        "images": images.ravel().tolist(),
        "labels": labels,
        "kernels": KERNELS,
        "shape": shape,
    }
    return dict(modules.evaluate(SESSION, sent))


@pytest.mark.parametrize("dimensions", [3, 32])
@pytest.mark.parametrize("loss", [*LOSSES, "vicreg", "simsiam"])
def test_every_loss_learns_from_the_same_seed(modules: Node, loss: str, dimensions: int) -> None:
    setting = {"loss": loss, "dimensions": dimensions}
    one, two = (course(modules, setting)["sides"][0] for _ in range(2))
    assert one == two
    assert one["step"] == 3
    assert one["points"] != course(modules, setting, steps=0)["sides"][0]["points"]
    lengths = np.square(np.reshape(one["points"], (50, 3))).sum(1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5) if dimensions == 3 else np.testing.assert_array_less(lengths, 1)


def test_many_dimensions_are_shown_on_the_three_directions_that_hold_most(modules: Node) -> None:
    d, spread = 32, np.array([3.0, 2.0, 1.5, *[0.3] * 29])
    Z = np.random.default_rng(2).normal(size=(200, d)) * spread @ np.linalg.qr(rows(d, d).numpy())[0]
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    points = np.reshape(modules.evaluate(PROJECT, {"Z": Z.ravel().tolist(), "d": d, "looks": 4}), (200, 3))
    kept = np.linalg.svd(Z, compute_uv=False)[:3]
    np.testing.assert_allclose(np.linalg.svd(points, compute_uv=False), kept, rtol=1e-4)
    three = Z[:, :3].ravel().tolist()
    np.testing.assert_allclose(modules.evaluate(PROJECT, {"Z": three, "d": 3, "looks": 1}), three, rtol=1e-6)


def test_a_change_while_it_is_paused_is_told_at_once_and_other_dimensions_begin_again(modules: Node) -> None:
    images = np.random.default_rng(8).random((50, 16)).round(3).ravel().tolist()
    changes = [[{"noise": 1, "temperature": 0.05}], [{"dimensions": 32}], [{"dimensions": 32}, {}], [{}, {}], [{}]]
    told = modules.evaluate(CHANGED, {"images": images, "kernels": KERNELS, "changes": changes})
    assert [[side["step"] for side in sides] for sides in told] == [[0], [1], [1], [0], [0, 0], [0, 0], [0]]
    assert told[2][0]["seen"] != told[1][0]["seen"]  # views at the new strength
    assert told[2][0]["setting"]["temperature"] == 0.2  # of the step whose figures stand there
    assert [[side["setting"]["dimensions"] for side in sides] for sides in told[3:5]] == [[32], [32, 3]]


def test_simsiam_gathers_in_two_places_only_without_the_stop_gradient(modules: Node) -> None:
    def uniformity(has_stop: bool) -> float:
        setting = {"loss": "simsiam", "stopGradient": has_stop, "rate": 0.01}
        return float(course(modules, setting, steps=150)["sides"][0]["uniformity"])

    two_places = np.log((1 + np.exp(-8)) / 2)  # half of the pairs in one place, half of them opposite
    assert uniformity(False) > two_places - 0.1
    assert uniformity(True) < two_places - 0.5


def test_without_labels_it_learns_and_tells_no_accuracy(modules: Node) -> None:
    side = course(modules, {}, has_labels=False)["sides"][0]
    assert side["step"] == 3
    assert np.isfinite(side["loss"])
    assert side["knn"] is None  # NaN
    address = json.dumps([0, {"loss": "sup_con"}])
    assert modules.evaluate(SETTINGS, address)["withoutLabels"]["settings"][0]["loss"] == "nt_xent"


def test_rows_of_numbers_are_scaled_erased_and_blurred_but_not_moved(modules: Node) -> None:
    still = {"contrast": 0, "noise": 0, "erase": 0, "move": 1}
    one, other = course(modules, still, {**still, "erase": 1}, steps=1, shape=(1, 16))["sides"]
    first, second = np.reshape(one["views"], (-1, 2, 16)).transpose(1, 0, 2)
    np.testing.assert_allclose(first, second, atol=1e-6)  # two views of a row
    erased, mean = np.subtract(other["views"], one["views"]), 0.5
    assert 0.05 < np.mean(erased != 0) < 0.5
    images = np.random.default_rng(8).random((50, 16)).round(3)
    blank = np.reshape(other["views"], (-1, 16)) + images[:40].mean(0)
    np.testing.assert_allclose(blank[erased.reshape(-1, 16) != 0], mean, atol=1e-6)
    assert one["knn"] is not None


def test_twins_see_the_same_batches_and_differ_by_their_knob(modules: Node) -> None:
    same, other = course(modules, {}, {})["sides"], course(modules, {}, {"temperature": 0.02})["sides"]
    assert same[0] == same[1]
    assert other[0] == same[0]
    assert other[1]["points"] != same[1]["points"]
    assert other[1]["views"] == same[1]["views"]


def test_a_loss_that_is_no_number_stops_with_the_last_good_weights(modules: Node) -> None:
    found = course(modules, {"rate": 1e30}, steps=4)
    assert "broken" in found["kinds"]
    assert all(np.isfinite(found["sides"][0]["points"]))


@pytest.mark.parametrize(
    "text", ["", "null", "{", "[-1]", '[1, {"loss": "x", "temperature": "1"}]', '[1, {"temperature": 1e9}, 3, 4]']
)
def test_a_foreign_address_gives_the_first_setting(modules: Node, text: str) -> None:
    found, first = modules.evaluate(SETTINGS, text), modules.evaluate(SETTINGS, "[0, {}]")
    assert found["settings"] == first["settings"]
    assert found["again"]["settings"] == found["settings"]


def test_an_address_holds_settings_and_seed(modules: Node) -> None:
    text = json.dumps(
        [7, {"loss": "triplet", "margin": 1.5, "noise": 0.25}, {"temperature": 0.02, "stopGradient": False}]
    )
    found = modules.evaluate(SETTINGS, text)
    assert found["seed"] == 7
    one, two = found["settings"]
    assert (one["loss"], one["margin"], one["noise"]) == ("triplet", 1.5, 0.25)
    assert (two["temperature"], two["stopGradient"]) == (0.02, False)
    assert found["again"] == {key: found[key] for key in ("seed", "settings")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of 30 images, and a file that is none."""
    rng = np.random.default_rng(9)
    for name in ("<b>", "plain"):
        (tmp_path / name).mkdir()
        for i in range(30):
            Image.fromarray(rng.integers(0, 255, (40, 24, 3), np.uint8)).save(tmp_path / name / f"{i}.png")
    (tmp_path / "plain" / "broken.png").write_bytes(b"no image")
    return tmp_path


def test_a_folder_becomes_small_gray_images(folder: Path) -> None:
    small = load_samples(str(folder))
    assert (len(small), small.learned) == (60, 48)
    assert small.images.shape[1:] == (16, 16)
    assert small.classes == ("<b>", "plain")
    assert small.labels is not None
    assert np.bincount(small.labels).tolist() == [30, 30]


def test_the_command_takes_a_file_of_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    points = np.repeat([[0.0, 5.0], [9.0, -5.0]], 40, axis=0) + rng.normal(size=(80, 2))
    lines = [f"{a},{b},{name}" for (a, b), name in zip(points, ["<b>"] * 40 + ["plain"] * 40, strict=True)]
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["length,width,label", *lines, "1,1,"]))
    small = load_samples(str(path))
    assert (small.images.shape, small.learned, small.total) == ((80, 1, 2), 64, 81)
    assert small.classes == ("<b>", "plain")
    left = small.images[:, 0, 0] < 128
    assert small.labels is not None
    assert (left == (small.labels == 0)).all()
    assert abs(small.images.mean() - 127.5) < 1
    assert main(["playground", str(path), "--out", str(tmp_path / "page.html")]) == 0
    assert "<span>points.csv · 80</span>" in (tmp_path / "page.html").read_text("utf-8")
    wide = rng.normal(size=(3000, 700)).astype(np.float32)
    wide[0, 0] = np.nan
    np.save(tmp_path / "wide.npy", wide)
    assert load_samples(str(tmp_path / "wide.npy")).images.shape == (731, 1, 700)  # as many numbers as of 2,000 images
    np.save(tmp_path / "few.npy", wide[:19])
    listed = tmp_path / "list.csv"
    listed.write_text("image,label\nnone.png,a\n")
    with pytest.raises(BadSetting, match=r"list\.csv"):
        load_samples(f"csv:{listed}")  # images, not vectors
    with pytest.raises(BadSetting, match="has 18 readable samples; at least 20"):
        load_samples(str(tmp_path / "few.npy"))


def test_a_set_is_thinned_and_one_without_labels_has_none(folder: Path) -> None:
    shapes = load_samples("shapes")
    assert len(shapes) <= MOST
    assert shapes.total == 6000
    for path in folder.rglob("*.png"):
        path.rename(folder / f"{path.parent.name[-1]}{path.name}")
    for name in ("<b>", "plain"):
        (folder / name).rmdir()
    small = load_samples(f"folder:{folder}")
    assert small.labels is None
    assert len(small) == 60


def test_the_file_is_small_asks_for_nothing_and_escapes_names() -> None:
    images = np.random.default_rng(1).integers(0, 255, (MOST, 16, 16), np.uint8)
    text = page(KERNELS, SmallImages(images, np.zeros(MOST, np.int16), (HOSTILE,), 1600, MOST), HOSTILE)
    assert len(text.encode()) < 1_500_000
    assert "http" not in text.replace("http-equiv", "")
    assert HOSTILE not in text
    assert text.count("<script") == text.count("</script>") == 4
