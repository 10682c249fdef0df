"""The app's pages in a real browser: how soon each stands, what it sends, what the server holds.

    python -m benchmarks.pages [--repeats 3] [--visits 200]

Each page is opened anew in a tab of a browser and a server that have shown it before. *First paint*
is the frame with the page's own heading, *settled* the last change of the document, the end of the
last file or of the last long task of the browser before a second in which nothing comes and nothing
is at work; both in seconds from the address. Messages and bytes are those of the WebSocket. The
peer, in the same rounds, is a page of Streamlit with a heading and a sentence.

Then what it takes to open a shipped run on Explore, or with another on Compare, in a new home: the
tasks that had to be begun. Last, the memory of the server (its resident set) after so many visits,
each in a tab of its own of which eight are open, of all pages and some shipped runs in turn; and
again when the tabs are closed. Beside it: what would be free if the server ended, and what the
processes hold that compute for it, which end when they have nothing to do.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks._timing import Seconds, figure, limit, summary
from benchmarks.browser import ROOT, chromium, serving
from contrastive_core.base.storage import SHIPPED

PAGES = {
    "Home": "",
    "Explore": "explore",
    "Loss Lab": "loss_lab",
    "Loss Lab, circle": "loss_lab?on=circle",
    "Train": "train",
    "Compare": "compare",
    "Samples": "samples",
    "Runs": "runs",
    "Methods": "methods",
}
BARE = "import streamlit as st\nst.title('Bare')\nst.write('A sentence.')\n"
SETTLED, MEGABYTES = 2.0, 300.0  # goals
TABS = 8  # that are open at once
QUIET = 1000  # ms in which nothing comes
PATIENCE = 300_000  # ms
FORGET = 20.0  # seconds that the server has to give back what closed tabs held

# What the page itself knows of its frames; of canvases that move nothing is asked.
WATCH = """(() => {
  const seen = window.seen = {first: 0, last: 0};
  new MutationObserver(() => {
    seen.last = performance.now();
    if (!seen.first && document.querySelector('[data-testid=stMain] h1')) {
      seen.first = -1;
      requestAnimationFrame(() => setTimeout(() => seen.first = performance.now()));
    }
  }).observe(document, {subtree: true, childList: true, characterData: true});
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) seen.last = Math.max(seen.last, e.startTime + e.duration);
  }).observe({entryTypes: ['resource', 'longtask']});
})()"""
IS_SETTLED = f"""() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState ===
  'notRunning' && !document.querySelector('[data-testid=stMain] [data-testid=stProgress]') &&
  seen.first > 0 && performance.now() - seen.last > {QUIET}"""
IS_DRAWN = IS_SETTLED.replace(f"> {QUIET}", "> 50")


@dataclass
class Opened:
    """One opening of a page: seconds, and what the WebSocket carried."""

    first: float
    settled: float
    messages: int
    bytes: int


def open_page(context: Any, address: str, until: str = IS_SETTLED) -> Opened:
    """Open it in a new tab, wait until it has settled, close the tab."""
    page = context.new_page()
    frames: list[int] = []

    def listen(socket: Any) -> None:
        for event in ("framesent", "framereceived"):
            socket.on(event, lambda frame: frames.append(len(frame)))

    page.on("websocket", listen)
    page.goto(address)
    page.wait_for_function(until, polling=100, timeout=PATIENCE)
    seen = page.evaluate("seen")
    page.close()
    return Opened(seen["first"] / 1e3, seen["last"] / 1e3, len(frames), sum(frames))


# --- each page ---------------------------------------------------------------------------------


def page_lines(context: Any, app: str, bare: str, repeats: int) -> list[dict[str, Any]]:
    """A line for each page, and what was measured printed."""
    addresses = {"bare": bare} | {name: f"{app}/{path}" for name, path in PAGES.items()}
    for address in addresses.values():
        open_page(context, address)
    opened: dict[str, list[Opened]] = {name: [] for name in addresses}
    for _ in range(repeats):
        for name, address in addresses.items():
            opened[name].append(open_page(context, address))
    print(f"{'':17}first paint  settled (range)        messages    kB")
    for name, rounds in opened.items():
        print(row(name, rounds))
    floor = Seconds([o.settled for o in opened.pop("bare")])
    lines = []
    for name, rounds in opened.items():
        settled = Seconds([o.settled for o in rounds])
        lines.append(limit(f"{name}: settled", settled, "s", SETTLED, max(settled.rounds)))
    means = [statistics.mean(o[i].settled for o in opened.values()) for i in range(repeats)]
    lines.append(figure("pages, mean, settled", Seconds(means), "bare Streamlit", floor, 0.5, "s"))
    return lines


def row(name: str, rounds: list[Opened]) -> str:
    settled = [o.settled for o in rounds]
    return (
        f"{name:17}{statistics.median(o.first for o in rounds):9.2f} s "
        f"{statistics.median(settled):7.2f} s ({min(settled):.2f} to {max(settled):.2f})"
        f"{statistics.median(o.messages for o in rounds):9.0f}"
        f"{statistics.median(o.bytes for o in rounds) / 1e3:10.0f}"
    )


# --- shipped runs in a new home ----------------------------------------------------------------


def shipped() -> list[str]:
    return sorted(p.name for p in SHIPPED.iterdir() if (p / "run.json").exists())


def begun(home: Path) -> int:
    """Tasks that the server has begun."""
    return len(list((home / "home" / "jobs").glob("*/*.json")))


def preparing(context: Any, app: str, home: Path) -> list[dict[str, Any]]:
    """Tasks that shipped runs need before their pages stand, each opened once."""
    lines = []
    for page in ("explore", "compare"):
        needing = []
        for name in shipped():
            before = begun(home)
            open_page(context, f"{app}/{page}?run={name}", IS_DRAWN)
            if begun(home) > before:
                needing.append(name)
        title = f"shipped runs that {page.title()} prepares anything for"
        print(f"{title}: {len(needing)} of {len(shipped())} ({', '.join(needing) or 'none'})")
        lines.append(limit(title, len(needing), f"of {len(shipped())}", 0))
    return lines


# --- memory ------------------------------------------------------------------------------------


def server_of(address: str) -> psutil.Process:
    """The server behind an address, which is a child of this process."""
    port = address.rpartition(":")[2]
    return next(p for p in psutil.Process().children() if port in p.cmdline())


def memory(server: psutil.Process) -> tuple[float, float, float]:
    """Megabytes in memory, those of them that are of this process alone, and those of its children
    alone."""
    now = server.memory_full_info()
    children = 0
    for child in server.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            children += child.memory_full_info().uss
    return now.rss / 1e6, now.uss / 1e6, children / 1e6


def visit(context: Any, app: str, visits: int) -> deque[Any]:
    """Pages of shipped runs of both data sets, one after the other; the last tabs stay open."""
    tabs: deque[Any] = deque()
    names = shipped()[::3]
    for k in range(visits):
        path = list(PAGES.values())[k % len(PAGES)]
        run = names[k // len(PAGES) % len(names)]
        page = context.new_page()
        tabs.append(page)
        page.goto(f"{app}/{path}{'&' if '?' in path else '?'}run={run}" if path else app)
        page.wait_for_function(IS_DRAWN, polling=100, timeout=PATIENCE)
        if len(tabs) > TABS:
            tabs.popleft().close()
    return tabs


def memory_lines(context: Any, app: str, visits: int) -> list[dict[str, Any]]:
    """The server's memory before, with tabs open, and with all closed."""
    server = server_of(app)
    held = {"before": memory(server)}
    tabs = visit(context, app, visits)
    held[f"{TABS} tabs open"] = opened = memory(server)
    while tabs:
        tabs.popleft().close()
    time.sleep(FORGET)
    held["closed"] = closed = memory(server)
    for name, (rss, uss, children) in held.items():
        print(f"memory, {name}: {rss:.0f} MB, of it {uss:.0f} of the server alone; its children {children:.0f}")
    return [
        limit(f"memory of the server after {visits} visits", opened[0], "MB", MEGABYTES),
        limit("its memory when the tabs are closed", closed[0], "MB", opened[0]),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--visits", type=int, default=200)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        home, other = Path(folder, "app"), Path(folder, "bare")
        home.mkdir()
        other.mkdir()
        bare = other / "bare.py"
        bare.write_text(BARE)
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        context.add_init_script(WATCH)
        with serving(ROOT / "app.py", home) as app, serving(bare, other) as peer:
            prepared = preparing(context, app, home)
            lines = page_lines(context, app, peer, args.repeats)
            lines += memory_lines(context, app, args.visits)
    summary("pages", [*lines, *prepared])


if __name__ == "__main__":
    main()
