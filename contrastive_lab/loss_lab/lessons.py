"""The lessons of the Loss Lab: what each sets, where one looks, by what it is done, and what is said.

The checks are functions of the live view's state, by these names in components/shared/lesson_checks.js.
The thresholds hold on the shipped examples that lessons open (tests/lab/test_lessons.py). `{now}`,
`{hardest}` and `{picked}` are filled in by the browser."""

from dataclasses import dataclass

from contrastive_lab.locale import N_

RUN, TOWERS_RUN = "simclr-shapes", "clip-shapes"  # that lessons look at
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
    region: tuple[str, ...]  # parts of the picture that are framed: knob, knobs, matrix, bars, ring, switches
    title: str
    question: str
    goals: tuple[str, ...]  # as many as checks
    said: str  # when it is done
    concept: str  # then too: what this is called, and why it is so
    wrong: str = ""  # where its question is answered wrongly
    choices: tuple[LessonOption, ...] = ()


BATCH = {"run": RUN, "on": "batch", "rows": "z", "size": "64", "batch": "0", "pairing": "views"}
CIRCLE = {"run": RUN, "on": "circle", "loss": "nt_xent"}
ACROSS = {"run": TOWERS_RUN, "on": "batch", "rows": "towers", "size": "64", "batch": "0", "direction": "a_to_b"}
SIAMESE = {"method": "simsiam", "predictor": "yes", "seed": "0", "pace": "600"}
LESSONS = (
    Lesson(
        "views",
        {**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        (Check("other_view"),),
        ("bars",),
        N_("Two views of an image"),
        N_(
            "Each image was cropped and recolored twice at random, into views a and b. The bars are the images "
            "nearest to the anchor, image 1, view a. Which one is its other view? Click that bar, or move to it with "
            "the ↓ key and press Enter."
        ),
        (N_("Goal: the other view is the anchor."),),
        N_(
            "Views a and b show one image, so the loss pulls them together: a positive pair. All other images of the "
            "batch are negatives, even those of the same class."
        ),
        N_("This is called instance discrimination: every image is its own class, so no label is needed."),
        N_(
            "Not that one: it is {picked}, a different image. Look for the anchor's shape and background in another "
            "crop and other colors, and choose another bar."
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
            "Low alignment with low uniformity means that positives coincide and all points are spread evenly. "
            "Uniformity got worse here because it counts positive pairs too: scattered points became three clusters."
        ),
    ),
    Lesson(
        "lower",
        {**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        (Check("hardest_share_above", 0.5),),  # 7 % at first; from τ = 0.17 down
        ("knob", "bars"),
        N_("Lower τ and watch which images are pushed"),
        N_(
            "At τ = 0.5 each negative gets a small part of the push. Lower τ with the slider "
            "until one negative alone gets more than half. Which one is it?"
        ),
        (N_("The hardest negative gets {now} of the push on negatives. Goal: more than 50 %."),),
        N_("It is {hardest}, the negative most similar to the anchor. It is called a hard negative."),
        N_(
            "A low τ favors it because e^(s/τ) turns small differences in similarity into large ratios. At τ = 0.1, "
            "a similarity that is higher by 0.1 weighs 2.7 times as much."
        ),
    ),
    Lesson(
        "too_low",
        {**BATCH, "loss": "nt_xent", "temperature": "0.02", "anchor": "39"},
        (Check("negatives_at_least", 10),),  # one at first; from τ = 0.21 up
        ("knob", "bars"),
        N_("Too low"),
        N_(
            "At τ = 0.02 one negative takes the whole push. It is another cross, and a good encoder keeps crosses "
            "together. Raise τ until ten negatives share the push."
        ),
        (N_("Negatives that matter: {now}. Goal: at least 10."),),
        N_(
            "If τ is too low, one image takes the whole push, often one of the same class, and similar images are "
            "separated. If τ is too high, all images are pushed equally and separate little."
        ),
        N_(
            "A negative of the anchor's own class is called a false negative. Without labels the loss cannot "
            "recognize it. A low τ pushes it hardest because it is near."
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
            "pairs the line is at ε. Lower ε until one to three are pushed. Then choose triplets, where the line is "
            "ε beyond the positive. Raise ε until at least four are pushed."
        ),
        (N_("Pairs, negatives that are pushed: {now}. Goal: 1 to 3."), N_("Triplets: {now}. Goal: at least 4.")),
        N_(
            "The loss ignores a negative beyond the margin. A pair's margin is the same distance for every anchor. A "
            "triplet's margin starts at the positive: a negative only needs to be farther by ε."
        ),
        N_(
            "A negative inside the margin is called active. A temperature has no such edge: e^(s/τ) is never 0, so "
            "each negative gets some push."
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
        N_("Effect of labels"),
        N_(
            "Without labels only the other view is a positive. Turn the labels on to make every cross a positive. "
            "Then change SupCon's form from out to in, and watch the bars with a +."
        ),
        (N_("Positives of the anchor: {now}. Goal: the whole class."), N_("Form: {now}. Goal: in.")),
        N_(
            "Labels make a whole class positive. With “out”, far positives are pulled, and the nearest can even be "
            "pushed away. With “in”, the nearest is pulled hardest, and far ones are ignored."
        ),
        N_(
            "The forms are named after the mean over positives. Outside the logarithm, each positive counts. Inside, "
            "one near positive compensates for the rest."
        ),
        choices=(
            LessonOption("positives", "loss_lab-pairing", N_("Labels"), {"views": N_("off"), "classes": N_("on")}),
            LessonOption("form", "lab-sup_con-form", N_("Form"), {"out": "out", "in": "in"}),
        ),
    ),
    Lesson(
        "collapse",
        {"run": RUN, "on": "circle", "loss": "negative_cosine", **SIAMESE, "stop_gradient": "no"},
        (
            Check("collapsed_without_stop_gradient", 0.1),  # 0.9 at first
            Check("collapsed_without_predictor", 0.1),
            Check("steps_with_both_at_least", 500),
        ),
        ("switches", "ring"),
        N_("Why does it not collapse?"),
        N_(
            "BYOL and SimSiam only pull views together, so one point for all images is a perfect answer. The "
            "stop-gradient is off: press Run. Next turn it on and the predictor off. Then turn both on and wait for "
            "500 steps."
        ),
        (
            N_("Without stop-gradient, spread: {now}. Goal: below 0.1."),
            N_("Without predictor, spread: {now}. Goal: below 0.1."),
            N_("With both, steps without collapse: {now}. Goal: 500."),
        ),
        N_(
            "Without stop-gradient or without predictor the points become one; with both they stay apart. We measured "
            "20 seeds: 20 of 20 collapse by step 500 without either, and 0 of 20 in 1,500 steps with both."
        ),
        N_(
            "One point is a minimum of this loss in all three cases; what differs is the way the training goes. "
            "Without a predictor the stop-gradient only halves the gradient. Tian et al. (2021) explain the rest for "
            "linear networks."
        ),
    ),
    Lesson(
        "variance",
        {**BATCH, "size": "256", "loss": "vicreg", "deviation": "1"},
        (Check("variance_share_below", 0.5), Check("off_diagonal_share_above", 0.5)),  # 98 % and 31 % at first
        ("knobs", "matrix"),
        N_("No collapse without a predictor"),
        N_(
            "VICReg and Barlow Twins forbid collapse in the loss, on the matrix of dimensions. VICReg charges each "
            "dimension that varies less than γ. Lower γ until this hinge is less than half of the loss. Then choose "
            "Barlow Twins, and raise λ until the cells off the diagonal are more than half."
        ),
        (
            N_("VICReg, share of the variance hinge: {now}. Goal: below 50 %."),
            N_("Barlow Twins, share off the diagonal: {now}. Goal: above 50 %."),
        ),
        N_(
            "The hinge ignores a dimension that varies more than γ. The cells off the diagonal charge two dimensions "
            "that vary together."
        ),
        N_(
            "One point for all images costs VICReg 25 (μ·γ at γ = 1) and Barlow Twins 64, the number of dimensions; it "
            "costs the negative cosine nothing. At λ = 0 Barlow Twins still forbids one point, but all dimensions may "
            "become copies of one."
        ),
        choices=(
            LessonOption("loss", "lab-loss-True", N_("Loss"), {"vicreg": "VICReg", "barlow_twins": "Barlow Twins"}),
        ),
    ),
    Lesson(
        "false_negative",
        {**BATCH, "loss": "info_nce", "temperature": "0.2", "anchor": "39"},
        (Check("weighted_share_above", 0.7), Check("left_out_at_least", 4)),  # 47 % at β = 1; none left out
        ("further", "bars"),
        N_("What a false negative does"),
        N_(
            "The anchor is a cross. Its nearest candidate is another cross, nearer than its own other view: a false "
            "negative. Choose hard negatives and raise β until it gets more than 70 % of the push. Then go back to "
            "InfoNCE, switch on m, and lower it until four negatives are left out."
        ),
        (
            N_("Hard negatives, share of the hardest: {now}. Goal: more than 70 %."),
            N_("InfoNCE, negatives left out: {now}. Goal: at least 4."),
        ),
        N_(
            "All four are crosses. The margin leaves out negatives that are more similar than the positive plus m. The "
            "matrix marks them, and the loss pushes other images instead."
        ),
        N_(
            "A loss cannot tell a hard negative from a false one: both are near. Weights on hard negatives help if "
            "near negatives are of other classes, and hurt if they are not. A margin does the opposite."
        ),
        choices=(
            LessonOption(
                "loss", "lab-loss-True", N_("Loss"), {"info_nce": "InfoNCE", "hard_negative": N_("Hard negatives")}
            ),
        ),
    ),
    Lesson(
        "sigmoid",
        {**ACROSS, "loss": "info_nce", "temperature": "0.5", "anchor": "0"},
        (Check("softmax_cooled_to", 0.1), Check("sigmoid_balanced_within", 2)),  # 0.2 at b = −10, 0.9 at −9, 200 at −5
        ("knob", "further", "bars"),
        N_("CLIP and SigLIP"),
        N_(
            "The anchor is an image, and the bars are captions. CLIP takes InfoNCE between the two. Lower τ to 0.1 and "
            "watch the push on all negatives over the pull on the positive. Then choose SigLIP, and drag b until push "
            "and pull are about equal again."
        ),
        (
            N_("InfoNCE, push over pull: {now}. Goal: τ at most 0.1."),
            N_("SigLIP, push over pull: {now}. Goal: between 0.5 and 2."),
        ),
        N_(
            "With InfoNCE the ratio is 1.00 at every τ, because the weights of a softmax sum to 1. SigLIP judges each "
            "pair alone, so many negatives can outweigh one positive. b sets the balance."
        ),
        N_(
            "b is the logit at similarity 0: a negative b says that most pairs do not belong together. SigLIP starts "
            "at b = −10 and learns b and τ. It needs no sum over the batch, so it is cheap to split over devices."
        ),
        choices=(
            LessonOption("loss", "lab-loss-True", N_("Loss"), {"info_nce": N_("InfoNCE (CLIP)"), "siglip": "SigLIP"}),
        ),
    ),
)
