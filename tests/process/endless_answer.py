"""An answer that is never ready; it leaves a file where it was stopped."""

import time
from pathlib import Path
from typing import Any


def compute(kind: str, values: dict[str, Any], on_progress: Any) -> None:
    try:
        while True:
            on_progress("computing", None)
            time.sleep(0.02)
    finally:
        Path(values["out"]).touch()
