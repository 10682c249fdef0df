"""One script per line of RESULTS.md; `python -m benchmarks` runs them all."""

import contrastive_core  # noqa: F401  (before torch, as in the app: it says how threads wait)
