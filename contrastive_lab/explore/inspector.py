"""Inspector beside Explore's map: the scores of the space and a search for images, or the selected samples with their
images and the neighbors of one; then one next step."""

import html
from collections.abc import Callable

import numpy as np
import streamlit as st

from contrastive_core.compare.towers import partners_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import TEXT, TOWER, plain_rank
from contrastive_lab import cache, format, pictures, query_params, state, texts
from contrastive_lab.compare import space_picker
from contrastive_lab.components.gallery import draw_strip
from contrastive_lab.components.scatter import PALETTE, shade
from contrastive_lab.embedding_map import NEAREST, DrawnMap
from contrastive_lab.explore import scores
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

FOUND = 12  # images of a query
TYPICAL = 10  # images from all over the map
FACTS = 12  # columns of a sample that are shown
SIDE = 116  # pixels of the selected image
SMALL, TWO_LINES = 40, 100  # pixels of a selected picture, and of two lines of them
LISTED = 200  # selected samples in the table


def draw(space: Space, rows: EmbeddingSet, drawn_map: DrawnMap, picked: list[int], about: Callable[[], None]) -> None:
    """Draw scores and typical images, or the selection; then the next step. `about` draws where the space is from."""
    if len(picked) == 1:
        _one(space, rows, picked[0])
    elif picked:
        _several(space, rows, picked)
    else:
        scores.first_scores(space)
        if space.run is not None and cache.towers(rows) is not None:
            _search(space, rows)
        if pictures.are_decoded(space):
            middles = cache.medoids(cache.digest(rows.content_hash, str(drawn_map.settings)), drawn_map.xy, rows.labels)
            some = middles[:: max(1, len(middles) // TYPICAL)][:TYPICAL]
            st.caption(_("Images from all over the map. Click one, or draw around some points."))
            key, names = f"typical-{cache.digest(space.values, some)}", [rows.ids[i] for i in some]
            pictures.gallery(space, some, [""] * len(some), _("typical images"), key, names)
    scores.chips(rows)
    if not picked:
        about()
    _next_step(space, rows, picked)


def _search(space: Space, rows: EmbeddingSet) -> None:
    """Draw a field for a sentence, and the images most similar to it; a click selects an image's point."""
    text = query_params.text(st.text_input, _("Find images by a sentence"), name="text").strip()
    values = {"space": space.values, "text": text, "most": FOUND}
    if not text or not (result := answer_or_wait("text_query", values, message("Nearest images"))):
        return
    unknown, near = result.meta["unknown"], result.arrays["rows"].tolist()
    if not near:
        st.warning(format.plain(_("The training captions have none of these words: {words}.").format(words=text)))
        return
    if unknown:
        words = ", ".join(unknown)
        st.caption(format.plain(_("Words that are not in the training captions: {words}.").format(words=words)))
    similarity = result.arrays["similarity"].tolist()
    if pictures.are_decoded(space):
        captions = [f"{s:.2f}" for s in similarity]
        pictures.gallery(space, near, captions, _("images nearest to the sentence"), f"query-{cache.digest(near)}")
    with st.expander(_("As a table")):
        names = [{"id": rows.ids[i], "cosine similarity": round(s, 3)} for i, s in zip(near, similarity, strict=True)]
        draw_table(names, hide_index=True)


def _one(space: Space, rows: EmbeddingSet, i: int) -> None:
    """Draw one sample: its image, the vote of its neighbors, the neighbors, and its columns."""
    near = cache.nearest(rows.content_hash, i, NEAREST, rows)
    with st.container(horizontal=True, gap="small", vertical_alignment="top", wrap=False):
        if pictures.are_decoded(space):
            st.image(np.moveaxis(pictures.of(space)[i], 0, -1).squeeze(), width=SIDE)
        with st.container(gap="xsmall", key="explore-vote"):
            name = rows.ids[i] if rows.labels is None else rows.class_name(int(rows.labels[i]))
            st.header(format.plain(name))
            if rows.labels is not None:
                st.html(vote(space, rows, i, near[0]))
    _partners(space, rows, i)
    st.subheader(_("Nearest in the embedding"))
    _neighbors(space, rows, i, near)
    facts = [(k, v[i]) for k, v in rows.columns.items() if k not in ("split", TOWER, TEXT)][:FACTS]
    if facts:
        shown = [(k, f"{v:.3g}" if isinstance(v, float | np.floating) else str(v)[:80]) for k, v in facts]
        cells = "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in shown)
        st.html(f'<dl class="facts">{cells}</dl>')


def vote(space: Space, rows: EmbeddingSet, i: int, near: np.ndarray) -> str:
    """Return HTML with the classes of the nearest samples as a bar, and the class that kNN predicts."""
    assert rows.labels is not None
    labels = rows.labels[near]
    kinds, counts = np.unique(labels[labels >= 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    bars, words = "", []
    for c, n in zip(kinds[order].tolist(), counts[order].tolist(), strict=True):
        color = shade(PALETTE[c % len(PALETTE)], c // len(PALETTE))
        bars += f'<i style="flex:{n};background:{color}"></i>'
        words.append(f"{rows.class_name(c)} {n}")
    text = _("Its {k} nearest: {votes}").format(k=len(near), votes=" · ".join(words))
    answer = cache.result("scores", {"space": space.values})
    predicted = None if answer is None else answer.arrays.get("knn:predicted")
    verdict = ""
    if predicted is not None and np.isfinite(predicted[i]) and rows.labels[i] >= 0 and predicted[i] >= 0:
        taken, is_right = int(predicted[i]), int(predicted[i]) == int(rows.labels[i])
        wrong = _("kNN predicts {name}, which is wrong").format(name=rows.class_name(taken))
        said = _("kNN is right") if is_right else wrong
        verdict = f'<b class="{"right" if is_right else "wrong"}">{html.escape(said)}</b>'
    name, text = (html.escape(line) for line in (rows.ids[i], text))
    return f'<div class="vote"><span>{name}</span><div>{bars}</div><span>{text}</span>{verdict}</div>'


def _next_step(space: Space, rows: EmbeddingSet, picked: list[int]) -> None:
    """Draw the primary next step, and a link to Compare."""
    label: str = _("Find wrong labels") if rows.labels is not None else _("Find duplicates and outliers")
    page = "samples"
    on = {"run": space.name} if space.run else {"on": loaded_vectors.PREFIX + space.key}
    if place := space.recorded:
        page, label, on = "loss_lab", _("Its rows under the loss"), {"run": place.run.name}
    elif cache.towers(rows) is not None:
        label = _("Find mismatched pairs")
    elif len(picked) == 1:
        label, on = _("Open in Samples"), on | {"sample": rows.ids[picked[0]]}
    elif picked and pictures.are_decoded(space):  # drawn around on the map, or a cell of the confusion matrix
        label = _("Review the {picked} selected").format(picked=f"{len(picked):,}")
        on |= {"split": space.split, "selected": "yes", "every": "yes", "list": "mislabeled"}
    with st.container(horizontal=True, key="explore-next"):
        st.page_link(f"pages/{page}.py", label=f"{label} →", query_params=on)
        others = [space.name] if space.run else space_picker.open_files()
        if space.run or len(others) > 1:
            st.page_link("pages/compare.py", label=_("Compare with…"), query_params={"runs": ",".join(others[:2])})


def _several(space: Space, rows: EmbeddingSet, picked: list[int]) -> None:
    """Draw a selection of several samples: their classes, their images, and the neighbors of one of them."""
    st.header(_("{picked} selected").format(picked=f"{len(picked):,}"))
    if rows.labels is not None:
        labels = rows.labels[picked]
        counts = np.bincount(labels[labels >= 0])
        counted = [f"{rows.class_name(int(c))}: {counts[c]:,}" for c in np.argsort(-counts)[:12] if counts[c]]
        st.caption(format.plain(" · ".join(counted)))
    one = _one_of(space, rows, picked[:LISTED])
    _partners(space, rows, one)
    _neighbors(space, rows, one, cache.nearest(rows.content_hash, one, NEAREST, rows))
    if rows.columns or rows.labels is not None:
        table = list[dict[str, object]]()
        for i in picked[:LISTED]:
            row: dict[str, object] = {"row": i, "id": rows.ids[i]}
            if rows.labels is not None:
                row["class"] = rows.class_name(int(rows.labels[i]))
            table.append(row | {name: values[i].item() for name, values in rows.columns.items()})
        with st.expander(_("The selection as a table")):
            draw_table(table, hide_index=True)


def _one_of(space: Space, rows: EmbeddingSet, listed: list[int]) -> int:
    """Let the user choose one selected sample by its image or id; return its row."""
    place = state.place_of(space)
    key, shown, title = f"one-{cache.digest(place)}", f"selected-{cache.digest(place, listed)}", rows.ids.__getitem__
    if pictures.are_decoded(space):
        images, titles = pictures.some_of(space, listed), [title(row) for row in listed]
        clicked = draw_strip(images, titles, SMALL, TWO_LINES, _("selected images"), shown)
        if clicked != st.session_state.get(f"{shown}:before", []):  # else the list may say another
            st.session_state[f"{shown}:before"] = clicked
            query_params.choose(key, listed[clicked[0]] if clicked else listed[0])
    return query_params.one_of(
        st.selectbox, _("Neighbors of"), listed, format_func=title, name="one", text=title, key=key
    )


def _partners(space: Space, rows: EmbeddingSet, i: int) -> None:
    """Draw the text of a row of two towers, and its nearest partner with its ranks in both directions."""
    if (towers := cache.towers(rows)) is None:
        return
    own = str(rows.columns[TOWER][i])
    other = towers.names[1] if own == towers.names[0] else towers.names[0]
    found, known = partners_of(towers, i), rows.columns.get(TEXT, np.full(len(rows), ""))
    said = {row: str(known[row]) or rows.ids[row] for row in (i, *(one.row for one in found[:1]))}
    st.html(texts.answers(said[i], [(other, said[one.row]) for one in found[:1]], about=own))
    if not found:
        st.caption(format.plain(_("No row of {other} is its partner.").format(other=other)))
        return
    text = _("Its partner. Rank from {own} to {other}: {rank}. Rank from {other} to {own}: {back}. Cosine {cosine}.")
    if len(found) > 1:
        text = _(
            "The nearest of {n} partners. Rank from {own} to {other}: {rank}. Rank from {other} to {own}: {back}. "
            "Cosine {cosine}."
        )
    help = _(
        "Rank 1: no wrong row of that tower is more similar. Other partners of the row and duplicates of a "
        "partner are not counted."
    )
    rank, back = (f"{plain_rank(one):,}" for one in (found[0].rank, found[0].rank_back))
    values = {"own": own, "other": other, "n": len(found), "rank": rank, "back": back}
    st.caption(format.plain(text.format(cosine=f"{found[0].similarity:.3f}", **values)), help=help)
    chosen = [i, *(partner.row for partner in found)], state.place_of(space)
    st.button(_("Select with its partners"), key=f"partners-{i}", on_click=state.select, args=chosen)


def _neighbors(space: Space, rows: EmbeddingSet, i: int, nearest: tuple[np.ndarray, np.ndarray]) -> None:
    """Draw the nearest samples with similarity and label."""
    near, similarity = nearest
    of_towers = [name for name in (TOWER, TEXT) if cache.towers(rows) and name in rows.columns]
    table, captions = list[dict[str, object]](), []
    for rank, (j, s) in enumerate(zip(near.tolist(), similarity.tolist(), strict=True), 1):
        row: dict[str, object] = {"rank": rank, "id": rows.ids[j], N_("cosine similarity"): round(s, 3)}
        if rows.labels is not None:
            row["class"] = rows.class_name(int(rows.labels[j]))
        table.append(row | {name: str(rows.columns[name][j]) for name in of_towers})
        captions.append(f"{row.get('class') or row['id']} {s:.2f}")
    with_pictures = pictures.are_decoded(space)
    if with_pictures:
        key = f"near-{cache.digest(state.place_of(space), space.layer, i)}"
        pictures.gallery(space, near.tolist(), captions, _("nearest samples"), key)
        if not space.is_loaded and space.split and pictures.is_likeness_wanted():
            _why_alike(space, rows, i, dict(zip(near.tolist(), captions, strict=True)))
    said = None if with_pictures else rows.columns.get(TEXT, rows.texts)
    if said is not None:
        if of_towers:
            captions = [f"{rows.columns[TOWER][j]} · {text}" for j, text in zip(near, captions, strict=True)]
        about = None if of_towers else rows.ids[i]  # two towers: the text itself is above
        st.html(texts.answers(str(said[i]), zip(captions, map(str, said[near]), strict=True), about))
    with st.expander(_("As a table"), expanded=not with_pictures and said is None):
        draw_table(table, hide_index=True)


def _why_alike(space: Space, rows: EmbeddingSet, i: int, near: dict[int, str]) -> None:
    """Draw the patches of a sample and of one of its neighbors that make them similar."""
    other = query_params.one_of(
        st.selectbox,
        _("Neighbor"),
        [*near],
        format_func=lambda row: f"{near[row]} · {rows.ids[row]}",
        name="neighbor",
        text=rows.ids.__getitem__,
        key=f"neighbor-{i}",
    )
    names = (rows.ids[i], rows.ids[other])
    pictures.explain_likeness({"space": space.values, "ids": list(names)}, names)
