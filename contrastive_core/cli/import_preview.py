"""A preview of `import` for a page. Torch-free."""

from contrastive_core.base.json_files import JsonObject
from contrastive_core.engine.calls import in_worker


@in_worker
def import_preview(*arguments: str) -> JsonObject:
    """Describe the run that an import with these arguments would create. Raises: ValueError, OSError."""
    from contrastive_core.cli.import_checkpoint import preview

    return preview(*arguments)
