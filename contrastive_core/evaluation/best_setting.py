"""Which of several settings is best by an accuracy, in a sentence or two (the tests are in verdicts.py)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from contrastive_core.evaluation.verdicts import SettingScores, better_pairs, has_same_images, shared_seeds
from contrastive_core.messages import N_, message
from contrastive_core.records.intervals import SEEDS

__all__ = ["best_setting"]

LISTED = 4  # settings that are listed by name; more are counted
WORDS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def best_setting(name: str, settings: Sequence[SettingScores]) -> tuple[str, str]:
    """What paired tests show of several settings: a sentence or two, and what these rest on; both "" for fewer than
    two.

    Args: name: what varies, such as "τ"; "" where that is more than one thing.
    """
    settings = [s for s in settings if s.scores]
    if len(settings) < 2:
        return "", ""
    pairs = list(itertools.combinations(settings, 2))
    by_images = all(has_same_images(a, b) for a, b in pairs)
    least = min(len(shared_seeds(a, b)) for a, b in pairs)
    if not least or (not by_images and least < SEEDS):
        return N_("Which is better cannot be said yet."), _missing(least)
    better = better_pairs(settings, by_images)
    return _sentence(name, settings, better), _evidence(settings, by_images, least, len(pairs))


def _sentence(name: str, settings: Sequence[SettingScores], better: set[tuple[int, int]]) -> str:
    labels, many = [s.label for s in settings], _number(len(settings))
    if not better:
        listed = f": {_listed(labels)}" if len(settings) <= LISTED else ""
        what = message("{many} settings", many=many)
        if name:
            what = message("{many} values of {name}", many=many, name=name)
        return message("These {what} cannot be told apart{listed}.", what=what, listed=listed)
    best = max(range(len(settings)), key=lambda i: settings[i].mean)
    beaten = [labels[i] for i in range(len(settings)) if (best, i) in better]
    level = [labels[i] for i in range(len(settings)) if i != best and (best, i) not in better]
    top = f"{name} {labels[best]}".strip()
    if not beaten:
        i, j = max(better, key=lambda pair: settings[pair[0]].mean - settings[pair[1]].mean)
        return message(
            "{top} came out highest, and is not shown to be better than any other; {label} is "
            "better than {settings_label}.",
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
        "{top} came out highest and cannot be told apart from {also}; it is better than {worse}.",
        top=top,
        also=also,
        worse=worse,
    )


def _evidence(settings: Sequence[SettingScores], by_images: bool, seeds: int, pairs: int) -> str:
    corrected = message(", corrected for {pairs} pairs", pairs=pairs) if pairs > 1 else ""
    if not by_images:
        return message("A paired t test over {seeds} seeds{corrected}; p below 0.05.", seeds=seeds, corrected=corrected)
    n = f"{int(np.isfinite(next(iter(settings[0].right.values()))).sum()):,}"
    if seeds == 1:
        return message(
            "McNemar's test and a paired bootstrap on the same {n} test images{corrected}; one "
            "seed of each: another seed may say otherwise.",
            n=n,
            corrected=corrected,
        )
    return message(
        "McNemar's test and a paired bootstrap on the same {n} test images{corrected}; each "
        "of {seeds} seeds or more has to show it.",
        n=n,
        corrected=corrected,
        seeds=seeds,
    )


def _missing(seeds: int) -> str:
    if not seeds:
        return N_("No seed was trained with all of these settings.")
    return message(
        "It is not recorded which images each run has right: score the runs on the test "
        "images, or train {number} seeds of each.",
        number=_number(SEEDS),
    )


def _number(n: int) -> str:
    return WORDS[n] if 1 < n < len(WORDS) else f"{n:,}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else message("{words} and {last}", words=", ".join(words[:-1]), last=words[-1])
