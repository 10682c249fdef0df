"""Jobs with result files of their own: embeddings and scores of a run, tables of samples, decoded images."""

from contrastive_core import runs
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, fraction_of
from contrastive_core.compare.embed import embed_run
from contrastive_core.data import datasets
from contrastive_core.data.dataset import ImageForm
from contrastive_core.engine.answers.scores import evaluate
from contrastive_core.samples import run_samples
from contrastive_core.samples.sample_table import SampleRequest, SampleTable, request_of
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import LAYERS


def evaluation(values: Values, on_progress: OnProgress, device: str) -> None:
    """Embed and score a run."""
    evaluate(runs.load(values["run"]), device=device, on_progress=on_progress)


def embedding(values: Values, on_progress: OnProgress, device: str) -> None:
    """Embed a split of a run: h and z, and on request both towers."""
    run = runs.load(values["run"])
    for layer in dict.fromkeys((*LAYERS, values.get("layer", "z"))):
        embed_run(run, values["split"], layer, device, fraction_of(on_progress, N_("embedding")))


def samples(values: Values, on_progress: OnProgress, device: str) -> None:
    """Create the table of all samples of a run's split, of loaded vectors or of a recording. Raises ValueError."""
    request = request_of(values["name"], values["split"], values["loss"], values["by"])
    sample_table(request, on_progress, device)


def sample_table(request: SampleRequest, on_progress: OnProgress, device: str = "auto") -> SampleTable:
    """Return the sample table of a request. Raises ValueError if its vectors are not stored."""
    if (run := request.run) is not None:
        return run_samples.samples_of_run(run, request.loss, request.split, on_progress, device, request.by)
    if (rows := request.space.rows()) is None:
        raise ValueError(message("no vectors named {name}", name=request.name))
    return run_samples.samples_of_vectors(request, rows, request.space.images(), on_progress, device)


def decoding(values: Values, on_progress: OnProgress, device: str) -> None:
    """Decode and cache the images of a data set."""
    form = ImageForm(values.get("size"), values.get("resize", "crop"))
    datasets.load(values["dataset"], values["split"], values["root"], form=form, on_progress=on_progress)
