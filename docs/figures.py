"""Figures of the site as inline SVG: the gradient that a loss puts on each candidate, and the data flow of a method."""

import html

import torch

from contrastive_core import losses, pairs

WIDTH, HEIGHT, GAP, LEGEND = 640, 90, 34, 24
PULL, PUSH = "#2f7fd0", "#d9792b"
GROUPS = {True: 3, False: 12}  # of the batch: classes where the loss pairs by label, else images with two views


def batch(groups=3):
    """One fixed batch (24 rows) of some classes, or images, on the unit sphere, and its labels."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(24) % groups
    centers = torch.randn(groups, 8, generator=generator)
    z = centers[labels] + 0.9 * torch.randn(24, 8, generator=generator)
    return torch.nn.functional.normalize(z, dim=1), labels


def settings_of(name):
    """The knob that the figure varies, and three values of it."""
    knobs = losses.knobs(name)
    if "temperature" in knobs:
        middle = knobs["temperature"].default
        return "temperature", [2 * middle, middle, middle / 2]
    if "margin" in knobs:
        middle = knobs["margin"].default
        return "margin", [middle / 2, middle, 1.5 * middle]
    return None, [None]


def gradient_figure(name, anchor=0):
    """The gradient on each candidate of one anchor, the most similar first, for three values of the knob."""
    z, labels = batch(GROUPS[losses.get(name).card.by_label])
    knob, values = settings_of(name)
    rows = []
    for value in values:
        anatomy = losses.create(name, **({knob: value} if knob else {})).anatomy(pairs.from_labels(z, labels))
        sign = 1 if anatomy.score_kind == "dot" else -1
        order = (-sign * anatomy.scores[anchor]).argsort()
        order = order[~anatomy.self_pair[anchor][order]]
        rows.append((f"{knob} = {value:g}" if knob else "", (sign * anatomy.grad_scores[anchor])[order].tolist()))
    return _bars(rows, f"Gradient of {name} by candidate")


def _bars(rows, title):
    """Small bar charts below each other, each scaled to its own largest bar."""
    height = len(rows) * (HEIGHT + GAP) + LEGEND
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}" class="figure">']
    for number, (label, values) in enumerate(rows):
        top, most = number * (HEIGHT + GAP) + GAP - 8, max(1e-12, *map(abs, values))
        middle, step = top + HEIGHT / 2, WIDTH / len(values)
        parts.append(f'<text x="0" y="{top - 8}" fill="currentColor">{label}</text>')
        parts.append(f'<path d="M0 {middle} H{WIDTH}" stroke="currentColor" stroke-opacity="0.4"/>')
        for i, value in enumerate(values):
            size = abs(value) / most * HEIGHT / 2
            y, color = (middle, PULL) if value < 0 else (middle - size, PUSH)
            parts.append(
                f'<rect fill="{color}" x="{i * step + 2:.1f}" y="{y:.1f}" width="{step - 4:.1f}" height="{size:.1f}"/>'
            )
    parts.append(f'<text x="0" y="{height - 6}" fill="currentColor">most similar</text>')
    parts.append(f'<text x="{WIDTH}" y="{height - 6}" text-anchor="end" fill="currentColor">least similar</text>')
    for place, word, color in ((-10, "pull", PULL), (10, "push", PUSH)):
        anchor = "end" if place < 0 else "start"
        x = WIDTH / 2 + place
        parts.append(f'<text x="{x}" y="{height - 6}" text-anchor="{anchor}" fill="{color}">{word}</text>')
    return "".join([*parts, "</svg>"])


def flow_diagram(card):
    """The lanes of a method's diagram, and what its memory does after a step, as HTML."""
    lanes = "".join(f'<p class="lane">{" → ".join(map(_box, lane))}</p>' for lane in card.flow)
    updates = "".join(
        f'<p class="lane">{_box(a)} ⇢ {_box(b)} <em>{html.escape(str(how))}</em></p>' for a, b, how in card.updates
    )
    after = f"<p>After each step:</p>{updates}" if updates else ""
    return f'<div class="flow">{lanes}{after}</div>'


def _box(text):
    """A box whose text ends with a star receives gradients."""
    kind = "box trained" if str(text).endswith("*") else "box"
    return f'<span class="{kind}">{html.escape(str(text).rstrip("*"))}</span>'
