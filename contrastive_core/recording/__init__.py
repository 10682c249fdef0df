"""`watch`: two lines in any training loop record what its loss does, for the lab to show.

    from contrastive_core import watch
    with watch("my-run", loss="nt_xent", temperature=0.07, every=50) as w:
        ...
        w.step(z, labels=y, ids=index)              # or w.step(queries, keys, queue=queue)
        w.probe(encode, loader)                     # at chosen steps: maps and losses over time

A recording is a run folder like any other, without weights. The training thread only copies rows
(step_copies.py); another thread computes the figures and writes (recorder.py). Adapters: `w.wrap`
(criterion.py), lightning.py and transformers.py, imported only on request.
"""

from contrastive_core.recording.watch import Watch, watch

__all__ = ["Watch", "watch"]
