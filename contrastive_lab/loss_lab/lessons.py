"""The lessons of the Loss Lab: what each sets, where one looks, and by what it is done.

What is said stands in lesson_words.py; the checks are functions of the live view's state, by these
names in components/shared/lesson_checks.js. The thresholds hold on the shipped example that all
lessons open (tests/lab/test_lessons.py).
"""

from __future__ import annotations

from dataclasses import dataclass

RUN = "simclr-shapes"  # that all lessons look at


@dataclass(frozen=True)
class Check:
    """A named check of the live view's state, and its threshold."""

    name: str
    at: float = 0


@dataclass(frozen=True)
class LessonOption:
    """A setting of the page that stands among the lesson's words as buttons."""

    name: str  # in lesson_words.py
    key: str  # of the page's widget
    options: tuple[str, ...]


@dataclass(frozen=True)
class Lesson:
    """One lesson; its address is what it sets, as a link would."""

    name: str
    address: dict[str, str]
    checks: tuple[Check, ...]  # done when all hold
    region: tuple[str, ...]  # parts of the picture that are framed: knob, matrix, bars, ring
    choices: tuple[LessonOption, ...] = ()


BATCH = {"run": RUN, "on": "batch", "rows": "z", "size": "64", "batch": "0", "pairing": "views"}
LESSONS = (
    Lesson(
        "views", {**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"}, (Check("other_view"),), ("bars",)
    ),
    Lesson(
        "forces",
        {
            "run": RUN,
            "on": "circle",
            "loss": "nt_xent",
            "temperature": "0.2",
            "points": "18",
            "groups": "3",
            "speed": "500",
        },
        (Check("alignment_below", 0.05),),  # 1.9 at first, below 0.01 at rest
        ("ring",),
    ),
    Lesson(
        "lower",
        {**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        (Check("hardest_share_above", 0.5),),  # 7 % at first; from τ = 0.17 down
        ("knob", "bars"),
    ),
    Lesson(
        "too_low",
        {**BATCH, "loss": "nt_xent", "temperature": "0.02", "anchor": "39"},
        (Check("negatives_at_least", 10),),  # one at first; from τ = 0.21 up
        ("knob", "bars"),
    ),
    Lesson(
        "margin",
        {**BATCH, "loss": "pair_contrastive", "normalize": "yes", "margin": "1.2", "anchor": "10"},
        (Check("pushed_from_one_to", 3),),  # eleven at first
        ("knob", "bars"),
    ),
    Lesson(
        "labels",
        {**BATCH, "loss": "sup_con", "form": "out", "temperature": "0.2", "anchor": "39", "view": "grad"},
        (Check("positives_at_least", 2), Check("form_is_in")),
        ("bars",),
        (
            LessonOption("positives", "loss_lab-pairing", ("views", "classes")),
            LessonOption("form", "lab-sup_con-form", ("out", "in")),
        ),
    ),
)
