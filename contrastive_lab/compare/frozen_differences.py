"""Compare: how each run differs from the frozen encoders that the user named, on the same test images."""

from collections.abc import Sequence

import streamlit as st

from contrastive_core.records import frozen
from contrastive_core.records.comparison import ACCURACIES, Difference
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_lab import format, frozen_encoders
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.tables import draw_table

SMALLEST_P = 1e-4  # smaller ones are not told apart


def draw(spaces: Sequence[EmbeddingRef]) -> None:
    """A row for each run, encoder and accuracy; nothing where no encoder has scores on these images."""
    of_runs = [space for space in spaces if space.run]
    run = of_runs[0].run if of_runs else None
    scored = frozen_encoders.known(run) if run else {}
    rows = []
    for encoder in (e for e in frozen.read_list() if e.source in scored):
        assert run is not None  # it has scores on the images of one
        values = {
            "spaces": [space.values for space in of_runs],
            "names": [space.title for space in of_runs],
            "frozen": frozen_encoders.values_of(encoder, run),
        }
        made = answer_or_wait(frozen.DIFFERENCES, values, message("Testing against {name}", name=encoder.title))
        found = made.meta["differences"] if made else []
        rows += [_row(Difference(**{**plain, "interval": tuple(plain["interval"])})) for plain in found]
    if not rows:
        return
    st.subheader(_("Against frozen encoders"))
    draw_table(rows, hide_index=True, height="content" if len(rows) < 12 else "auto")
    text = _(
        "The run's accuracy less that of the frozen encoder on the same test images, in points: 95 % interval by a "
        "paired bootstrap, McNemar's exact test, p corrected for the accuracies of one run."
    )
    st.caption(text)


def _row(d: Difference) -> dict[str, object]:
    low, high = d.interval
    result = N_("✓ run better") if d.value > 0 else N_("✓ frozen encoder better")
    return {
        "run": d.a,
        N_("frozen encoder"): d.b,
        "score": _(ACCURACIES[d.metric]),
        N_("difference"): float(f"{100 * d.value:.1f}"),
        "95 %": format.interval((100 * low, 100 * high), ".1f"),
        N_("result"): _(result if d.claimed else N_("no difference shown")),
        N_("p, corrected"): f"{d.p_corrected:.2g}" if d.p_corrected >= SMALLEST_P else f"< {SMALLEST_P:g}",
    }
