"""The lessons of the Loss Lab: their settings, the region to look at, their goals, and their texts.

The checks are functions of the live view's state, by these names in components/shared/lesson_checks.js. The thresholds
hold on the shipped examples that lessons open (tests/app/test_lessons.py). The browser fills in `{now}`, `{hardest}`
and `{picked}`."""

from dataclasses import dataclass

from contrastive_lab.locale import N_

ICONS = "filter_2 join_inner tune ac_unit adjust sell blur_on grid_on heart_broken balance".split()  # of the list
FINGERS = {"lower": "left", "too_low": "right", "margin": "left", "sigmoid": "left"}  # where a slider is dragged first
PRESETS = {"siglip": {"temperature": "0.1"}}  # with a loss that a lesson offers; at a lower τ no b balances it
RUN, TOWERS_RUN = "simclr-shapes", "clip-shapes"  # that lessons look at
PLAYED = ("lower", "too_low")  # lessons that lead to the playground
TWINS = '[0, {"temperature": 0.5}, {"temperature": 0.05}]'  # of the playground (setting.js)
PANEL = {  # words of the panel around a lesson
    "name": N_("Lesson {n} of {total}"),
    "free": N_("No lesson: free play"),
    "control": N_("Lessons"),
    "back": N_("Back"),
    "again": N_("Start again"),
    "next": N_("Next: {title}"),
    "end": N_("Train your own encoder"),
    "play": N_("See it learn at two τ"),
    "done": N_("Done."),
    "before": N_("You finished this lesson before."),
    "opening": N_("Opening…"),
}


@dataclass(frozen=True)
class Check:
    """A named check of the live view's state, and its threshold."""

    name: str
    at: float = 0


@dataclass(frozen=True)
class LessonOption:
    """A setting of the page shown as buttons in the lesson's text."""

    name: str
    key: str  # of the page's widget
    label: str
    options: dict[str, str]  # with their texts


@dataclass(frozen=True)
class Lesson:
    """One lesson; `address` holds its settings as URL parameters."""

    name: str
    address: dict[str, str]
    checks: tuple[Check, ...]  # done when all hold
    region: tuple[str, ...]  # parts of the picture that are framed: knob, knobs, matrix, bars, ring, switches
    title: str
    task: str
    question: str
    goals: tuple[str, ...]  # as many as checks
    said: str  # when it is done
    concept: str  # then too: what this is called, and why it is so
    wrong: str = ""  # where its question is answered wrongly
    choices: tuple[LessonOption, ...] = ()


BATCH = {"run": RUN, "on": "star", "rows": "z", "size": "64", "batch": "0", "pairing": "views"}
CIRCLE = {"run": RUN, "on": "circle", "loss": "nt_xent"}
ACROSS = {"run": TOWERS_RUN, "on": "matrix", "rows": "towers", "size": "64", "batch": "0", "direction": "a_to_b"}
SIAMESE = {"method": "simsiam", "predictor": "yes", "seed": "0", "pace": "600"}
LESSONS = (
    Lesson(
        name="views",
        address={**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        checks=(Check("other_view"),),
        region=("star",),
        title=N_("Two views of an image"),
        task=N_("Find the other view of the anchor."),
        question=N_(
            "Each image was cropped and recolored twice at random, into views a and b. The anchor is image 1, view a. "
            "Click the image that shows the same, or choose it with the arrow keys and press Enter."
        ),
        goals=(N_("Goal: make the other view the anchor."),),
        said=N_(
            "Views a and b show one image, so the loss pulls them together: a positive pair. All other images of the "
            "batch are negatives, even those of the same class."
        ),
        concept=N_(
            "This is called instance discrimination: every image is its own class, so no label is needed. After the "
            "head the two views of an image are near (mean squared distance 0.25). Images of one class are not (1.54, "
            "the alignment that Explore shows after the head)."
        ),
        wrong=N_(
            "Not that one: it is {picked}, a different image. Look for the anchor's shape and background in another "
            "crop and other colors, and choose another."
        ),
    ),
    Lesson(
        name="forces",
        address={**CIRCLE, "temperature": "0.2", "points": "18", "groups": "3", "speed": "20"},
        checks=(Check("alignment_below", 0.05),),  # 1.9 at first, below 0.01 at rest
        region=("ring",),
        title=N_("Attract and repel"),
        task=N_("Press Run (▶) until points of one shape stand together."),
        question=N_("Points of one shape are views of one image. The arrows show where the loss moves them."),
        goals=(N_("Mean squared distance within a shape: {now}. Goal: below 0.05."),),
        said=N_(
            "Positives attract each other and meet; negatives repel each other, so the three shapes move "
            "apart. A contrastive loss asks for both at once."
        ),
        concept=N_(
            "Low alignment with low uniformity means that positives coincide and all points are spread evenly. "
            "Uniformity got worse here because it counts positive pairs too: scattered points became three clusters."
        ),
    ),
    Lesson(
        name="lower",
        address={**BATCH, "loss": "nt_xent", "temperature": "0.5", "anchor": "0"},
        checks=(Check("hardest_share_above", 0.5),),  # 7 % at first; from τ = 0.17 down
        region=("knob", "bars"),
        title=N_("Lower τ and watch which images are pushed"),
        task=N_("Lower τ until one negative gets more than half of the push."),
        question=N_("At τ = 0.5 each negative gets a small part of the push. Which one does a low τ choose?"),
        goals=(N_("The hardest negative gets {now} of the push on negatives. Goal: more than 50 %."),),
        said=N_("It is {hardest}, the negative most similar to the anchor. It is called a hard negative."),
        concept=N_(
            "A low τ favors it because e^(s/τ) turns small differences in similarity into large ratios. At τ = 0.1, "
            "a similarity that is higher by 0.1 weighs 2.7 times as much."
        ),
    ),
    Lesson(
        name="too_low",
        address={**BATCH, "loss": "nt_xent", "temperature": "0.02", "anchor": "39"},
        checks=(Check("negatives_at_least", 10),),  # one at first; from τ = 0.21 up
        region=("knob", "bars"),
        title=N_("Too low"),
        task=N_("Raise τ until ten negatives share the push."),
        question=N_(
            "At τ = 0.02 one negative takes the whole push. It is another cross, and a good encoder keeps crosses "
            "together."
        ),
        goals=(N_("Negatives that matter: {now}. Goal: at least 10."),),
        said=N_(
            "If τ is too low, one image takes the whole push, often one of the same class, and similar images are "
            "separated. If τ is too high, all images are pushed equally and separate little."
        ),
        concept=N_(
            "A negative of the anchor's own class is called a false negative. Without labels the loss cannot "
            "recognize it. A low τ pushes it hardest because it is near."
        ),
    ),
    Lesson(
        name="margin",
        address={**BATCH, "loss": "pair_contrastive", "normalize": "yes", "margin": "1.2", "anchor": "10"},
        checks=(Check("pairs_pushed_from_one_to", 3), Check("triplets_pushed_at_least", 4)),  # eleven and two at first
        region=("knob", "bars"),
        title=N_("A margin"),
        task=N_("Lower ε until one to three negatives are pushed. Then raise it for triplets."),
        question=N_(
            "These losses have a margin ε and no τ: they push only negatives inside the ring. For pairs it is at ε, "
            "for triplets ε beyond the positive. Drag the ring or the slider."
        ),
        goals=(N_("Pairs, negatives that are pushed: {now}. Goal: 1 to 3."), N_("Triplets: {now}. Goal: at least 4.")),
        said=N_(
            "The loss ignores a negative beyond the margin. A pair's margin is the same distance for every anchor. A "
            "triplet's margin starts at the positive: a negative only needs to be farther by ε."
        ),
        concept=N_(
            "A negative inside the margin is called active. A temperature has no such edge: e^(s/τ) is never 0, so "
            "each negative gets some push."
        ),
        choices=(
            LessonOption("loss", "lab-loss", N_("Loss"), {"pair_contrastive": N_("Pairs"), "triplet": N_("Triplets")}),
        ),
    ),
    Lesson(
        name="labels",
        address={**BATCH, "loss": "sup_con", "form": "out", "temperature": "0.2", "anchor": "39", "view": "grad"},
        checks=(Check("positives_at_least", 2), Check("form_is_in")),
        region=("bars",),
        title=N_("Effect of labels"),
        task=N_("Turn the labels on, then change the form from out to in."),
        question=N_(
            "Without labels, only the other view is a positive. With labels, every cross is one. Watch which images "
            "are pulled."
        ),
        goals=(
            N_("Positives of the anchor: {now}. Goal: the whole class."),
            N_("Form: “{now}”. Goal: change it to “in”."),
        ),
        said=N_(
            "Labels make a whole class positive. With “out”, far positives are pulled, and the nearest can even be "
            "pushed away. With “in”, the nearest is pulled hardest, and far ones are ignored."
        ),
        concept=N_(
            "The forms are named after the mean over positives. Outside the logarithm, each positive counts. Inside, "
            "one near positive compensates for the rest."
        ),
        choices=(
            LessonOption("positives", "loss_lab-pairing", N_("Labels"), {"views": N_("off"), "classes": N_("on")}),
            LessonOption("form", "lab-sup_con-form", N_("Form"), {"out": "out", "in": "in"}),
        ),
    ),
    Lesson(
        name="collapse",
        address={"run": RUN, "on": "circle", "loss": "negative_cosine", **SIAMESE, "stop_gradient": "no"},
        checks=(
            Check("collapsed_without_stop_gradient", 0.1),  # 0.9 at first
            Check("collapsed_without_predictor", 0.1),
            Check("steps_with_both_at_least", 500),
        ),
        region=("switches", "ring"),
        title=N_("Why does it not collapse?"),
        task=N_("Let the points collapse in two ways. Then keep them apart for 500 steps."),
        question=N_(
            "BYOL and SimSiam only pull views together. The stop-gradient is off: press Run (▶). Next turn it on and "
            "the predictor off. Then turn both on."
        ),
        goals=(
            N_("Without stop-gradient, spread: {now}. Goal: below 0.1."),
            N_("Without predictor, spread: {now}. Goal: below 0.1."),
            N_("With both, steps without collapse: {now}. Goal: 500."),
        ),
        said=N_(
            "Without the stop-gradient or without the predictor, the points collapse into one; with both they stay "
            "apart."
        ),
        concept=N_(
            "Without the stop-gradient, both ends of each line move, and they meet fastest in a single point. With "
            "it, the target (in its ring) does not move. Without a predictor, each view still moves to its target, "
            "at half the speed. A predictor learns that move itself, so the encoder need not make it. With only one "
            "of the two parts, all of 20 seeds collapse; with both, none does in 1,500 steps."
        ),
    ),
    Lesson(
        name="variance",
        address={**BATCH, "on": "matrix", "size": "256", "loss": "vicreg", "deviation": "1"},
        checks=(Check("variance_share_below", 0.5), Check("off_diagonal_share_above", 0.5)),  # 98 % and 31 % at first
        region=("knobs", "matrix"),
        title=N_("No collapse without a predictor"),
        task=N_("Lower γ until the hinge is less than half of the loss. Then raise λ of Barlow Twins."),
        question=N_(
            "Both losses forbid collapse on the matrix of dimensions. VICReg penalizes each dimension that varies less "
            "than γ. Barlow Twins penalizes cells off the diagonal: raise λ until they are more than half."
        ),
        goals=(
            N_("VICReg, share of the variance hinge: {now}. Goal: below 50 %."),
            N_("Barlow Twins, share off the diagonal: {now}. Goal: above 50 %."),
        ),
        said=N_(
            "The hinge ignores a dimension that varies more than γ. The cells off the diagonal penalize two dimensions "
            "that vary together."
        ),
        concept=N_(
            "One point for all images costs VICReg 25 (μ·γ at γ = 1) and Barlow Twins 64, the number of dimensions; it "
            "costs the negative cosine nothing. At λ = 0 Barlow Twins still forbids one point, but all dimensions may "
            "become copies of one."
        ),
        choices=(LessonOption("loss", "lab-loss", N_("Loss"), {"vicreg": "VICReg", "barlow_twins": "Barlow Twins"}),),
    ),
    Lesson(
        name="false_negative",
        address={**BATCH, "loss": "info_nce", "temperature": "0.2", "anchor": "39"},
        checks=(Check("weighted_share_above", 0.7), Check("left_out_at_least", 4)),  # 47 % at β = 1; none left out
        region=("further", "bars"),
        title=N_("What a false negative does"),
        task=N_("Raise β until the false negative gets 70 % of the push. Then leave four out with m."),
        question=N_(
            "The anchor is a cross, and its nearest negative is another cross. Choose hard negatives and raise β. Then "
            "go back to InfoNCE, switch on m and lower it."
        ),
        goals=(
            N_("Hard negatives, share of the hardest: {now}. Goal: more than 70 %."),
            N_("InfoNCE, negatives left out: {now}. Goal: at least 4."),
        ),
        said=N_(
            "All four are crosses. The margin leaves out negatives that are more similar than the positive plus m: "
            "they have no arrow, and the loss pushes other images instead."
        ),
        concept=N_(
            "A loss cannot tell a hard negative from a false one: both are near. Weights on hard negatives help if "
            "near negatives are of other classes, and hurt if they are not. A margin does the opposite."
        ),
        choices=(
            LessonOption(
                "loss", "lab-loss", N_("Loss"), {"info_nce": "InfoNCE", "hard_negative": N_("Hard negatives")}
            ),
        ),
    ),
    Lesson(
        name="sigmoid",
        address={**ACROSS, "loss": "info_nce", "temperature": "0.5", "anchor": "0"},
        checks=(
            Check("softmax_cooled_to", 0.1),
            Check("sigmoid_balanced_within", 2),
        ),  # 0.2 at b = −10, 0.9 at −9, 200 at −5
        region=("knob", "further", "bars"),
        title=N_("CLIP and SigLIP"),
        task=N_("Lower τ to 0.1. Then choose SigLIP and balance push and pull with b."),
        question=N_(
            "The anchor is an image, the bars are captions. CLIP takes InfoNCE between the two. Watch the ratio of "
            "the push on all negatives to the pull on the positive. SigLIP starts at τ = 0.1 and b = −10."
        ),
        goals=(
            N_("InfoNCE, push over pull: {now}. Goal: τ at most 0.1."),
            N_("SigLIP, push over pull: {now}. Goal: between 0.5 and 2."),
        ),
        said=N_(
            "With InfoNCE the ratio is 1.00 at every τ, because the weights of a softmax sum to 1. SigLIP judges each "
            "pair alone, so many negatives can outweigh one positive. b sets the balance."
        ),
        concept=N_(
            "b is the logit at similarity 0: a negative b says that most pairs do not belong together. SigLIP starts "
            "at b = −10 and learns b and τ. It needs no sum over the batch, so it is cheap to split over devices. "
            "−bτ is the relative bias: the cosine above which a pair counts as matching. If it separates all positives "
            "from all negatives, the loss falls to zero as τ shrinks. The margin is half of the gap between the two."
        ),
        choices=(LessonOption("loss", "lab-loss", N_("Loss"), {"info_nce": N_("InfoNCE (CLIP)"), "siglip": "SigLIP"}),),
    ),
)
