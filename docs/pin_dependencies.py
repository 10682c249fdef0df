"""Pin the indirect packages: write the versions of this environment into pyproject.toml as constraints of uv.

    uv sync --all-extras --upgrade && uv run pytest && python -m docs.pin_dependencies

Packages that pyproject.toml and requirements.txt pin themselves are left out.
"""

import re
import textwrap
from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
START, END = "constraint-dependencies = [ # python -m docs.pin_dependencies\n", "]\n"
OLDEST = "3.11.0"  # of `requires-python`
WIDTH = 116  # characters of a line


def indirect() -> list[str]:
    """Return installed packages that nothing here pins, with their versions, by name."""
    text = "\n".join((ROOT / name).read_text("utf-8") for name in ("requirements.txt", "pyproject.toml"))
    direct = {canonicalize_name(name) for name in re.findall(r"([\w.-]+)(?:\[[\w,]+\])?==", without_pins(text))}
    left_out = {*direct, "contrastive-lab", "pip", "uv", "setuptools"}
    installed = {canonicalize_name(d.metadata["Name"]): d for d in metadata.distributions()}
    return [pin_of(name, installed[name]) for name in sorted({*installed} - left_out)]


def pin_of(name: str, installed: metadata.Distribution) -> str:
    """Return the requirement; where the version needs a newer Python than the project, for that one only."""
    needed = SpecifierSet(installed.metadata["Requires-Python"] or "")
    oldest = next((one.version for one in needed if one.operator == ">="), "")
    marker = "" if needed.contains(OLDEST) else f" ; python_full_version >= '{oldest}'"
    return f"{name}=={installed.version}{marker}"


def without_pins(text: str) -> str:
    """The text of pyproject.toml without the constraints."""
    start = text.find(START)
    return text if start < 0 else text[:start] + text[text.index(END, start) + len(END) :]


def main() -> None:
    path = ROOT / "pyproject.toml"
    text = without_pins(path.read_text("utf-8")).rstrip()
    words = ", ".join(f'"{pin}"'.replace(" ", "\0") for pin in indirect())  # a line breaks between pins only
    lines = textwrap.fill(words, WIDTH, break_on_hyphens=False, break_long_words=False).replace("\0", " ")
    path.write_text(f"{text}\n{START}{textwrap.indent(lines, '    ')},\n{END}", "utf-8")


if __name__ == "__main__":
    main()
