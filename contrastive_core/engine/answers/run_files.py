"""Evaluations, embeddings and tables of samples, which are kept in files of their own."""

from __future__ import annotations

from contrastive_core.embeddings.reading import read_images, read_rows
from contrastive_core.engine.answers.inputs import Values
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, fraction_of
from contrastive_core.records import runs
from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_core.records.sample_table import SampleTable
from contrastive_core.samples import run_samples


def evaluation(values: Values, on_progress: OnProgress) -> None:
    """Embed and score a run."""
    evaluate(runs.load(values["run"]), on_progress=on_progress)


def embedding(values: Values, on_progress: OnProgress) -> None:
    """Embed a split of a run, h and z."""
    run = runs.load(values["run"])
    for layer in "hz":
        embed_run(run, values["split"], layer, progress=fraction_of(on_progress, N_("embedding")))


def samples(values: Values, on_progress: OnProgress) -> None:
    """The table of every sample of a run's split, of loaded vectors or of a recording."""
    sample_table(request_of(values["name"], values["split"], values["loss"]), on_progress)


def sample_table(request: SampleRequest, on_progress: OnProgress, device: str = "auto") -> SampleTable:
    """The same, of what is asked for."""
    if (run := request.run) is not None:
        return run_samples.samples_of_run(run, request.loss, request.split, on_progress, device)
    if (rows := read_rows(request.rows)) is None:
        raise ValueError(message("there are no vectors {name}", name=request.name))
    return run_samples.samples_of_vectors(request, rows, read_images(request.rows), on_progress, device)
