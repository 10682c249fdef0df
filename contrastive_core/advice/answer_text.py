"""The adviser's answer for a terminal."""

from __future__ import annotations

from contrastive_core.records.advice import AGREEMENT, Answer


def text_of(found: Answer) -> str:
    """The answer for a terminal."""
    points = 100 if found["plan"]["labeled"] else 1
    lines = [f"{found['criterion']}, {found['plan']['held_out']:,} images set aside", ""]
    for row in found["rows"]:
        low_high = ""
        if row["interval"]:
            low, high = row["interval"]
            low_high = f" ({points * low:.1f} to {points * high:.1f})"
        against = ""
        if "difference" in row:
            against = f"  {points * row['difference']:+.1f} to the default, {row['shown']}"
        seeds = f"{row['seeds']} seed" + "s" * (row["seeds"] > 1)
        default = " (default)" if row["is_default"] else ""
        lines.append(
            f"{points * row['mean']:7.1f}{low_high:<18} {row['label']}{default}, "
            f"{row['epochs']} epochs, {seeds}{against}"
        )
    lines += [f"  failed: {label}: {why}" for label, why in found["failed"].items()]
    for name, share in found["baselines"].items():
        lines.append(f"{100 * share:7.1f}{'':<18} {name}")
    if found["untried"]:
        lines.append(f"  no time for: {', '.join(found['untried'])}")
    lines += ["", found["verdict"]]
    if not found["plan"]["labeled"]:
        lines.append(AGREEMENT)
    for at in found["why"].get("effective_negatives", []):
        lines.append(f"at τ {at['value']:g} the push is spread over {at['negatives']:.0f} of {at['of']} rows")
    if found["test"]:
        lines += ["", found["test"]["sentence"]]
    return "\n".join(lines)
