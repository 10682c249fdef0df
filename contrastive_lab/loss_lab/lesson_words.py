"""All that the lessons say, by language. `{now}`, `{hardest}` and `{picked}` are filled in by the
browser."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LANGUAGES", "WORDS", "Said", "Words", "of_language"]


@dataclass(frozen=True)
class Said:
    """One lesson's words: `goals` are as many as its checks, `said` is shown when it is done,
    `wrong` where its question is answered wrongly."""

    title: str
    question: str
    goals: tuple[str, ...]
    said: str
    wrong: str = ""


@dataclass(frozen=True)
class Words:
    """The words of one language. choices: by name, what it is and its options."""

    panel: dict[str, str]
    lessons: dict[str, Said]
    choices: dict[str, tuple[str, dict[str, str]]]


ENGLISH = Words(
    panel={
        "name": "Lesson {n} of {of}", "free": "No lesson: free play", "control": "Lessons",
        "back": "Back", "again": "Start again", "leave": "Leave", "next": "Next: {title}",
        "end": "Free play", "done": "Done.",
        "opening": "Opening…",
    },
    lessons={
        "views": Said(
            "Two views of an image",
            "Each picture was cropped and recolored twice at random, into views a and b. The bars "
            "are the images nearest to the anchor, image 1, view a. Which one is its other view? "
            "Choose that bar: click it, or go to it with the ↓ key and press Enter.",
            ("Goal: the other view is the anchor.",),
            "Views a and b show one picture, so the loss draws them together: a positive pair. "
            "All other images of the batch are negatives, whatever they show.",
            "Not that one: it is {picked}, of another picture. Look for the anchor's shape and "
            "background in another crop and other colors, and choose another bar.",
        ),
        "forces": Said(
            "Attract and repel",
            "Points of one shape are views of one image; the arrows show where the loss moves "
            "them. Press Run, and let them move until points of one shape stand together.",
            ("Mean squared distance within a shape: {now}. Goal: below 0.05.",),
            "Positives attract each other and meet; negatives repel each other, so the groups "
            "spread over the circle. A contrastive loss asks for both at once.",
        ),
        "lower": Said(
            "Lower τ and watch who gets pushed",
            "At τ = 0.5 each negative gets a small part of the push. Lower τ with the slider "
            "until one negative alone gets more than half. Which one is it?",
            ("The hardest negative gets {now} of the push. Goal: more than 50 %.",),
            "It is {hardest}, of all negatives the most similar to the anchor. The lower τ, the "
            "more of the push falls on the hardest negatives.",
        ),
        "too_low": Said(
            "Too low",
            "At τ = 0.02 one negative takes all of the push, and it is another cross, which a "
            "good encoder keeps near. Raise τ until ten negatives share the push.",
            ("Negatives that matter: {now}. Goal: at least 10.",),
            "Too low a τ spends all force on one image, often one of the same kind, and tears "
            "apart what belongs together. Too high a τ pushes all alike and separates little.",
        ),
        "margin": Said(
            "A margin",
            "This loss has a margin ε and no τ: it pushes only negatives nearer than ε, the line "
            "across the bars. Lower ε until no more than three are pushed, but at least one.",
            ("Negatives that are pushed: {now}. Goal: 1 to 3.",),
            "Beyond the margin the loss leaves a negative alone; inside, the nearer it is the "
            "harder it is pushed. A temperature has no such edge: each negative gets some push.",
        ),
        "labels": Said(
            "What labels change",
            "Without labels only the other view is a positive. Turn the labels on, so that every "
            "cross is one. Then change SupCon's form from out to in, and watch the bars with a +.",
            ("Positives of the anchor: {now}. Goal: the whole class.",
             "Form: {now}. Goal: in."),
            "Labels make a whole class positive. With out, far positives are pulled and the "
            "nearest can even be pushed off; with in, the nearest is pulled hardest and far ones "
            "are given up.",
        ),
    },
    choices={
        "positives": ("Labels", {"views": "off", "classes": "on"}),
        "form": ("Form", {"out": "out", "in": "in"}),
    },
)  # fmt: skip
LANGUAGES = {"en": "English"}
WORDS: dict[str, Words] = {"en": ENGLISH}


def of_language(language: str | None) -> Words:
    """The words of a language, or the English ones."""
    return WORDS.get(language or "en", ENGLISH)
