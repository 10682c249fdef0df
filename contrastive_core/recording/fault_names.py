"""Names and descriptions of the known faults of a training loop."""

from typing import NamedTuple

from contrastive_core.base.messages import N_, message

TEXTS = {
    "tau_twice": N_("τ is applied twice: the logits are s/τ²."),
    "tau_as_scale": N_("The logits are multiplied by τ instead of divided by it."),
    "tau_above_1": N_("τ is {tau}: the logits are multiplied by τ instead of divided by it."),
    "tau_unused": N_("τ is not applied."),
    "other_tau": N_("τ is {tau}, not the declared value."),
    "bias_unused": N_("The bias is not added."),
    "not_normalized": N_("The rows are not normalized."),
    "normalized": N_("The rows are normalized, although this was not declared."),
    "other_setting": N_("The loop uses {name}={value}."),
    "positive_among_negatives": N_("The positive is also among the negatives."),
    "self_among_negatives": N_("Each row is its own negative: the diagonal is not masked."),
    "processes_apart": N_("Rows of other processes are not used: each process has the loss of its own rows."),
    "first_positive_only": N_(
        "Only the first positive of an anchor is used as a positive. The others are treated as negatives."
    ),
    "column_0": N_("Every target is column 0."),
    "mean_over_pairs": N_("The mean is over positive pairs, not over anchors."),
    "queue_unused": N_("The queue is not used: the negatives are the other keys of the batch."),
    "negatives_unused": N_("The {count} rows without an anchor are not used as negatives."),
    "view_unused": N_("The rows of {count} of {views} views are not used."),
    "paired_by_labels": N_("Rows with the same label are positives."),
    "paired_by_views": N_("The labels are not used."),
    "target_shifted": N_("The targets are shifted by one row."),
    "view_order": N_("The targets assume another order of the views."),
    "both_directions": N_("Both directions are computed: the rows of side 2 are anchors too."),
    "one_direction": N_("Only one direction is computed: the rows of side {side} are not anchors."),
    "across_views": N_("Rows are compared only with rows of the other view."),
    "detached": N_("No gradient reaches the rows."),
    "detached_side": N_(
        "No gradient reaches the rows of side {side}: they are detached, or the loss uses other tensors."
    ),
    "detached_candidates": N_("Rows get a gradient only as anchors: the candidates are detached."),
    "gathered_detached": N_("Rows of other processes are gathered without their gradient."),
    "gradient_too_small": N_(
        "The gradient is {factor} times that of the loss, as for a wrong number of processes or of accumulated "
        "batches. If this is intended, pass accumulate={number}."
    ),
    "gradient_too_large": N_(
        "The gradient is {factor} times that of the loss, as for gradients that are summed over processes or "
        "accumulated batches."
    ),
    "value_scaled": N_("The loss value is {factor} times the declared one. Its gradient is right."),
    "summed": N_("The losses are summed over {count} anchors, not averaged."),
    "mean_over_all": N_("The mean is over all {count} rows, but only {defined} have a positive."),
    "scaled": N_("Loss and gradient are {factor} times those of the declared loss."),
    "noise": N_("The rows are noisy when the loss compares them: unit rows with noise of about {sigma} per number."),
    "collapse": N_(
        "The embedding collapses: unit rows vary in {count} of {width} dimensions, with variance {variance}."
    ),
    "queue_unfilled": N_("The queue is not filled: it does not change."),
    "own_keys_in_queue": N_("{count} rows of the queue are keys of this batch."),
    "duplicates": N_("Images that are in the batch twice are negatives of each other. Ids: {count}."),
    "random_evaluation": N_(
        "The encoder is not in evaluation mode during the probe: the same samples get different rows when they are "
        "embedded again (cosine {cosine}), as with dropout. Call model.eval(), or pass model=."
    ),
}
SAME = {  # one name for several sentences
    "tau_above_1": "tau_as_scale",
    **dict.fromkeys(("detached_side", "detached_candidates"), "detached"),
    **dict.fromkeys(("gradient_too_small", "gradient_too_large"), "gradient_scaled"),
    **dict.fromkeys(("summed", "mean_over_all", "scaled"), "wrong_count"),
}
OF_ROWS = ("collapse", "duplicates", "own_keys_in_queue", "queue_unfilled", "random_evaluation")  # exclude no others


class Fault(NamedTuple):
    """A fault: its name, a sentence, and the ids of the rows concerned."""

    name: str
    text: str
    rows: tuple[str, ...] = ()


def fault_of(name: str, /, rows: tuple[str, ...] = (), **values: object) -> Fault:
    return Fault(SAME.get(name, name), message(TEXTS[name], **values), rows)
