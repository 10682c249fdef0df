"""Check that the app works here; print JSON for `doctor`: python -m contrastive_lab.desktop.check"""

import json
import os
import tempfile
from pathlib import Path

from contrastive_lab.components.shared.mount import COMPONENTS, PARTS
from contrastive_lab.desktop import serving, window


def problem() -> str:
    """Return the first fault in a sentence; "" if everything works. The user's data are not touched."""
    missing = [part for part in PARTS if not (COMPONENTS / part / "main.js").is_file()]
    if missing:
        return f"browser parts are missing: {', '.join(missing)}"
    with tempfile.TemporaryDirectory() as folder:
        for name in ("HOME", "RUNS"):
            os.environ[f"CONTRASTIVE_LAB_{name}"] = str(Path(folder) / name.lower())
        try:
            serving.check_homes()
            server = serving.begin()
            try:
                serving.wait_until_ready(server)
                page = serving.read_page(server, "/", seconds=20)
                return "" if "<script" in page else "its server answers without a page"
            finally:
                serving.stop(server)
        except (OSError, ValueError) as error:
            return f"its server does not work: {error}"


if __name__ == "__main__":
    print(json.dumps({"window": window.describe(), "problem": problem()}))
