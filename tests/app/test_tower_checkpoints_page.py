"""Compare of two checkpoints of one clip run, and the curves of its two towers on Train."""

import json

import numpy as np
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.engine import answers
from contrastive_core.runs.run import Run
from contrastive_lab import forming_map
from contrastive_lab.components.scatter import ScatterData


def words(app: AppTest) -> str:
    return "\n".join(str(part.value) for part in [*app.markdown, *app.caption, *app.subheader, *app.info])


def asked(run: Run) -> dict:
    return {"run": run.name, "epochs": [1, 2], "weights": run.weights_hash()}


def test_two_checkpoints_of_one_run_are_compared(clip_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = answers.make("checkpoints", asked(clip_run)).meta["differences"]
    app = opened("compare", monkeypatch, runs=clip_run.name)
    assert not app.exception
    assert "Two checkpoints of one run" in words(app)
    assert "From epoch 1 to 2 the modality gap" in words(app)
    (table,) = app.dataframe
    frame = table.value
    assert list(frame.columns) == ["score", "epoch 1", "epoch 2", "difference", "95 %"]
    assert frame["score"].iloc[0] == "Recall@1, image → caption"
    assert frame["difference"].iloc[-1] == f"{made['modality_gap'][0]:+.3f}"
    assert [box.value for box in app.selectbox if box.label.endswith("epoch")] == [1, 2]


def test_among_several_runs_the_checkpoints_are_a_view(clip_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = f"{clip_run.name},simclr-digits"
    app = opened("compare", monkeypatch, runs=names, view="Checkpoints")
    assert not app.exception  # of other data: no samples in common, which is said
    app = opened("compare", monkeypatch, runs="simclr-digits,moco_v2-digits")
    assert "Checkpoints" not in app.segmented_control(key="compare-view").options


def test_a_run_with_one_checkpoint_says_what_is_missing(clip_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (clip_run.path / "snapshots" / "epoch-0001.npz").unlink()
    app = opened("compare", monkeypatch, runs=clip_run.name)
    assert not app.exception
    assert "keeps 1 of the two checkpoints" in words(app).replace("\\", "")
    assert "Choose at least two, or compare two checkpoints below." in words(app)


def test_train_shows_recall_and_gap_and_the_learned_temperature(clip_run: Run, monkeypatch) -> None:
    app = opened("train", monkeypatch, watch=clip_run.name, view="curves")
    assert not app.exception
    keys = [chart.proto.id for chart in app.get("plotly_chart")]
    for part in ("recall", "gap", "temperature", "knn"):
        assert any(f"{part}-{clip_run.name}" in key for key in keys), keys


def test_without_classes_train_shows_recall_in_the_place_of_knn(clip_run: Run, monkeypatch) -> None:
    clip_run.path.joinpath("run.json").write_text(json.dumps({**clip_run.manifest, "classes": []}))
    for path in clip_run.path.glob("snapshots/*.npz"):
        with np.load(path) as kept:
            arrays = dict(kept)
        arrays["labels"][:] = -1
        np.savez(path, **arrays)
    metrics = clip_run.path / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("knn_train_sample", "other"))
    drawn: list[ScatterData] = []
    monkeypatch.setattr(forming_map, "draw_scatter", lambda data, **_look: drawn.append(data))
    app = opened("train", monkeypatch, watch=clip_run.name)
    assert not app.exception
    assert drawn[0].color is None
    (figures,) = (one.proto.body for one in app.get("html") if 'class="sparkline"' in one.proto.body)
    assert [title in figures for title in ("Loss", "Recall@1, image → caption", "kNN")] == [True, True, False]
    app.segmented_control(key="train-view").set_value("curves").run()
    assert not any("knn-" in chart.proto.id for chart in app.get("plotly_chart"))
