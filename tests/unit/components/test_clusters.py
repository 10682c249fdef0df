"""The order of rows and columns in the live view's matrix."""

import numpy as np
import pytest
from node import Node


@pytest.mark.parametrize("anchors", [64, 16])
def test_clusters_stand_together(modules: Node, anchors: int) -> None:
    """Groups that came mixed stand together, in a square batch and in a rectangular one."""
    rng = np.random.default_rng(0)
    group = np.arange(64) * 27 % 8
    rows = np.eye(8)[group] + 0.1 * rng.standard_normal((64, 8))
    scores = rows[:anchors] @ rows.T
    names = [f"row {i}" for i in range(64)]
    order, columns = modules.evaluate(
        """async ([S, meta, n]) => {
          const { clustersOf } = await load("/loss_view/order.js");
          return clustersOf({ n, w: 64, S: Float32Array.from(S), meta });
        }""",
        [scores.ravel().tolist(), {"names": names[:anchors], "columnNames": names, "scoreName": "similarity"}, anchors],
    )
    for found, m in ((order, anchors), (columns, 64)):
        assert sorted(found) == list(range(m))
        changes = np.count_nonzero(np.diff(group[found]))
        assert changes == len(np.unique(group[:m])) - 1
