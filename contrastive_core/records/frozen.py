"""Frozen encoders: encoders that were trained elsewhere and are judged as they are, beside raw pixels and the untrained
encoder. The user names hers once; the list lies in `data_home()`. Torch-free.

An encoder is written `timm:NAME`, `torchvision:NAME`, either with `=FILE` behind it for a file of its weights,
`run:NAME` for the encoder of a run, or as the path of a checkpoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.paths import data_home
from contrastive_core.records import runs
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.storage.json_schema import schema_of

KIND = "frozen"  # of the question that asks for their scores
DIFFERENCES = "frozen_differences"  # of the question how runs differ from one on the same images
LIBRARIES = ("timm:", "torchvision:")
RUN = "run:"
COMMON = ("weights", "model", "checkpoint", "pytorch_model", "best", "last")  # stems of files that say nothing
NONE = "none"  # on the command line: no frozen encoder
MOST = 20  # encoders that a user names
PREFIX = "frozen:"  # of a source of scores that is a frozen encoder; its title follows
HOW = N_("timm:NAME, torchvision:NAME, run:NAME or the path of a file of weights")


@dataclass(frozen=True)
class FrozenEncoder:
    """A frozen encoder. `name`: a library's model, `run:NAME` or a file's path; `weights`: a file for a library's
    model, "" for what the library has fetched before."""

    name: str
    weights: str = ""

    @property
    def text(self) -> str:
        """As a user writes it."""
        return f"{self.name}={self.weights}" if self.weights else self.name

    @property
    def file(self) -> Path | None:
        """The file of weights that was named; None where the library or the run knows it."""
        if self.weights:
            return Path(self.weights).expanduser()
        return None if self.name.startswith((*LIBRARIES, RUN)) else Path(self.name).expanduser()

    @property
    def title(self) -> str:
        """Its name on pages and in tables, without folders."""
        if self.file is None:
            return self.name
        file = "/".join(self.file.parts[-2:]) if self.file.stem in COMMON else self.file.name
        return f"{self.name} ({file})" if self.weights else file

    @property
    def source(self) -> str:
        """The key of its scores beside "h", "raw" and "random"."""
        return PREFIX + self.title

    def stamp(self) -> str:
        """Changes with the weights: of a file its time and size, of a run the hash of its weights; "" for a library's,
        whose names stand for one file each. Raises ValueError where there is no such file or run."""
        if self.name.startswith(RUN):
            return runs.load(self.name.removeprefix(RUN)).weights_hash()
        if (file := self.file) is None:
            return ""
        try:
            about = file.stat()
        except OSError:
            raise BadSetting("there is no file {file}; correct the path of the frozen encoder", file=file) from None
        return f"{about.st_mtime_ns}-{about.st_size}"


def parse(text: str) -> FrozenEncoder:
    """The encoder that a text names. Raises BadSetting for a text that names none."""
    text = text.strip()
    name, equals, file = text.partition("=")
    if text.startswith(LIBRARIES):
        if not name.partition(":")[2].strip() or (equals and not file.strip()):
            raise BadSetting("a frozen encoder is written {how}; got {text}", how=HOW, text=repr(text))
        return FrozenEncoder(name.strip(), _absolute(file.strip()))
    if not text.removeprefix(RUN).strip():
        raise BadSetting("a frozen encoder is written {how}; got {text}", how=HOW, text=repr(text))
    return FrozenEncoder(text if text.startswith(RUN) else _absolute(text))


def parse_all(texts: Iterable[str] | None) -> list[FrozenEncoder]:
    """The encoders that a command names; those that the user named once where it names none. Raises BadSetting."""
    if texts is None:
        return read_list()
    chosen = list(dict.fromkeys(parse(text) for text in texts if text.strip() != NONE))
    _check_titles(chosen)
    return chosen


def read_list() -> list[FrozenEncoder]:
    """The encoders that the user named, in her order; none where the file is missing or damaged."""
    try:
        record = json_files.read_object(_path(), SETTING)
        return [FrozenEncoder(**entry) for entry in record["encoders"]][:MOST]
    except (OSError, ValueError):
        return []


def add(encoder: FrozenEncoder) -> None:
    """Name an encoder from now on. Raises BadSetting for one too many, or two of one title."""
    chosen = [*(e for e in read_list() if e != encoder), encoder]
    if len(chosen) > MOST:
        raise BadSetting("at most {most} frozen encoders; remove one first", most=MOST)
    _check_titles(chosen)
    _write(chosen)


def remove(text: str) -> None:
    """Leave an encoder out from now on, by its text or its title. Raises BadSetting where it is none of them."""
    before = read_list()
    chosen = [e for e in before if text not in (e.text, e.title)]
    if len(chosen) == len(before):
        names = ", ".join(e.text for e in before) or N_("none")
        raise BadSetting("{text} is not among the frozen encoders: {names}", text=repr(text), names=names)
    _write(chosen)


def source_title(source: str) -> str:
    """The title of a frozen encoder's source of scores."""
    return message("{name}, frozen", name=source.removeprefix(PREFIX))


def request(encoder: FrozenEncoder, config: Mapping[str, Any], fingerprint: str) -> JsonObject:
    """The values of the question for its scores on the test images of a run's data set.

    Args: config: the run's settings; fingerprint: of its data. Raises ValueError where its file or run is gone."""
    data = {key: config.get(key) for key in ("dataset", "root", "image_size", "resize")}
    return {"encoder": encoder.text, "stamp": encoder.stamp(), "data": data, "fingerprint": fingerprint}


def _absolute(file: str) -> str:
    return str(Path(file).expanduser().absolute()) if file else ""


def _check_titles(chosen: list[FrozenEncoder]) -> None:
    titles = [e.title for e in chosen]
    if twice := next((t for t in titles if titles.count(t) > 1), None):
        raise BadSetting("two frozen encoders are called {title}: rename one of the files", title=twice)


def _path() -> Path:
    return data_home() / "frozen_encoders.json"


def _write(encoders: list[FrozenEncoder]) -> None:
    _path().parent.mkdir(parents=True, exist_ok=True)
    json_files.write_json(_path(), {"encoders": [dataclasses.asdict(e) for e in encoders]})


@dataclass(frozen=True)
class _Setting:
    """The file of the setting."""

    encoders: list[FrozenEncoder]


SETTING = schema_of(_Setting)
