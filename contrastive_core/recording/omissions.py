"""A record of what a recording leaves out, and of the reasons."""

import logging
import threading
from collections import Counter

from contrastive_core.messages import N_, join, message

logger = logging.getLogger("contrastive_core.watch")
ONE = {  # of what is counted
    N_("steps"): N_("step"),
    N_("rows"): N_("row"),
    N_("probes"): N_("probe"),
    "rows of the queue": N_("row of the queue"),
    "rows of the probe set": N_("row of the probe set"),
    "rows of a sample": N_("row of a sample"),
    "steps' labels": N_("step's labels"),
    "steps' losses": N_("step's losses"),
}


class Omissions:
    """Counts of rows and steps that a recording lacks, by reason: filled by all threads, each reason logged once."""

    def __init__(self, name: str) -> None:
        self.name = name  # of the recording, for the log
        self.counts: Counter[tuple[str, str]] = Counter()
        self.remarks: list[str] = []
        self._lock = threading.Lock()

    def add(self, items: str, reason: str, count: int = 1) -> None:
        """Count `count` more `items` (rows, steps) that are left out."""
        with self._lock:
            is_new = (items, reason) not in self.counts
            self.counts[items, reason] += count
        if is_new:
            logger.warning("%s: %s left out: %s", self.name, items, reason)

    def remark(self, sentence: str) -> None:
        """Add a sentence for the reader, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)
            logger.warning("%s: %s", self.name, sentence)

    @property
    def note(self) -> str:
        """Everything in sentences; "" if nothing is left out."""
        with self._lock:
            counts = [
                (f"{count:,}", ONE.get(items, items) if count == 1 else items, why)
                for (items, why), count in self.counts.items()
            ]
        parts = [message("{count} {items} ({reason})", count=n, items=items, reason=why) for n, items, why in counts]
        sentences = [message("Left out: {parts}.", parts=join("; ", parts))] if parts else []
        return join(" ", [*sentences, *self.remarks])


def reason_of(error: Exception) -> str:
    """Why, in the system's words where it has some."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
