"""Where weights of torchvision's and timm's models lie on this computer, and how they get there. Both libraries' own
places: torch hub's folder of checkpoints and Hugging Face's cache, so that what one program has fetched serves the
others. Only `fetch` speaks to the network."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import torch

from contrastive_core.errors import CannotImport, explained
from contrastive_core.models.libraries import Pretrained
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.storage.regular_files import printable

LOOK = 0.5  # seconds between two looks at how much of a file is there


def find(entry: Pretrained) -> Path | None:
    """The file of some weights in the caches of Hugging Face and torch hub, if it is there."""
    if entry.repo:
        from huggingface_hub import try_to_load_from_cache

        paths = (try_to_load_from_cache(entry.repo, name) for name in entry.files)
        if cached := next((p for p in paths if isinstance(p, str)), None):
            return Path(cached)
    if not entry.url:
        return None
    path = _hub_file(entry)
    return path if path.is_file() else None


def _hub_file(entry: Pretrained) -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints" / entry.url.rsplit("/", 1)[-1]


def fetch(entry: Pretrained, on_fraction: OnFraction = ignore_fraction) -> Path:
    """Fetch weights to where their library keeps them; another thread calls `on_fraction`. Raises: CannotImport."""
    try:
        return (_from_hugging_face if entry.repo else _from_url)(entry, on_fraction)
    except Exception as error:  # of the network, in as many classes as there are clients
        why = printable(explained(error), 200)
        values = {"name": entry.name, "host": entry.host, "why": why}
        raise CannotImport("{name} cannot be fetched from {host}: {why}", **values) from None


def _from_hugging_face(entry: Pretrained, on_fraction: OnFraction) -> Path:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    folder = Path(constants.HF_HUB_CACHE) / f"models--{entry.repo.replace('/', '--')}" / "blobs"
    with _watched(folder, "*.incomplete", entry.size, on_fraction):
        for name in entry.files:
            try:
                return Path(hf_hub_download(entry.repo, name))
            except EntryNotFoundError:
                continue
    raise CannotImport("{repo} has none of {files}", repo=entry.repo, files=", ".join(entry.files))


def _from_url(entry: Pretrained, on_fraction: OnFraction) -> Path:
    path = _hub_file(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    match = torch.hub.HASH_REGEX.search(path.name)  # type: ignore[attr-defined]
    check = match and match.group(1)
    with _watched(path.parent, f"{path.name}.*.partial", entry.size, on_fraction):
        torch.hub.download_url_to_file(entry.url, str(path), check, progress=False)
    return path


@contextlib.contextmanager
def _watched(folder: Path, files: str, size: int, on_fraction: OnFraction) -> Iterator[None]:
    """While inside, tell how much of `size` bytes the newest of some unfinished files has."""
    over = threading.Event()

    def look() -> None:
        while size and not over.wait(LOOK):
            with contextlib.suppress(OSError):
                found = [path.stat() for path in folder.glob(files)]
                newest = max(found, key=lambda about: about.st_mtime, default=None)
                on_fraction(min(1.0, newest.st_size / size) if newest else 0.0)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
