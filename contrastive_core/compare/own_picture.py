"""The images of a run that are most similar to a user's picture."""

import contextlib

import numpy as np
import torch

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.lock import scratch_folder
from contrastive_core.compare.embed import data_of, embed_run, load_model
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.image_sets import StreamedImages
from contrastive_core.ops.similarity import full_precision
from contrastive_core.runs.run import Run


def nearest_to_picture(run: Run, split: str, picture: bytes, count: int) -> list[tuple[str, float]]:
    """Return the ids of the `count` images of a split whose h is most similar to the picture's. Raises BadSetting if it
    is not an image, ValueError without weights or data."""
    dataset = data_of(run, split)
    image = decode_like(dataset, picture)
    model, rows = load_model(run, dataset), embed_run(run, split, "h")
    device = next(model.parameters()).device
    with torch.no_grad(), full_precision(device):
        h = model.features(to_float(torch.from_numpy(image[None]).to(device)))[0].float().cpu().numpy()
    cosines = rows.features @ h / (rows.lengths * max(float(np.linalg.norm(h)), 1e-12))
    return [(rows.ids[row], float(cosines[row])) for row in np.argsort(-cosines, kind="stable")[:count]]


def decode_like(dataset: Dataset, picture: bytes) -> np.ndarray:
    """Decode a picture to (c, h, w) uint8, in the size and channels of a data set's images, in a separate process.
    Raises BadSetting if it is not an image."""
    channels, height, width = dataset.images.shape[1:]
    form = (min(height, width), channels, dataset.form.resize if dataset.form else "crop")
    with scratch_folder() as folder:
        path = folder / "picture"
        path.write_bytes(picture)
        images = StreamedImages([str(path)], form)
        with contextlib.closing(images.pool):
            image = images[0]
        if images.failed:
            raise BadSetting("This file cannot be read as an image: {reason}", reason=images.failed[str(path)])
    return image
