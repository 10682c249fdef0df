"""What is said of the scores of two towers: rows that equal one another, recall at chance; and their record."""

from dataclasses import dataclass

from contrastive_core.evaluation.towers import KS, repeated, tower_scores
from contrastive_core.messages import N_, Message, message
from contrastive_core.records.score import Score, Scores, scores_to_json
from contrastive_core.records.towers import Towers, towers_of
from contrastive_core.storage.json_files import JsonObject

REPEATED = N_(
    "{n} of {all} rows of {name} are identical to another. Identical rows are right answers for one another's partners."
)
AT_CHANCE = N_(
    "Recall is at chance in both directions: Recall@{k} is {value} % (95 % interval {low} to {high}), and a random "
    "order gives {chance} %. Are the rows of both towers in the same order?"
)


@dataclass(frozen=True)
class TowerNotes:
    """Sentences on two towers: `warnings` that recall is at chance, `notes` on how many rows of each equal another."""

    warnings: list[Message]
    notes: list[Message]


def tower_notes(towers: Towers, scores: tuple[Scores, Scores] | None = None) -> TowerNotes:
    """Return the sentences. Args: scores: own and chance, as of `tower_scores`, where they are known."""
    own, chance = scores or tower_scores(towers)[:2]
    counts = repeated(towers).items()
    equal = [message(REPEATED, name=name, n=f"{n:,}", all=f"{all_:,}") for name, (n, all_) in counts]
    return TowerNotes(_at_chance(own, chance), equal)


def tower_record(towers: Towers, name: str) -> JsonObject:
    """Return the scores of a file of two towers, as `evaluate_file` does for one."""
    own, chance, _ = tower_scores(towers)
    said, usable = tower_notes(towers, (own, chance)), towers_of(towers.rows.take(towers.rows.usable))
    return {
        "file": name,
        "n": len(towers.rows),
        "n_test": sum(len(at) for at, _ in towers.usable_sides()),
        "n_train": 0,
        "pairs": 0 if usable is None else usable.partner_pairs(1)[1],
        "left_out": {reason: len(at) for reason, at in towers.rows.problems.items()},
        "scores": scores_to_json(own),
        "chance": scores_to_json(chance),
        "notes": [str(note) for note in said.warnings + said.notes],
    }


def _at_chance(own: Scores, chance: Scores) -> list[Message]:
    """Say that no recall exceeds chance; of the largest k at which chance leaves room."""
    names = [(k, f"recall_{k}_{way}") for k in KS for way in ("forth", "back")]
    known = [(k, own[name], chance[name]) for k, name in names if name in chance and (chance[name].value or 1) <= 0.5]
    if not known or any(_exceeds(score, random) for _, score, random in known):
        return []
    k, score, random = known[-2]  # from a to b
    assert score.value is not None
    assert score.interval is not None
    assert random.value is not None
    ends = (score.value, *score.interval, random.value)
    value, low, high, at = (f"{100 * x:.1f}" for x in ends)
    return [message(AT_CHANCE, k=k, value=value, low=low, high=high, chance=at)]


def _exceeds(score: Score, random: Score) -> bool:
    return score.interval is not None and random.value is not None and score.interval[0] > random.value
