"""How far a map can be believed: trustworthiness and continuity (Venna & Kaski 2001), and what maps of several seeds
have in common.

Both judge anchors against all rows: exactly up to JUDGED rows, above on a stated sample. Rows are brought to length 1
block by block, so that a judgment holds no second copy of an embedding.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from contrastive_core.device import pick_device
from contrastive_core.ops.recall import overlap
from contrastive_core.ops.similarity import unit_rows

__all__ = ["agreement", "judge"]

CELLS = 1 << 26  # distances at a time, in each of both spaces: 512 MiB of float64
BLOCK = 1 << 22  # numbers of an embedding at a time
JUDGED = 5000  # anchors that are judged when there are more rows: enough for two digits
MANY = 200_000  # rows, above which fewer anchors are judged: each is compared with all rows
JUDGED_OF_MANY = 500
JUDGED_K = 15
Points = Callable[[slice | Tensor], Tensor]  # rows of a space (r, d), float64


def judge(
    features: np.ndarray, xy: np.ndarray, k: int = JUDGED_K, device: str = "auto", landmarks: np.ndarray | None = None
) -> dict[str, float]:
    """Trustworthiness (1 when no row is a neighbor on the map without being one in the embedding, by cosine) and
    continuity (1 when no neighbor in the embedding is torn away on the map) at k, that k, and how many rows they were
    judged on of how many. Args: landmarks: rows that others were placed by: theirs alone is told too."""
    n = len(xy)
    k = max(1, min(k, (n - 2) // 2))
    trust, continued = _of_anchors(features, xy, k, device)
    quality = {
        "trustworthiness": float(trust.mean()),
        "continuity": float(continued.mean()),
        "k": k,
        "judged": len(trust),
        "n": n,
    }
    if landmarks is not None and (of_landmarks := np.isin(_anchors(n), landmarks)).any():
        quality["trustworthiness_of_landmarks"] = float(trust[of_landmarks].mean())
    return quality


def agreement(maps: list[np.ndarray], k: int = JUDGED_K) -> float:
    """Mean share of the k nearest rows that two maps have in common, over all pairs of maps."""
    from scipy.spatial import KDTree  # in the plane no search by products is as fast

    indices = []
    for xy in maps:
        near = KDTree(xy).query(xy, k + 1, workers=-1)[1]  # (n, k + 1), itself among them
        other = near != np.arange(len(xy))[:, None]
        other[other.all(1), -1] = False  # rows at one place: any of them may be left out
        indices.append(near[other].reshape(len(xy), k))
    shares = [float(overlap(a, b).mean()) for i, a in enumerate(indices) for b in indices[:i]]
    return float(np.mean(shares))


def _of_anchors(features: np.ndarray, xy: np.ndarray, k: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Trustworthiness and continuity of each anchor (a), computed on the device called `name`.

    1 − 2/(k(2n−3k−1)) Σ_j (rank of j in one space − k), j a k-neighbor in the other only. Rows at one distance share a
    rank.
    """
    n, device = len(xy), pick_device(name)

    def sphere(at: slice | Tensor) -> Tensor:
        some = features[at if isinstance(at, slice) else at.numpy()]
        return unit_rows(some).to(device).double()

    plane = torch.from_numpy(xy).to(device).double()
    excess: list[list[Tensor]] = [[], []]
    for rows in torch.from_numpy(_anchors(n)).split(max(1, min(512, CELLS // n))):
        truth = _distances(sphere, rows, n, max(1, BLOCK // features.shape[1]))  # (r, n)
        drawn = _distances(lambda at: plane[at], rows, n, n)
        excess[0].append(_excess(truth, drawn, k))
        excess[1].append(_excess(drawn, truth, k))
    scale = 2 / (k * (2 * n - 3 * k - 1))
    trust, continued = (1 - scale * torch.cat(parts).cpu().numpy() for parts in excess)
    return trust, continued


def _excess(ranked: Tensor, other: Tensor, k: int) -> Tensor:
    """By how much the k nearest of `other` (r, n) lie beyond rank k in `ranked`, summed: (r)."""
    near = other.topk(k, largest=False).indices  # (r, k)
    total = torch.zeros(len(ranked), dtype=torch.float64, device=ranked.device)
    for column in ranked.gather(1, near).T:  # (r)
        total += ((ranked < column[:, None]).sum(1) + 1 - k).clamp_min(0)
    return total


def _anchors(n: int) -> np.ndarray:
    """Numbers (a) of the rows that are judged, of n: evenly spaced."""
    return np.linspace(0, n - 1, min(n, JUDGED if n <= MANY else JUDGED_OF_MANY)).astype(np.int64)


def _distances(points: Points, rows: Tensor, n: int, step: int) -> Tensor:
    """Squared distances (r, n), float64, of some rows to all, `step` of these at a time; a row to itself is infinitely
    far."""
    x = points(rows)
    away = torch.empty(len(rows), n, dtype=torch.float64, device=x.device)
    for i in range(0, n, step):
        block = points(slice(i, i + step))
        torch.mm(x, block.mT, out=away[:, i : i + step])
        away[:, i : i + step].mul_(-2).add_(block.square().sum(1))
    away += x.square().sum(1, keepdim=True)
    away[torch.arange(len(rows)), rows] = torch.inf
    return away
