"""The lessons of the Loss Lab: what each sets, where one looks, by what it is done, and what is said.

The checks are functions of the live view's state, by these names in components/shared/lesson_checks.js.
The thresholds hold on the shipped example that all lessons open (tests/lab/test_lessons.py). `{now}`,
`{hardest}` and `{picked}` are filled in by the browser."""

from dataclasses import dataclass

from contrastive_lab.locale import N_

RUN = "simclr-shapes"  # that all lessons look at
PANEL = {  # words of the panel around a lesson
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
}


@dataclass(frozen=True)
class Check:
    """A named check of the live view's state, and its threshold."""

    name: str
    at: float = 0


@dataclass(frozen=True)
class LessonOption:
    """A setting of the page that stands among the lesson's words as buttons."""

    name: str
    key: str  # of the page's widget
    label: str
    options: dict[str, str]  # with their texts


@dataclass(frozen=True)
class Lesson:
    """One lesson; its address is what it sets, as a link would."""

    name: str
    address: dict[str, str]
    checks: tuple[Check, ...]  # done when all hold
    region: tuple[str, ...]  # parts of the picture that are framed: knob, matrix, bars, ring
    title: str
    question: str
    goals: tuple[str, ...]  # as many as checks
    said: str  # when it is done
    concept: str  # then too: what this is called, and why it is so
    wrong: str = ""  # where its question is answered wrongly
    choices: tuple[LessonOption, ...] = ()


BATCH = {"run": RUN, "on": "batch", "rows": "z", "size": "64", "batch": "0", "pairing": "views"}
CIRCLE = {"run": RUN, "on": "circle", "loss": "nt_xent"}
LESSONS = (
    Lesson(
        "views",
        {**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        (Check("other_view"),),
        ("bars",),
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
        N_("This is called instance discrimination: every image is a class of its own, so no label is needed."),
        N_(
            "Not that one: it is {picked}, of another picture. Look for the anchor's shape and "
            "background in another crop and other colors, and choose another bar."
        ),
    ),
    Lesson(
        "forces",
        {**CIRCLE, "temperature": "0.2", "points": "18", "groups": "3", "speed": "20"},
        (Check("alignment_below", 0.05),),  # 1.9 at first, below 0.01 at rest
        ("ring",),
        N_("Attract and repel"),
        N_(
            "Points of one shape are views of one image; the arrows show where the loss moves "
            "them. Press Run, and let them move until points of one shape stand together."
        ),
        (N_("Mean squared distance within a shape: {now}. Goal: below 0.05."),),
        N_(
            "Positives attract each other and meet; negatives repel each other, so the three shapes move "
            "apart. A contrastive loss asks for both at once."
        ),
        N_(
            "Low alignment together with low uniformity means that positives coincide while all points are spread "
            "evenly. Uniformity got worse here because it counts positive pairs too: scattered points became three "
            "heaps."
        ),
    ),
    Lesson(
        "lower",
        {**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        (Check("hardest_share_above", 0.5),),  # 7 % at first; from τ = 0.17 down
        ("knob", "bars"),
        N_("Lower τ and watch who gets pushed"),
        N_(
            "At τ = 0.5 each negative gets a small part of the push. Lower τ with the slider "
            "until one negative alone gets more than half. Which one is it?"
        ),
        (N_("The hardest negative gets {now} of the push on negatives. Goal: more than 50 %."),),
        N_("It is {hardest}, of all negatives the most similar to the anchor. Such a one is called a hard negative."),
        N_(
            "A low τ favors it because e^(s/τ) turns small differences in similarity into large ratios: at τ = 0.1, a "
            "similarity that is higher by 0.1 weighs 2.7 times as much."
        ),
    ),
    Lesson(
        "too_low",
        {**BATCH, "loss": "nt_xent", "temperature": "0.02", "anchor": "39"},
        (Check("negatives_at_least", 10),),  # one at first; from τ = 0.21 up
        ("knob", "bars"),
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
        N_(
            "A negative of the anchor's own kind is called a false negative. Without labels the loss cannot tell it "
            "from others, and because it is near, a low τ pushes it hardest."
        ),
    ),
    Lesson(
        "margin",
        {**BATCH, "loss": "pair_contrastive", "normalize": "yes", "margin": "1.2", "anchor": "10"},
        (Check("pairs_pushed_from_one_to", 3), Check("triplets_pushed_at_least", 4)),  # eleven and two at first
        ("knob", "bars"),
        N_("A margin"),
        N_(
            "These losses have a margin ε and no τ: they push only negatives before the line across the bars. For "
            "pairs it stands at ε: lower ε until one to three are pushed. Then choose triplets, whose line stands ε "
            "beyond the positive, and raise ε until at least four are pushed."
        ),
        (N_("Pairs, negatives that are pushed: {now}. Goal: 1 to 3."), N_("Triplets: {now}. Goal: at least 4.")),
        N_(
            "Beyond the margin the loss leaves a negative alone. A pair's margin is the same distance for every "
            "anchor; a triplet's is counted from the positive, so it asks only that negatives be farther by ε."
        ),
        N_(
            "Inside the margin a negative is called active. A temperature has no such edge, because e^(s/τ) is never "
            "0: each negative gets some push."
        ),
        choices=(
            LessonOption(
                "loss", "lab-loss-True", N_("Loss"), {"pair_contrastive": N_("Pairs"), "triplet": N_("Triplets")}
            ),
        ),
    ),
    Lesson(
        "labels",
        {**BATCH, "loss": "sup_con", "form": "out", "temperature": "0.2", "anchor": "39", "view": "grad"},
        (Check("positives_at_least", 2), Check("form_is_in")),
        ("bars",),
        N_("What labels change"),
        N_(
            "Without labels only the other view is a positive. Turn the labels on, so that every "
            "cross is one. Then change SupCon's form from out to in, and watch the bars with a +."
        ),
        (N_("Positives of the anchor: {now}. Goal: the whole class."), N_("Form: {now}. Goal: in.")),
        N_(
            "Labels make a whole class positive. With “out”, far positives are pulled and the nearest can even be "
            "pushed off; with “in”, the nearest is pulled hardest and far ones are given up."
        ),
        N_(
            "The forms are named for where the mean over positives stands: outside the logarithm, where each positive "
            "counts, or inside, where one near positive makes up for the rest."
        ),
        choices=(
            LessonOption("positives", "loss_lab-pairing", N_("Labels"), {"views": N_("off"), "classes": N_("on")}),
            LessonOption("form", "lab-sup_con-form", N_("Form"), {"out": "out", "in": "in"}),
        ),
    ),
)
