"""Whether the server has answered what was chosen on a page in a browser, and whether the answer is drawn."""

import time
from typing import Any

from patience import PATIENCE
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

__all__ = ["IDLE", "LOOK", "POPOVERS", "Answers", "open_all"]

LOOK = 200  # ms between two looks at a page, which cost it as much as drawing does
IDLE = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState ===
  'notRunning' && document.querySelector('[data-testid=stMain] h1') !== null &&
  ![...document.querySelectorAll('[data-testid=stSkeleton]')].some((e) => e.checkVisibility())"""
PAINTED = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
POPOVERS = "[data-testid=stPopover] button"
CLOSED = "[data-testid=stExpander]:not([inert] *) details:not([open]) > summary"


class Answers:
    """What a page asked of its server, and whether that is answered: read from the socket, so that
    no pace is supposed of either."""

    def __init__(self, page: Any) -> None:
        self.page, self.asked = page, 0
        self._waits, self._answering = False, False
        page.on("websocket", self._listen)

    def _listen(self, socket: Any) -> None:
        self._waits, self._answering = True, False  # a new page asks for itself
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: bytes | str) -> None:
        message = BackMsg.FromString(frame) if isinstance(frame, bytes) else BackMsg()
        if message.HasField("rerun_script") and not message.rerun_script.is_auto_rerun:
            self.asked += 1
            self._waits, self._answering = True, False

    def _received(self, frame: bytes | str) -> None:
        message = ForwardMsg.FromString(frame) if isinstance(frame, bytes) else ForwardMsg()
        if message.HasField("new_session"):
            self._answering = True
        elif message.HasField("script_finished") and self._answering:
            self._waits = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN

    def wait(self, asked: int) -> None:
        """Until so many questions were asked, the last is answered, and the answer is drawn."""
        end = time.monotonic() + PATIENCE
        while self.asked < asked or self._waits:
            assert time.monotonic() < end, "the server does not answer"
            self.page.wait_for_timeout(20)
        self.page.wait_for_function(IDLE, polling=LOOK, timeout=1000 * PATIENCE)
        self.page.evaluate(PAINTED)
        assert self.page.locator("[data-testid=stException]").count() == 0


def open_all(page: Any) -> None:
    """Open what is folded up."""
    while (closed := page.locator(CLOSED)).count():
        closed.first.click()
