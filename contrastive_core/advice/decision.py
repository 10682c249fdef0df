"""Whether to train at all: one of four answers, from scores on the same held-out images.

The cheapest option stands until a costlier one is shown to be better: its interval over images and seeds, corrected for
all comparisons, excludes zero (evaluation/verdicts.py). To say "train", training has to beat each of these: raw pixels,
the best frozen encoder, an untrained encoder, and naming the largest class. One lucky comparison on images that do
not show their classes is not enough. Where training beats raw pixels, but not the frozen encoder, that one is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from contrastive_core.evaluation.verdicts import Contrast, SettingScores, contrast, interval_and_basis
from contrastive_core.messages import N_, join, message
from contrastive_core.records.advice import OPTIONS
from contrastive_core.records.advice_answer import Decision
from contrastive_core.storage.json_files import JsonObject

COSTS = [*OPTIONS]  # the cheapest first


@dataclass(frozen=True)
class Evidence:
    """Scores on the held-out images. `frozen`: of each encoder; `trained`: "continue" and "scratch", with the seeds so
    far; `planned`: those of them that will have every seed."""

    pixels: SettingScores
    chance: SettingScores
    untrained: SettingScores
    frozen: Sequence[SettingScores]
    trained: dict[str, SettingScores]
    planned: Sequence[str] = ("scratch",)

    @property
    def best_frozen(self) -> SettingScores | None:
        """The encoder that scores highest; None where there is none."""
        return max(self.frozen, key=lambda one: one.mean, default=None)

    @property
    def tests(self) -> int:
        """How many comparisons are made together."""
        rivals = 3 + bool(self.frozen)
        return max(1, 2 * len(self.frozen) + rivals * len(self.planned) + (len(self.planned) > 1))


def decide(evidence: Evidence) -> Decision:
    """The answer, or why it is not decided, with the comparisons that it rests on."""
    judge = _Judge(evidence)
    base, best = evidence.pixels, evidence.best_frozen
    answer = "pixels"
    if best is not None and judge.beats(best, base) and judge.beats(best, evidence.chance):
        answer = "frozen"
    lacking = [name for name in evidence.planned if not _has_seeds(evidence.trained.get(name))]
    repeated = {k: one for k, one in evidence.trained.items() if _has_seeds(one)}
    wins = [name for name, one in repeated.items() if judge.is_worth_it(one)]
    if lacking:
        return judge.decision("", _undecided(lacking), None)
    if wins:
        answer = judge.winner(wins)
    elif answer == "pixels" and best is not None and any(judge.beats_all_but_frozen(t) for t in repeated.values()):
        answer = "frozen"
    return judge.decision(answer, judge.sentence(answer), answer)


def _has_seeds(scores: SettingScores | None) -> bool:
    return scores is not None and scores.is_repeated


def _undecided(lacking: Sequence[str]) -> str:
    names = join("; ", [OPTIONS[name] for name in lacking])
    return message("Not decided: three seeds are missing of: {names}. Give it more time.", names=names)


class _Judge:
    """Makes each comparison once, and keeps it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.made = evidence, dict[tuple[str, str], Contrast]()

    def contrast(self, a: SettingScores, b: SettingScores) -> Contrast:
        """a less b."""
        key = (a.label, b.label)
        if key not in self.made:
            pool = [*self.evidence.trained.values(), self.evidence.untrained]
            self.made[key] = contrast(a, b, [one for one in pool if one.scores], self.evidence.tests)
        return self.made[key]

    def beats(self, a: SettingScores, b: SettingScores) -> bool:
        return self.contrast(a, b).sign > 0

    def beats_all_but_frozen(self, one: SettingScores) -> bool:
        """Whether a training beats what no encoder has learned."""
        it = self.evidence
        return [self.beats(one, rival) for rival in (it.pixels, it.untrained, it.chance)] == [True] * 3

    def is_worth_it(self, one: SettingScores) -> bool:
        best = self.evidence.best_frozen
        return self.beats_all_but_frozen(one) and (best is None or self.beats(one, best))

    def winner(self, wins: Sequence[str]) -> str:
        """Of two trainings that are worth it the better one; to go on where no difference is shown."""
        if len(wins) < 2:
            return wins[0]
        trained = self.evidence.trained
        return "scratch" if self.beats(trained["scratch"], trained["continue"]) else "continue"

    def scores_of(self, option: str) -> SettingScores | None:
        it = self.evidence
        known = {"pixels": it.pixels, "frozen": it.best_frozen}
        return known.get(option) or it.trained.get(option)

    def sentence(self, answer: str) -> str:
        """The answer with a difference and its interval."""
        it, best = self.evidence, self.evidence.best_frozen
        own = self.scores_of(answer)
        assert own is not None
        if answer in it.trained:
            rival = best if best is not None and best.mean > it.pixels.mean else it.pixels
            encoder = best.label if best else ""
            text = _of_training(answer, {"encoder": encoder, "rival": rival.label}, own, self.contrast(own, rival))
        else:
            above = [one for one in (*it.trained.values(), *it.frozen, it.pixels) if one is not own and one.scores]
            text = self._enough(answer, own, max(above, key=lambda one: one.mean, default=None))
        if not any(self.beats(one, it.chance) for one in (it.pixels, *it.frozen, *it.trained.values()) if one.scores):
            text += message(
                " Nothing here is better than naming the largest class ({share} %): these images may not show their "
                "classes.",
                share=f"{100 * it.chance.mean:.1f}",
            )
        return text

    def _enough(self, answer: str, own: SettingScores, rival: SettingScores | None) -> str:
        first = {
            "pixels": N_("Raw pixels are enough: {value} % by kNN, and nothing costlier is shown to be better."),
            "frozen": N_(
                "The frozen encoder {name} is enough: {value} % by kNN, and training is not shown to be better."
            ),
        }[answer]
        text = message(first, name=own.label, value=f"{100 * own.mean:.1f}")
        if rival is None:
            return text
        found = self.contrast(rival, own)
        if found.interval is None:
            return text
        shown = message(
            " The highest of the others is {name}, {difference} points from it (95 % CI {low} to {high}): {shown}.",
            **{"name": rival.label, "shown": found.shown, **_figures(found)},
        )
        return join("", [text, shown])

    def decision(self, answer: str, sentence: str, chosen: str | None) -> Decision:
        it, best = self.evidence, self.evidence.best_frozen
        listed = [("pixels", it.pixels), *(("frozen", f) for f in it.frozen), *it.trained.items()]
        listed += [("", it.untrained), ("", it.chance)]
        rows = [
            _row(option, one, bool(chosen) and option == chosen and (option != "frozen" or one is best))
            for option, one in listed
            if one.scores
        ]
        pairs = [
            {"a": a, "b": b, "difference": c.difference, "interval": c.interval, "shown": c.shown}
            for (a, b), c in self.made.items()
        ]
        return {
            "answer": answer,
            "sentence": sentence,
            "encoder": best.label if best else "",
            "rows": rows,
            "pairs": pairs,
        }


def _row(option: str, one: SettingScores, is_chosen: bool) -> JsonObject:
    """An option with its score; one that is made without chance has no seeds."""
    interval, basis = interval_and_basis(one)
    seeds = 0 if one.is_fixed else len(one.scores)
    row = {"option": option, "label": one.label, "mean": one.mean, "seeds": seeds, "is_chosen": is_chosen}
    return {**row, "interval": interval, "basis": basis}


def _of_training(answer: str, names: dict[str, str], own: SettingScores, found: Contrast) -> str:
    template = {
        "continue": N_(
            "Continue training {encoder}: {difference} points above {rival} (95 % CI over images and {seeds} seeds: "
            "{low} to {high})."
        ),
        "scratch": N_(
            "Train from scratch: {difference} points above {rival} (95 % CI over images and {seeds} seeds: {low} to "
            "{high})."
        ),
    }[answer]
    return message(template, **names, seeds=len(own.scores), **_figures(found))


def _figures(found: Contrast) -> dict[str, str]:
    low, high = found.interval or (0.0, 0.0)
    return {"difference": f"{100 * found.difference:+.1f}", "low": f"{100 * low:.1f}", "high": f"{100 * high:.1f}"}
