"""Which of several settings is best by an accuracy, in a sentence or two; verdicts.py decides."""

from collections.abc import Sequence

from contrastive_core.evaluation.verdicts import SettingScores, better_pairs
from contrastive_core.messages import N_, message
from contrastive_core.records.score import SEEDS

__all__ = ["best_setting"]

LISTED = 4  # settings that are listed by name; more are counted
WORDS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def best_setting(name: str, settings: Sequence[SettingScores]) -> tuple[str, str]:
    """Return the verdict on several settings and its basis; both "" for fewer than two.

    Args: name: what varies, such as "τ"; "" where that is more than one thing.
    """
    settings = [s for s in settings if s.scores]
    if len(settings) < 2:
        return "", ""
    if not all(s.is_repeated for s in settings):
        least = min(len(s.scores) for s in settings)
        return N_("No winner yet."), message(
            "Train {number} seeds of each setting to compare them; so far the fewest are {least}.",
            number=SEEDS,
            least=least,
        )
    pairs = len(settings) * (len(settings) - 1) // 2
    corrected = message(", corrected for {pairs} pairs", pairs=pairs) if pairs > 1 else ""
    evidence = message(
        "95 % intervals over images and seeds, from {seeds} seeds or more of each{corrected}.",
        seeds=min(len(s.scores) for s in settings),
        corrected=corrected,
    )
    return _sentence(name, settings, better_pairs(settings)), evidence


def _sentence(name: str, settings: Sequence[SettingScores], better: set[tuple[int, int]]) -> str:
    labels, many = [s.label for s in settings], _number(len(settings))
    if not better:
        listed = f": {_listed(labels)}" if len(settings) <= LISTED else ""
        what = message("{many} settings", many=many)
        if name:
            what = message("{many} values of {name}", many=many, name=name)
        return message("No significant difference between these {what}{listed}.", what=what, listed=listed)
    best = max(range(len(settings)), key=lambda i: settings[i].mean)
    beaten = [labels[i] for i in range(len(settings)) if (best, i) in better]
    level = [labels[i] for i in range(len(settings)) if i != best and (best, i) not in better]
    top = f"{name} {labels[best]}".strip()
    if not beaten:
        i, j = max(better, key=lambda pair: settings[pair[0]].mean - settings[pair[1]].mean)
        return message(
            "{top} scored highest, but not significantly higher than any other. {label} is significantly better than "
            "{settings_label}.",
            top=top,
            label=labels[i],
            settings_label=labels[j],
        )
    if not level and len(settings) > 2:
        return message("{top} is better than each of the others.", top=top)
    if not level:
        return message("{top} is better than the other.", top=top)
    also = _listed(level) if len(level) <= LISTED else message("{number} others", number=_number(len(level)))
    worse = _listed(beaten) if len(beaten) <= LISTED else message("the other {number}", number=_number(len(beaten)))
    return message(
        "{top} scored highest, but not significantly higher than {also}. It is significantly better than {worse}.",
        top=top,
        also=also,
        worse=worse,
    )


def _number(n: int) -> str:
    return WORDS[n] if 1 < n < len(WORDS) else f"{n:,}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else message("{words} and {last}", words=", ".join(words[:-1]), last=words[-1])
