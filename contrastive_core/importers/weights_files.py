"""Where weights of torchvision's and timm's models lie on this computer, and how they get there.

Both libraries' own places: torch hub's folder of checkpoints and Hugging Face's cache, so that what
one program has fetched serves the others. Only `fetch` speaks to the network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contrastive_core.errors import CannotImport, explained
from contrastive_core.storage.regular import printable

if TYPE_CHECKING:
    from contrastive_core.models.libraries import Pretrained

__all__ = ["fetch", "find"]


def find(entry: Pretrained) -> Path | None:
    """The file of some weights in the caches of Hugging Face and torch hub, if it is there."""
    import torch

    if entry.repo:
        from huggingface_hub import try_to_load_from_cache

        paths = (try_to_load_from_cache(entry.repo, name) for name in entry.files)
        if cached := next((p for p in paths if isinstance(p, str)), None):
            return Path(cached)
    if not entry.url:
        return None
    path = Path(torch.hub.get_dir()) / "checkpoints" / entry.url.rsplit("/", 1)[-1]
    return path if path.is_file() else None


def fetch(entry: Pretrained) -> Path:
    """Fetch some weights to where their library keeps them. Raises: CannotImport."""
    try:
        return _from_hugging_face(entry) if entry.repo else _from_url(entry)
    except Exception as error:  # of the network, in as many classes as there are clients
        why = printable(explained(error), 200)
        raise CannotImport(f"{entry.name} cannot be fetched from {entry.host}: {why}") from None


def _from_hugging_face(entry: Pretrained) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    for name in entry.files:
        try:
            return Path(hf_hub_download(entry.repo, name))
        except EntryNotFoundError:
            continue
    raise CannotImport(f"{entry.repo} has none of {', '.join(entry.files)}")


def _from_url(entry: Pretrained) -> Path:
    import torch

    name = entry.url.rsplit("/", 1)[-1]
    path = Path(torch.hub.get_dir()) / "checkpoints" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    match = torch.hub.HASH_REGEX.search(name)  # type: ignore[attr-defined]
    torch.hub.download_url_to_file(entry.url, str(path), match and match.group(1), progress=False)
    return path
