"""Small curves of the inspector: a title with the current value, a line with baselines, and one sentence."""

import html
from collections.abc import Mapping, Sequence

HIGH = 64  # pixels
MARGIN = 0.08  # of the range, above and below


def sparkline(
    title: str,
    value: str,
    ys: Sequence[float],
    baselines: Mapping[str, float] = {},
    share: float = 1.0,
    note: str = "",
    marks: Sequence[float] = (),
) -> str:
    """Return a curve as an HTML element. Args: ys: spread evenly over `share` of the width; baselines: by name; marks:
    positions of vertical lines, as parts of that share."""
    every = [*ys, *baselines.values()]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    room = MARGIN * (high - low) or 1.0

    def down(y: float) -> float:
        return 100 * (high + room - y) / (high - low + 2 * room)

    steps = [100 * share * k / max(1, len(ys) - 1) for k in range(len(ys))]
    upper = [f"{x:.2f}% calc({down(y):.2f}% - 1px)" for x, y in zip(steps, ys, strict=True)]
    lower = [f"{x:.2f}% calc({down(y):.2f}% + 1px)" for x, y in zip(steps, ys, strict=True)]
    outline = ", ".join([*upper, *reversed(lower)])  # as a shape: st.html leaves SVG out
    line = f'<b style="clip-path: polygon({outline})"></b>' if len(ys) > 1 else ""
    ticks = "".join(f'<u style="top: {down(y):.2f}%"></u>' for y in baselines.values())
    ticks += "".join(f'<s style="left: {100 * share * place:.2f}%"></s>' for place in marks)
    dot = f'<i style="left: {steps[-1]:.2f}%; top: {down(ys[-1]):.2f}%"></i>' if ys else ""
    names = "".join(
        f'<small class="name" style="top: {down(y):.2f}%">{html.escape(name)}</small>' for name, y in baselines.items()
    )
    head = f"<div><span>{html.escape(title)}</span><strong>{html.escape(value)}</strong></div>"
    return (
        f'<div class="sparkline">{head}<div class="line" style="height: {HIGH}px">{ticks}{line}{dot}{names}</div>'
        f"<small>{html.escape(note)}</small></div>"
    )
