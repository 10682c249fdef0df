"""What a list rests on, in one sentence above it, where the loss or the method behind it says less than usual."""

import streamlit as st

from contrastive_core.records.cards import USES
from contrastive_lab import cache, format
from contrastive_lab.locale import _
from contrastive_lab.samples.findings import Findings

NONE, SHARE = "none", "share"  # of `LossCard.per_sample`


def show(findings: Findings, name: str) -> None:
    """The sentence of a list; nothing where it rests on what its name says."""
    run, by = findings.requests[0].run, findings.requests[0].frozen
    if by is not None:
        st.caption(format.plain(by_frozen(name, by.title)))
    method = "" if run is None else str(run.config.get("method"))
    if text := basis(name, findings.table.loss, method):
        st.caption(format.plain(text))


def by_frozen(name: str, title: str) -> str:
    """What a list rests on where a frozen encoder was chosen for the lists."""
    if name == "loss":
        return _("This list rests on the run's own loss, which {title} does not change.").format(title=title)
    return _(
        "This list rests on {title}, frozen. The losses, and the nearest images shown, are those of the run's own "
        "encoder."
    ).format(title=title)


def basis(name: str, loss: str, method: str) -> str:
    """What a list rests on, by the loss of the table and the method that trained the encoder ("": none)."""
    catalog = cache.catalog()
    card, about = catalog["losses"].get(loss, {}), catalog["methods"].get(method)
    title, kind = card.get("title", loss), card.get("per_sample")
    if name == "loss" and kind == NONE:
        return _(
            "{title} has no value per sample: all samples share the batch's value, so this list has no order. The "
            "other lists rest on neighbors in the embedding."
        ).format(title=title)
    if name == "loss" and kind == SHARE:
        return _(
            "Of {title}, only the distance between a sample's two views is per sample. Its terms over dimensions are "
            "the same for all samples."
        ).format(title=title)
    if name == "false_negative" and about and not about["needs_labels"] and USES[0] not in about["uses"]:
        return _(
            "{title} has no negatives and pushes no pair apart. This list rests on neighbors: samples that a loss with "
            "negatives would push apart although they are alike."
        ).format(title=about["title"])
    if kind == NONE:
        return _(
            "This list rests on neighbors in the embedding, not on {title}, which has no value per sample."
        ).format(title=title)
    return ""
