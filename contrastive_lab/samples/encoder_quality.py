"""How good the encoder behind the lists is, beside raw pixels, and what helps where it is no better."""

import streamlit as st

from contrastive_core.engine import questions
from contrastive_core.records import frozen
from contrastive_core.records.evaluation import name_of
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.run import Run
from contrastive_core.records.score import Score
from contrastive_lab import cache, command_files, format, frozen_encoders, locale, query_params
from contrastive_lab.locale import _, message
from contrastive_lab.progress import follow
from contrastive_lab.samples.retrain import run_before
from contrastive_lab.samples.table_picker import key_of_encoder

LONGER = 4  # times the epochs that are offered
GOOD = 0.9  # from this accuracy on raw pixels are good enough themselves


def _show_frozen(run: Run, own: Score) -> None:
    """The accuracy of each named frozen encoder, and what to do where one is better."""
    known = {k: score for k, s in frozen_encoders.known(run).items() if (score := s.get("knn")) and score.value}
    if not known:
        return
    listed = ", ".join(f"{locale.text(name_of(k))} {format.figure_of(score)}" for k, score in known.items())
    st.caption(format.plain(_("For comparison, kNN accuracy: {listed}.").format(listed=listed)))
    best = max(known, key=lambda k: known[k].value or 0)
    low = (known[best].interval or (0.0, 0.0))[0]
    if low > (own.value or 0):
        name = next(encoder.text for encoder in frozen.read_list() if encoder.source == best)
        st.info(format.plain(_("{name} scores higher than this encoder.").format(name=name)))
        if st.button(_("Let the lists rest on it"), icon=":material/ac_unit:"):
            query_params.choose(key_of_encoder(run.name), name)
            st.rerun()


def _of_frozen(run: Run, encoder: FrozenEncoder) -> None:
    """The kNN accuracy of the frozen encoder behind the lists beside that of the own one, as far as both are known."""
    record, scores = cache.scores(run), frozen_encoders.known(run).get(encoder.source, {})
    frozen_knn, own = scores.get("knn"), record and record.score("h", "knn")
    if frozen_knn is None or not own:
        return
    text = _(
        "Encoder behind this list: {name}, frozen. kNN accuracy {value} on test images, the run's own encoder {own}."
    )
    values = {"value": format.figure_of(frozen_knn), "own": format.figure_of(own)}
    st.caption(format.plain(text.format(name=encoder.title, **values)))


def show(run: Run, by: FrozenEncoder | None = None) -> None:
    """The kNN accuracy of a run beside that of raw pixels; its scores are made where they are missing. Of a run that
    was trained again they are followed above (retrain.py). by: the frozen encoder that the lists rest on instead."""
    if by is not None:
        _of_frozen(run, by)
        return
    if (record := cache.scores(run)) is None:
        if run_before(run) is None:
            follow(questions.evaluation(run), message("Accuracy of {name} (once)", name=run.name))
        return
    own, pixels = (record.score(source, "knn") for source in ("h", "raw"))
    if own is None or pixels is None:
        return
    _show_frozen(run, own)
    values = {"own": format.figure_of(own), "pixels": format.figure_of(pixels), "n": f"{record.n_test:,}"}
    if not is_weak(own, pixels) or (own.value or 0) >= GOOD:
        text = _("Encoder behind this list: kNN accuracy {own} on {n} test images, raw pixels {pixels}.")
        st.caption(text.format(**values))
        return
    text = _(
        "This encoder is no better than raw pixels: on {n} test images, kNN accuracy is {own}, and {pixels} for raw "
        "pixels. Many suspects below are therefore false alarms. Train longer, start from a pretrained encoder, or use "
        "the lists that also compare pixels: near-duplicates and outliers."
    )
    st.warning(text.format(**values))
    line, epochs = st.container(horizontal=True), LONGER * int(run.config.get("epochs") or 20)
    address = {"method": str(run.config.get("method")), **command_files.address_of(str(run.config.get("dataset")))}
    longer, pretrained = {**address, "epochs": str(epochs)}, {**address, "encoder": "other"}
    label = _("Train for {epochs} epochs").format(epochs=f"{epochs:,}")
    line.page_link("pages/train.py", label=label, icon=":material/play_circle:", query_params=longer)
    label = _("Use a pretrained encoder")
    line.page_link("pages/train.py", label=label, icon=":material/upload:", query_params=pretrained)


def is_weak(own: Score, pixels: Score) -> bool:
    """Whether the interval of the encoder's accuracy reaches down to that of raw pixels."""
    low = own.interval[0] if own.interval else own.value
    return low is not None and pixels.value is not None and low <= pixels.value
