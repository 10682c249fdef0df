"""Bundle a component's modules into one, for hosts that accept a single module and serve no files: notebooks, a file.

Each module becomes a function that is called once, in the order of the imports, and returns its exports. Only one
module is requested, so no URL must be resolved. This works from a kernel's message, from a file on a phone, and where a
page's policy forbids `blob:` and `data:` scripts (import maps and object URLs would need them). The bundle is created
on first use from the files that the app serves, so a checkout needs no build and no node. This is not a JavaScript
parser. Prettier, which checks these files, writes each import and export at the start of a line in one of the few forms
below; any other form raises an error."""

import re
from functools import cache
from pathlib import Path

COMPONENTS = Path(__file__).resolve().parents[1]
IMPORT = re.compile(r'^import \{ ([\w$, ]+) \} from "([^"]+)";$', re.M)
EXPORT = re.compile(r"^export (?=(?:const|(?:async )?function) ([\w$]+))", re.M)
DEFAULT_FUNCTION = re.compile(r"^export default function (?=\()", re.M)
DEFAULT = re.compile(r"^export default (?!function|class|async)", re.M)
OTHER = re.compile(r"^\s*(import|export)\b(?!\s*\().*|.*\bimport(\(|\.meta).*", re.M)


@cache
def bundle(entry: str) -> str:
    """Return one ES module with the exports of `entry`, a path below components/. Raises ValueError for an unknown
    form."""
    modules: dict[Path, str] = {}
    _add((COMPONENTS / entry).resolve(), modules, ())
    names = {path: f"$module{number}" for number, path in enumerate(modules)}
    parts = [f"const {names[path]} = {_as_function(path, names)};" for path in modules]
    return "\n".join([*parts, f"export default {names[[*modules][-1]]}.default;", ""])


@cache
def style_sheet(*names: str) -> str:
    """Concatenate style sheets of shared/."""
    return "\n".join((COMPONENTS / "shared" / f"{n}.css").read_text("utf-8") for n in names)


def _add(path: Path, modules: dict[Path, str], above: tuple[Path, ...]) -> None:
    """Add a module after all its imports."""
    if path in above:
        raise ValueError(f"{path.name} imports itself, by way of {above[-1].name}")
    if path in modules:
        return
    text = path.read_text("utf-8")
    for _, name in IMPORT.findall(text):
        _add((path.parent / name).resolve(), modules, (*above, path))
    modules[path] = text


def _as_function(path: Path, names: dict[Path, str]) -> str:
    """Wrap a module in a function call that returns an object of its exports."""
    text = path.read_text("utf-8")
    exported = EXPORT.findall(text)

    def constants(match: re.Match[str]) -> str:
        wanted, source = match[1], (path.parent / match[2]).resolve()
        known = EXPORT.findall(source.read_text("utf-8"))
        for name in wanted.split(", "):
            if name.split(" as ")[0] not in known:
                raise ValueError(f"{source.name} does not export {name}, which {path.name} imports")
        return f"const {{ {wanted.replace(' as ', ': ')} }} = {names[source]};"

    text = EXPORT.sub("", IMPORT.sub(constants, text))
    if DEFAULT_FUNCTION.search(text) or DEFAULT.search(text):
        exported.append("default: $default")
    text = DEFAULT.sub("const $default = ", DEFAULT_FUNCTION.sub("function $default", text))
    if other := OTHER.search(text):
        raise ValueError(f"{path.name} cannot be bundled: {other.group().strip()}")
    return f"(() => {{\n{text}return {{ {', '.join(exported)} }};\n}})()"
