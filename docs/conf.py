"""Configuration of the documentation site: `python -m sphinx -W -b html docs docs/_build/html`."""

import inspect
import re
import sys
import tomllib
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generate  # noqa: E402

project = "Contrastive Lab"
author = "The Contrastive Lab authors"
project_copyright = "2026, The Contrastive Lab authors"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "Contrastive Lab"
html_logo = "icon.svg"
html_favicon = "icon.png"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/site"]  # the playground, which the first page embeds
html_copy_source = False
html_show_sphinx = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
default_role = "code"

# Pages of the repository that the site includes under another name.
INCLUDED = {
    "../CONTRIBUTING.md": "/contributing.md",
    "../SECURITY.md": "/security_policy.md",
    "../CODE_OF_CONDUCT.md": "/code_of_conduct.md",
    "../CHANGELOG.md": "/changelog.md",
    "../README.md": "/index.md",
}
# A section of a docstring whose text starts on the same line, as in "Raises: ValueError for …".
SECTION = re.compile(r"^(Raises|Returns): (?=\S)")


def relink(app, docname, source):
    """Point links to files of the repository at their pages on the site."""
    for path, page in INCLUDED.items():
        source[0] = re.sub(rf"\((?:\.\./)*{re.escape(path)}", f"({page}", source[0])


def relink_included(app, relative_path, parent_docname, source):
    """The same for an included file, whose links start from the repository's root."""
    for path, page in INCLUDED.items():
        source[0] = source[0].replace(f"({path.removeprefix('../')}", f"({page}")
    source[0] = re.sub(r"\(docs/", "(/", source[0])


def mark_up(app, what, name, obj, options, lines):
    """Turn our docstrings into reStructuredText: one-line sections, plain stars and bars, literal code."""
    text = "\n".join(SECTION.sub(r"**\1:** ", line) for line in lines)
    text = re.sub(r"\n(\*\*(?:Raises|Returns):\*\*)", r"\n\n\1", text)
    text = re.sub(r"(?m)^Args: (.+(?:\n {4}.+)*)", lambda found: "Args:\n    " + " ".join(found[1].split()), text)
    text = re.sub(r"(?m)^(Args|Returns):$", r"\n\1:", text)
    text = re.sub(rf"[;.] (?=(?:{names_of(obj)}): )", "\n    ", text)
    parts = re.split(r"(`[^`\n]+`|\*\*\w+:\*\*)", text)
    lines[:] = "".join(part if i % 2 else escape(part) for i, part in enumerate(parts)).split("\n")


def names_of(obj):
    """The parameters of a function as alternatives of a pattern: each gets a line of its own."""
    try:
        names = [re.escape(name) for name in inspect.signature(obj).parameters if name != "self"]
    except (TypeError, ValueError):
        names = []
    return "|".join(names) or "(?!)"


def escape(text):
    """Plain text for stars, bars, trailing underscores and a letter in parentheses, which would begin a list."""
    return re.sub(r"[*|]|(?<=\w)_(?=\W)|\((?=\w\) )", r"\\\g<0>", text)


def visit_math(self, node):
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    mathml = latex2mathml.converter.convert(node.astext(), display=display)
    self.body.append(f'<div class="math">{mathml}</div>' if display == "block" else mathml)
    raise nodes.SkipNode


def setup(app):
    generate.write_all(HERE / "generated")
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("source-read", relink)
    app.connect("include-read", relink_included)
    app.connect("autodoc-process-docstring", mark_up, priority=400)  # before napoleon
