"""A window for the app: its own, else an app-mode browser window, else a browser tab."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from contrastive_core.base.lock import scratch_folder
from contrastive_core.engine.process import OWN_SESSION

TITLE = "Contrastive Lab"
SIZE = (1440, 960)
NAMES = "chromium chromium-browser google-chrome google-chrome-stable microsoft-edge microsoft-edge-stable".split()
APPLICATIONS = ("Google Chrome", "Chromium", "Microsoft Edge")  # of macOS
PROGRAMS = (
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
    "Chromium/Application/chrome.exe",
)  # of Windows
SOON = 3.0  # seconds in which a browser that cannot start has ended
Window = Callable[[], None]  # waits until it is closed


def open_window(address: str, link: str, browser: bool = False) -> Window | None:
    """Open the app in the first available kind of window.

    Args: link: the address for a browser, which redirects to the app (serving.py); browser: open only in the browser.
    Returns: a function that waits until the window is closed; None for a browser, which does not report it.
    Raises: ValueError with the reason if nothing can be opened."""
    if not has_display():
        raise ValueError("there is no display here")
    if not browser:
        if importlib.util.find_spec("webview"):
            return partial(_webview, address, link)
        if wait := _app_mode(link):
            return wait
    with contextlib.suppress(webbrowser.Error, OSError):
        if webbrowser.open(link):
            return None
    raise ValueError("no browser was found")


def describe() -> str:
    """Describe the kind of window that would be opened."""
    if not has_display():
        return "none: there is no display"
    if importlib.util.find_spec("webview"):
        return "its own (pywebview)"
    if browser := next(chromiums(), None):
        return f"{browser} in app mode"
    try:
        return f"the browser ({webbrowser.get().name})"  # type: ignore[attr-defined]
    except (webbrowser.Error, AttributeError):
        return "none: no browser was found"


def has_display() -> bool:
    """Return whether a window can be shown, as far as the system tells."""
    if not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def chromiums() -> Iterator[str]:
    """Yield browsers that can show a page in app mode."""
    if sys.platform == "darwin":
        folders = (Path("/Applications"), Path.home() / "Applications")
        places = (f / f"{a}.app/Contents/MacOS/{a}" for a in APPLICATIONS for f in folders)
    elif sys.platform == "win32":
        names = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        roots = [Path(os.environ[name]) for name in names if os.environ.get(name)]
        places = (root / program for root in roots for program in PROGRAMS)
    else:
        places = (Path(executable) for n in NAMES if (executable := shutil.which(n)))
    return (str(place) for place in places if place.exists())


# --- kinds ---------------------------------------------------------------------------------------


def _webview(address: str, link: str) -> None:
    """Open an own window on the main thread, or another kind if its toolkit is missing."""
    import webview

    try:
        webview.settings["ALLOW_DOWNLOADS"] = True
        webview.create_window(TITLE, address, width=SIZE[0], height=SIZE[1])
        webview.start()
    except webview.WebViewException:
        if (wait := _app_mode(link)) is None:
            raise ValueError("pywebview has no toolkit to draw with") from None
        wait()


def _app_mode(link: str) -> Window | None:
    """Open a browser window in app mode with its own profile; with a shared profile Chromium would pass the page to a
    running process and end. None if no browser is found or each ends at once, as Chromium does for root."""
    for program in chromiums():
        with contextlib.ExitStack() as stack:
            command = [program, f"--app={link}", f"--user-data-dir={stack.enter_context(scratch_folder()) / 'window'}"]
            command += [f"--window-size={SIZE[0]},{SIZE[1]}", "--no-first-run", "--no-default-browser-check"]
            null = subprocess.DEVNULL
            try:
                process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, **OWN_SESSION)
                process.wait(SOON)
            except OSError:
                continue
            except subprocess.TimeoutExpired:
                return partial(_wait, process, stack.pop_all())
            if process.returncode == 0:  # it passed the page to a running one
                return partial(_wait, process, stack.pop_all())
    return None


def _wait(process: subprocess.Popen[bytes], profile: contextlib.ExitStack) -> None:
    """Wait until the window is closed; Ctrl-C closes it."""
    with profile:
        try:
            process.wait()
        except BaseException:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            raise
