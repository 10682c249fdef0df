"""The curves of the two towers of a clip run on Train."""

import json

import numpy as np
from opened_page import opened

from contrastive_core.runs.run import Run
from contrastive_lab import forming_map
from contrastive_lab.components.scatter import ScatterData


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
