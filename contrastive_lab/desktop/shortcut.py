"""`--install-shortcut`: the app among the programs of Linux, macOS or Windows, with its icon."""

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from contrastive_core.cli.output import print_note
from contrastive_core.records import BUNDLE, atomic, data_home

NAME, ID = "Contrastive Lab", "contrastive-lab"
ABOUT = "Train, see and question contrastive encoders"
ICON = BUNDLE / "docs" / "icon"


def install() -> int:
    """Make it for this system; returns the exit status. Raises OSError, ValueError."""
    if sys.platform == "darwin":
        path = macos(Path.home() / "Applications", command_line())
    elif sys.platform == "win32":
        path = windows(Path(os.environ["APPDATA"]), command_line())
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
        path = linux(data, command_line())
    print_note(f"{NAME} is among the programs now: {path}")
    return 0


def command_line() -> list[str]:
    """Return the command that starts this installation from any folder."""
    return [sys.executable, "-m", "contrastive_lab"]


def linux(data: Path, command: list[str]) -> Path:
    """A desktop entry and its icon, in a folder such as ~/.local/share."""
    icon = data / "icons" / "hicolor" / "scalable" / "apps" / f"{ID}.svg"
    entry = data / "applications" / f"{ID}.desktop"
    lines = [
        "[Desktop Entry]",
        *("Type=Application", f"Name={NAME}", f"Comment={ABOUT}", f"Icon={ID}", f"StartupWMClass={ID}"),
        f"Exec={' '.join(map(_quoted, command))} %f",
        *("Terminal=false", "Categories=Science;Education;"),
    ]
    _put(icon, ICON.with_suffix(".svg").read_bytes())
    _put(entry, ("\n".join(lines) + "\n").encode())
    return entry


def _quoted(part: str) -> str:
    """A part of `Exec`, by the rules of desktop entries: quotes, and backslashes doubled twice."""
    for character in '\\"`$':
        part = part.replace(character, f"\\{character}")
    return '"' + part.replace("\\", "\\\\").replace("%", "%%") + '"'


def macos(folder: Path, command: list[str]) -> Path:
    """An application: a folder with a script, its icon and what the Finder shows."""
    app = folder / f"{NAME}.app"
    names = {"Name": NAME, "Identifier": f"org.{ID}", "Executable": ID, "IconFile": "icon", "PackageType": "APPL"}
    about: dict[str, object] = {f"CFBundle{name}": value for name, value in (names | {"Version": "1"}).items()}
    about |= {"LSMinimumSystemVersion": "11.0", "NSHighResolutionCapable": True}
    _put(app / "Contents" / "Info.plist", plistlib.dumps(about))
    script = app / "Contents" / "MacOS" / ID
    _put(script, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'.encode())
    script.chmod(0o755)
    _icon(app / "Contents" / "Resources" / "icon.icns")
    return app


def windows(appdata: Path, command: list[str]) -> Path:
    """A shortcut in the Start menu, made by the system's own shell."""
    link = appdata / "Microsoft" / "Windows" / "Start Menu" / "Programs" / f"{NAME}.lnk"
    icon = _icon(data_home() / "app" / "icon.ico")
    program, *arguments = command
    quiet = Path(program).with_name("pythonw.exe")  # without a console
    target = str(quiet if quiet.exists() else program)
    fields = {"TargetPath": target, "Arguments": subprocess.list2cmdline(arguments)}
    fields |= {"IconLocation": str(icon), "Description": ABOUT}
    link.parent.mkdir(parents=True, exist_ok=True)
    script = f"$s = (New-Object -ComObject WScript.Shell).CreateShortcut({_literal(str(link))}); "
    script += "; ".join(f"$s.{name} = {_literal(value)}" for name, value in fields.items())
    shell = shutil.which("powershell") or "powershell"
    completed = subprocess.run(
        [shell, "-NoProfile", "-NonInteractive", "-Command", f"{script}; $s.Save()"], capture_output=True, text=True
    )
    if completed.returncode:
        raise ValueError(f"the shortcut could not be made: {completed.stderr.strip()[-300:]}")
    return link


def _literal(text: str) -> str:
    """Quote text for PowerShell: nothing in it is evaluated."""
    return "'" + text.replace("'", "''") + "'"


def _icon(path: Path) -> Path:
    """The logo in the format of the ending."""
    from PIL import Image

    atomic.make_folder(path.parent)
    with Image.open(ICON.with_suffix(".png"), formats=["PNG"]) as image:
        image.save(path)
    return path


def _put(path: Path, content: bytes) -> None:
    """Write a file, with the folders above it as the system makes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path, content, shared=True)
