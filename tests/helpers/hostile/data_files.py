"""Readers of data: vectors, tables, pictures, lists of samples, arrays, sweeps. No torch."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.storage import ROOT
from contrastive_core.data import image_decoding, overrides
from contrastive_core.spaces import attached_files, file_formats
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.sweeps import sweep_file
from hostile.attack import Target

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
LABELS = (np.arange(12) % 3).astype(np.int64)
DEEP = b"[" * 100_000


class Harm:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return Path.touch, (self.target,)


def targets(folder: Path) -> Iterator[Target]:
    yield from vectors(folder)
    yield from pictures(folder)
    yield from lists(folder)
    path = folder / "arrays.npz"
    write_npz(path, x=np.arange(50), y=np.ones((3, 4)))
    yield Target(path, lambda: read_npz(path))
    sweep = folder / "sweep.toml"
    sweep.write_bytes(next((ROOT / "sweeps").glob("*.toml")).read_bytes())
    long_key = b".".join([b"a"] * 50_000) + b" = 1\n"
    yield Target(
        sweep,
        lambda: sweep_file.load(sweep),
        structures=(
            DEEP,
            b"",
            b"\x00",
            b"a = " + DEEP,
            long_key,
            b'"' + b"a" * 10**6,
            b"[grid]\nseed = []\n",
            b"[grid]\nseed = [nan]\n",
            b"grid = 3\n",
        ),
    )


def vectors(folder: Path) -> Iterator[Target]:
    rows = EmbeddingSet(X, LABELS, classes=("a", "b", "c"), columns={"path": np.array(["x"] * 12)})
    np.save(folder / "plain.npy", X)
    np.savez(folder / "plain.npz", embeddings=X, labels=LABELS)
    rows.save(folder / "ours.npz")
    rows.save(folder / "ours.parquet")
    table = pd.DataFrame({"id": [f"i{i}" for i in range(12)], "class": ["x", "y"] * 6})
    table[["a", "b", "c"]] = X
    table.to_csv(folder / "plain.csv", index=False)
    table.to_parquet(folder / "plain.parquet")
    harm = pickle.dumps(Harm(folder.parent / "touched"))
    stored = pa.table({"embedding": [[1.0, 2.0]] * 3, "image": [harm] * 3})
    pq.write_table(stored, folder / "stored.parquet")
    objects = np.array([Harm(folder.parent / "touched")], dtype=object)
    np.save(folder / "objects.npy", objects, allow_pickle=True)
    pickled = (folder / "objects.npy").read_bytes()
    (folder / "objects.npy").unlink()
    for name in ("plain.npy", "plain.npz", "ours.npz", "plain.csv", "plain.parquet", "ours.parquet", "stored.parquet"):
        path = folder / name

        def read(path: Path = path) -> None:
            found = file_formats.read(path)
            assert found.features.shape == (len(found), found.width)
            assert len(found.ids) == len(found)
            attached_files.pictures_of(path, found)

        yield Target(path, read, structures=(b"", b"\x00" * 100, harm, pickled, DEEP))


def pictures(folder: Path) -> Iterator[Target]:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n{} loop\n"
    for ending in ("png", "jpg", "gif", "bmp", "webp", "tif", "ppm"):
        path = folder / f"picture.{ending}"
        Image.fromarray(pixels).save(path)
        refusals = (
            ValueError,
            OSError,
            SyntaxError,
            EOFError,
            Image.DecompressionBombError,
            TypeError,
            IndexError,
            KeyError,
            AttributeError,
        )

        def read(path: Path = path) -> None:
            assert image_decoding.decode_image(path, 8, 3)[0].shape == (3, 8, 8)

        # decoding and `_thumbnail` leave out a picture for whatever Pillow raises
        yield Target(path, read, (*refusals, Exception), (script, b"", script * 100))


def lists(folder: Path) -> Iterator[Target]:
    files = {
        "ids.csv": b"id,label\nx,1\ny,2\n",
        "ids.json": b'["x", "y"]',
        "ids.txt": b"x\ny\n",
        "labels.csv": b"id,label\nx,1\ny,2\n",
        "labels.json": b'{"x": "1", "y": "2"}',
    }
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content)
        reader = overrides.read_ids if name.startswith("ids") else overrides.read_labels
        yield Target(
            path,
            lambda path=path, reader=reader: reader(str(path)),
            structures=(
                b"",
                DEEP,
                b"id,label\n" + b'"' * 200_000,
                b"id,label\nx\n",
                b"id\nx,y,z\n",
                b"null",
                b"id,label\r\n" + b"\x00" * 9,
                b"\xff\xfe",
                b"id," + b"x" * 200_000,
            ),
        )
