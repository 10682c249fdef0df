"""`watch`: two lines in any training loop record the behavior of its loss, for the lab to show.

    from contrastive_core import watch

    with watch("my-run", loss="nt_xent", temperature=0.07, every=50) as w:
        ...
        w.step(z, labels=y, ids=index)              # or w.step(queries, keys, queue=queue)
        w.probe(encode, loader)                     # at chosen steps: maps and losses over time

A recording is a run folder without weights. The training thread only copies rows (steps.py); another thread computes
the figures and writes (recorder.py). `w.wrap` (criterion.py) reads the calls of a loss, and callback.py follows a
trainer."""

from contrastive_core.recording.callback import WatchCallback
from contrastive_core.recording.watch import Watch, watch

__all__ = ["Watch", "WatchCallback", "watch"]
