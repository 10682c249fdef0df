"""`watch`: two lines in somebody else's training loop, and the lab sees what its loss does.

    from contrastive_core import watch
    with watch("my-run", loss="nt_xent", temperature=0.07, every=50) as w:
        ...
        w.step(z, labels=y, ids=index)              # or w.step(queries, keys, queue=queue)
        w.probe(encode, loader)                     # at chosen steps: maps and losses over time

A recording is a run folder like any other, without weights. The training thread only copies rows
(handed.py); a thread of its own takes the figures and writes (recorder.py). Adapters: `w.wrap`
(criterion.py), lightning.py and transformers.py, imported only when they are asked for.
"""

from contrastive_core.recording.watch import Watch, watch

__all__ = ["Watch", "watch"]
