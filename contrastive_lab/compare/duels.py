"""Duels on Compare: the first answers of A and B without their names, one key each, and the verdict so far."""

import streamlit as st

from contrastive_core.samples import annotations
from contrastive_core.samples.duels import BOTH, KEYS, MARGIN, NEITHER, Duels
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, guard, locale, pictures, stage, texts
from contrastive_lab.compare import verdict
from contrastive_lab.locale import N_, Deferred, _, ngettext
from contrastive_lab.samples.findings import window

VIEW = N_("Duels")
LABELS = dict(zip(KEYS, (N_("Left is better"), N_("Right is better"), N_("Both are good"), N_("Neither")), strict=True))
SHORTCUTS = dict(zip(KEYS, ("Left", "Right", BOTH[0].upper(), NEITHER[0].upper()), strict=True))
PICTURE = 160  # pixels


def show(spaces: list[Space]) -> None:
    """Draw the next duel of A and B, and the verdict; until both are embedded, the progress."""
    if any(cache.embedding(space) is None for space in spaces[:2]):
        verdict.known(spaces, waits=True)
        return
    with guard.errors_shown():
        _judge(_duels(*spaces[:2]), spaces[0])
        stage.take_arrows()


@st.cache_resource(max_entries=4, show_spinner=Deferred(N_("Comparing queries with answers…")))
def _duels(a: Space, b: Space) -> Duels:
    sets = [rows for space in (a, b) if (rows := cache.embedding(space)) is not None]
    return Duels.of([a.title, b.title], sets)


@st.fragment
def _judge(duels: Duels, space: Space) -> None:
    marks = duels.marks()
    number, standing = duels.next(marks), duels.standing(marks)
    picture, side = stage.columns(is_first=False)
    with picture, st.container(key="duel"):
        if number is None:
            st.info(_("Every query with different answers is judged."))
        else:
            _draw_duel(duels, space, number)
        st.button(
            _("Undo"), key="duel-undo", shortcut="U", type="tertiary", disabled=not marks, on_click=_undo, args=(duels,)
        )
    with side:
        st.subheader(_("Which first answer is better?"))
        margin = st.number_input(
            _("Smallest difference that matters, points"),
            0.1,
            50.0,
            100 * MARGIN,
            0.5,
            key="duel-margin",
            help=_("A point is 1 % of all queries. You can stop when the difference is shown to be smaller."),
        )
        st.markdown(format.plain(locale.text(standing.sentence(margin / 100))))
        text = ngettext("{count} decision", "{count} decisions", standing.decided).format(count=standing.decided)
        more = _("First answers differ on {differing} of {queries} queries; the others count as equal.")
        st.caption(f"{text}. {more.format(differing=f'{standing.differing:,}', queries=f'{standing.queries:,}')}")


def _draw_duel(duels: Duels, space: Space, number: int) -> None:
    """Draw a query, both answers and the keys."""
    query = int(duels.queries[number])
    with st.container(border=True):
        st.caption(_("Query"))
        _draw(duels, space, query)
    for column, title, row in zip(st.columns(2), (_("Left"), _("Right")), duels.shown(number), strict=True):
        with column.container(border=True, height="stretch"):
            st.caption(title)
            _draw(duels, space, row, duels.text(query))
    with st.container(horizontal=True):
        for key, label in LABELS.items():
            st.button(
                _(label),
                key=f"duel-{duels.file.stem}-{number}-{key}",  # a late press cannot decide on the next query
                shortcut=SHORTCUTS[key],
                on_click=_decide,
                args=(duels, number, key),
            )


def _draw(duels: Duels, space: Space, row: int, query: str = "") -> None:
    """Draw a sample as its image, else as its text or id, in which the words of a query are marked."""
    rows, name = cache.embedding(space), duels.rows.ids[row]
    if cache.images(space) is not None and rows is not None and pictures.are_decoded(space):
        st.image(cache.picture(pictures.of(space), rows.ids.index(name)), width=PICTURE)
        return
    st.html(texts.markup(duels.text(row), query))


def _decide(duels: Duels, number: int, key: str) -> None:
    with guard.errors_told():
        if duels.next(duels.marks()) == number:
            duels.decide(number, key, window()[0])
        else:  # a second key before the next query was drawn
            st.toast(_("The key came before the next query. Press it again."))


def _undo(duels: Duels) -> None:
    with guard.errors_told():
        annotations.undo([duels.file], *window())
