"""The bench of Samples without a browser."""

from typing import Any

from streamlit.testing.v1 import AppTest

from contrastive_core.base.storage import ROOT
from contrastive_lab.components.bench import Bench, BenchItem

__all__ = ["Desk", "button", "opened", "text_of"]


class Desk:
    """The bench without a browser: what it was given, and what it reports."""

    def __init__(self) -> None:
        self.bench: Bench | None = None
        self.report: dict[str, Any] = {}

    def draw(self, bench: Bench, key: str) -> None:
        self.bench = bench

    @property
    def item(self) -> BenchItem:
        assert self.bench is not None
        return self.bench.items[self.bench.at - self.bench.start]

    @property
    def place(self) -> str:
        assert self.bench is not None
        return f"{self.bench.at + 1} of {self.bench.total}"

    def events(self, *events: tuple[str, str, str]) -> None:
        """Report decisions (what, id, label), numbered from the last that was kept."""
        assert self.bench is not None
        seq = self.bench.ack.get("seq", 0)
        self.report = {
            "nonce": "w",
            "go": self.bench.go,
            "at": "",
            "list": self.bench.list,
            "events": [
                {"seq": seq + k, "what": what, "items": [{"id": sample, "label": label}]}
                for k, (what, sample, label) in enumerate(events, 1)
            ],
        }


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    app = app.switch_page("pages/samples.py")
    for key, value in address.items():
        app.query_params[key] = value
    return app.run()


def text_of(app: AppTest) -> str:
    parts = [*app.header, *app.markdown, *app.info, *app.caption, *app.warning]
    return " ".join(str(p.value) for p in parts)


def button(app: AppTest, label: str) -> object:
    return next(b for b in app.button if b.label == label)
