"""What differs: groups of samples that lie together in A and apart in B, and the reverse."""

from collections.abc import Sequence

import streamlit as st

from contrastive_core.compare.differences import EXAMPLES, NONE, Differences, Group, differences_request
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, pictures, state
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import _, message, text
from contrastive_lab.progress import answer_or_wait


def about(spaces: Sequence[Space]) -> Differences | None:
    """Say how many groups stand out and on which basis; None while the search runs."""
    result = answer_or_wait("differences", differences_request(spaces), message("Groups that differ"), may_stop=True)
    if result is None:
        return None
    found = Differences.of(result.meta)
    if found.groups:
        said = _("**{count} groups** lie together in one space and apart in the other.")
        st.markdown(said.format(count=len(found.groups)))
    for note in found.notes:
        st.caption(format.plain(text(note)))
    return found


def show(spaces: Sequence[Space], found: Differences | None) -> None:
    """The sentence of each group, its cohesion in both spaces, and its most typical samples."""
    if found and not found.groups:
        st.info(text(NONE))
    for number, group in enumerate(found.groups if found else []):
        with st.container(gap="xsmall", key=f"difference-{number}"):
            st.markdown(f"**{format.plain(text(group.sentence([space.title for space in spaces])))}**")
            said = _("Nearer to a member than to another sample: {a} % in {first}, {b} % in {second}. By chance: 50 %.")
            a, b = (f"{100 * share:.0f}" for share in group.cohesion)
            st.caption(said.format(a=a, b=b, first=SHAPES[0], second=SHAPES[1]))
            _examples(spaces[0], group, f"{cache.digest(*(space.values for space in spaces))}-{number}")


def _examples(space: Space, group: Group, key: str) -> None:
    """Typical samples of a group as pictures, or as a table with their texts; all can be selected on all pages."""
    some, rows = group.rows[:EXAMPLES], cache.embedding(space)
    if rows is None:
        return
    classes = [rows.class_name(int(rows.labels[row])) if rows.labels is not None else "" for row in some]
    if pictures.are_decoded(space):
        title = _("Typical samples of the group")
        draw_gallery(pictures.some_of(space, some), classes, title=title, size=72, key=f"group-{key}")
    else:
        said = [] if rows.texts is None else rows.texts[some].tolist()
        table = [
            {"id": rows.ids[row], **({"class": name} if name else {})} for row, name in zip(some, classes, strict=True)
        ]
        draw_table([row | ({"text": said[q]} if said else {}) for q, row in enumerate(table)], hide_index=True)
    label = _("Select all {n} on the maps").format(n=f"{len(group.rows):,}")
    st.button(label, key=f"select-{key}", on_click=state.select, args=(group.rows, state.place_of(space)))
