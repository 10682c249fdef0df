"""All that the lessons say. `{now}`, `{hardest}` and `{picked}` are filled in by the
browser."""

from __future__ import annotations

from dataclasses import dataclass

from contrastive_lab.locale import N_, _


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
    """The words of all lessons. choices: by name, what it is and its options."""

    panel: dict[str, str]
    lessons: dict[str, Said]
    choices: dict[str, tuple[str, dict[str, str]]]


ENGLISH = Words(
    panel={
        "name": N_("Lesson {n} of {of}"),
        "free": N_("No lesson: free play"),
        "control": N_("Lessons"),
        "back": N_("Back"),
        "again": N_("Start again"),
        "leave": N_("Leave"),
        "next": N_("Next: {title}"),
        "end": N_("Free play"),
        "done": N_("Done."),
        "opening": N_("Opening…"),
    },
    lessons={
        "views": Said(
            N_("Two views of an image"),
            N_(
                "Each picture was cropped and recolored twice at random, into views a and b. The "
                "bars are the images nearest to the anchor, image 1, view a. Which one is its other "
                "view? Choose that bar: click it, or go to it with the ↓ key and press Enter."
            ),
            (N_("Goal: the other view is the anchor."),),
            N_(
                "Views a and b show one picture, so the loss draws them together: a positive pair. "
                "All other images of the batch are negatives, whatever they show."
            ),
            N_(
                "Not that one: it is {picked}, of another picture. Look for the anchor's shape and "
                "background in another crop and other colors, and choose another bar."
            ),
        ),
        "forces": Said(
            N_("Attract and repel"),
            N_(
                "Points of one shape are views of one image; the arrows show where the loss moves "
                "them. Press Run, and let them move until points of one shape stand together."
            ),
            (N_("Mean squared distance within a shape: {now}. Goal: below 0.05."),),
            N_(
                "Positives attract each other and meet; negatives repel each other, so the groups "
                "spread over the circle. A contrastive loss asks for both at once."
            ),
        ),
        "lower": Said(
            N_("Lower τ and watch who gets pushed"),
            N_(
                "At τ = 0.5 each negative gets a small part of the push. Lower τ with the slider "
                "until one negative alone gets more than half. Which one is it?"
            ),
            (N_("The hardest negative gets {now} of the push. Goal: more than 50 %."),),
            N_(
                "It is {hardest}, of all negatives the most similar to the anchor. The lower τ, the "
                "more of the push falls on the hardest negatives."
            ),
        ),
        "too_low": Said(
            N_("Too low"),
            N_(
                "At τ = 0.02 one negative takes all of the push, and it is another cross, which a "
                "good encoder keeps near. Raise τ until ten negatives share the push."
            ),
            (N_("Negatives that matter: {now}. Goal: at least 10."),),
            N_(
                "Too low a τ spends all force on one image, often one of the same kind, and tears "
                "apart what belongs together. Too high a τ pushes all alike and separates little."
            ),
        ),
        "margin": Said(
            N_("A margin"),
            N_(
                "This loss has a margin ε and no τ: it pushes only negatives nearer than ε, the line "
                "across the bars. Lower ε until no more than three are pushed, but at least one."
            ),
            (N_("Negatives that are pushed: {now}. Goal: 1 to 3."),),
            N_(
                "Beyond the margin the loss leaves a negative alone; inside, the nearer it is the "
                "harder it is pushed. A temperature has no such edge: each negative gets some push."
            ),
        ),
        "labels": Said(
            N_("What labels change"),
            N_(
                "Without labels only the other view is a positive. Turn the labels on, so that every "
                "cross is one. Then change SupCon's form from out to in, and watch the bars with a +."
            ),
            (N_("Positives of the anchor: {now}. Goal: the whole class."), N_("Form: {now}. Goal: in.")),
            N_(
                "Labels make a whole class positive. With out, far positives are pulled and the "
                "nearest can even be pushed off; with in, the nearest is pulled hardest and far ones "
                "are given up."
            ),
        ),
    },
    choices={
        "positives": (N_("Labels"), {"views": N_("off"), "classes": N_("on")}),
        "form": (N_("Form"), {"out": "out", "in": "in"}),
    },
)


def words() -> Words:
    """The words of the lessons in the session's language."""
    return Words(
        {key: _(text) for key, text in ENGLISH.panel.items()},
        {name: _translated(said) for name, said in ENGLISH.lessons.items()},
        {
            name: (_(label), {key: _(text) for key, text in options.items()})
            for name, (label, options) in ENGLISH.choices.items()
        },
    )


def _translated(said: Said) -> Said:
    return Said(_(said.title), _(said.question), tuple(map(_, said.goals)), _(said.said), _(said.wrong))
