"""`Pairs`: anchors, candidates and their relations, with builders for the common cases."""

from contrastive_core.pairs.builders import (
    from_bank,
    from_labels,
    from_mask,
    from_pairs,
    from_queue,
    from_towers,
    from_views,
)
from contrastive_core.pairs.types import Pairs

__all__ = ["Pairs", "from_bank", "from_labels", "from_mask", "from_pairs", "from_queue", "from_towers", "from_views"]
