"""References: runs that are compared with every other run on the same images, such as an imported encoder that training
should beat. The user names them once; the list is stored in `data_home()`. Torch-free."""

from dataclasses import dataclass

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_schema import schema_of
from contrastive_core.base.messages import N_, message
from contrastive_core.base.paths import data_home
from contrastive_core.runs.run import Run

PREFIX = "reference:"  # of a source of scores; the run's name follows
NONE = "none"  # on the command line: no reference
MOST = 20


@dataclass(frozen=True)
class _Setting:
    """Content of the file with the list of references."""

    runs: list[str]


SETTING = schema_of(_Setting)


def read_names() -> list[str]:
    """Return the names of the references, in the user's order; none if the file is missing or damaged."""
    try:
        return [str(name) for name in json_files.read_object(data_home() / "references.json", SETTING)["runs"]][:MOST]
    except (OSError, ValueError):
        return []


def write_names(names: list[str]) -> None:
    """Replace the list. Raises BadSetting for more than MOST names."""
    if len(names) > MOST:
        raise BadSetting("at most {most} references; remove one first", most=MOST)
    json_files.write_json(data_home() / "references.json", {"runs": names})


def add(name: str) -> None:
    """Add a run to the references. Raises ValueError if it does not exist or has no weights."""
    runs.load(name).weights_hash()
    write_names([*(one for one in read_names() if one != name), name])


def remove(name: str) -> None:
    """Remove a run from the references. Raises BadSetting if it is not one."""
    names = read_names()
    if name not in names:
        listed = ", ".join(names) or N_("none")
        raise BadSetting("{name} is not among the references: {listed}", name=repr(name), listed=listed)
    write_names([one for one in names if one != name])


def references_on(data_key: str, but: str = "") -> list[Run]:
    """Return the references on some images, except the run `but`. Deleted runs are skipped.
    Args: data_key: as from `Run.data_key`."""
    found = []
    for name in read_names():
        try:
            run = runs.load(name)
        except (ValueError, OSError):  # gone, or damaged
            continue
        if name != but and run.weights.exists() and run.data_key == data_key:
            found.append(run)
    return found


def references_of(run: Run) -> list[Run]:
    """Return the references of a run: other runs on the same images."""
    return references_on(run.data_key, but=run.name)


def named_on(names: list[str] | None, data_key: str, but: str = "") -> list[Run]:
    """Return the references that a command names, or the stored ones if it names none. Raises BadSetting for a run on
    other images, ValueError for one without weights."""
    if names is None:
        return references_on(data_key, but)
    found = [runs.load(name) for name in dict.fromkeys(names) if name != NONE]
    for run in found:
        run.weights_hash()
        if run.data_key != data_key:
            raise BadSetting(
                "{name} uses {own}, not {data}: `import run:{name} --dataset {data}` creates a run on {data}",
                name=run.name,
                own=run.data_key,
                data=data_key,
            )
    return found


def source_title(source: str) -> str:
    """Return the title of a reference as a source of scores."""
    return message("{name}, reference", name=source.removeprefix(PREFIX))
