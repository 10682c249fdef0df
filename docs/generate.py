"""Pages that are made from the code at each build: losses, methods, metrics, commands, settings and notebooks.

`write_all(folder)` writes Markdown. A file is written only if its text has changed, which keeps later builds short.
"""

import argparse
import ast
import html
import inspect
import json
import re
import sys
from pathlib import Path

import figures
from gradients import GRADIENTS

from contrastive_core import losses, methods, metrics
from contrastive_core.cli.main import COMMANDS, COMMON, PROGRAM, parser
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.models.encoders import encoder_names
from contrastive_core.records import train_config
from contrastive_core.records.recipe import Recipe
from contrastive_core.registry import knobs_of

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))

# What a setting does, where the code gives neither a help text nor a comment.
SETTINGS = {
    "batch_size": "images in a batch; default: chosen by the method",
    "encoder_knobs": "settings of the encoder, as `--set encoder.KEY=VALUE`",
    "loss_knobs": "settings of the loss, as `--set loss.KEY=VALUE`",
    "method_knobs": "settings of the method, as `--set method.KEY=VALUE`",
    "optimizer": "`adamw`, `sgd` or `lars`; default: chosen by the method",
    "lr": "learning rate; default: chosen by the method",
    "weight_decay": "weight decay; default: chosen by the method",
    "schedule": "learning-rate schedule; default: chosen by the method",
    "channels_last": "store images with channels last in memory",
    "compile": "compile the model with `torch.compile`",
}


def write_all(folder: Path) -> None:
    """Write every page into the folder and remove pages of names that are gone."""
    pages = {
        "commands.md": commands(),
        "settings.md": settings(),
        "metrics.md": metric_list(),
        **_section("losses", "Losses", losses.names(), loss_page),
        **_section("methods", "Methods", methods.names(), method_page),
        **{f"notebooks/{path.stem}.md": notebook_page(path) for path in NOTEBOOKS},
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()


def notebook_page(path: Path) -> str:
    """The text and code of a notebook, with links as seen from the folder of generated pages."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    parts = [("".join(cell["source"]), cell["cell_type"] == "code") for cell in cells]
    title, *rest = [f"```python\n{text}\n```" if is_code else text for text, is_code in parts]
    download = f"{{download}}`Download this notebook <../../notebooks/{path.name}>` to run it in Jupyter or VS Code."
    text = "\n\n".join([title, download, *rest]) + "\n"
    return re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", text.replace("](../", "](../../"))


def _section(folder, title, names, page):
    """An index page with a list of contents, and a page for each name."""
    package = {"losses": losses, "methods": methods}[folder]
    rows = [f"| [{package.get(n).card.title}]({n}.md) | `{n}` | {package.get(n).card.year} |" for n in names]
    table = "\n".join(["| name | key | year |", "|---|---|---|", *rows])
    contents = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    pages = {f"{folder}/{name}.md": page(name) for name in names}
    return {**pages, f"{folder}/index.md": f"# {title}\n\n{INTRODUCTIONS[folder]}\n\n{table}\n\n{contents}\n"}


SCORES = {"dot": "dot product", "distance": "Euclidean distance", "squared_distance": "squared Euclidean distance"}
INTRODUCTIONS = {
    "losses": (
        "Each page shows the formula, the gradient and the settings of one loss. The pages are made from the code.\n\n"
        "Notation: $i$ is an anchor, $P(i)$ its positives, $N(i)$ its negatives and $A(i) = P(i)\\cup N(i)$. "
        "$s_{ij}$ is the similarity of rows $i$ and $j$, $D_{ij}$ their Euclidean distance and $\\tau$ the "
        "temperature. $[\\cdot]$ is 1 if the condition holds, else 0. The value of a batch is the weighted mean of "
        "$L_i$ over all anchors whose loss is defined."
    ),
    "methods": (
        "A method decides which rows are compared, and how the encoder, its head and its memory change. "
        "The pages are made from the code. In the diagrams, boxes with a thick border receive gradients."
    ),
}


FIGURE = """
The figure shows one anchor of a fixed batch with three classes. Its positives are the rows of its class. Each bar is a
candidate, the most similar first. A bar below the line is a pull (blue), a bar above it a push (orange). Each row has
its own scale.
"""


def loss_page(name: str) -> str:
    """Formula, gradient with figure, pairing and settings of a loss."""
    cls = losses.get(name)
    card, (latex, _, remark) = cls.card, GRADIENTS.get(name, ("", None, ""))
    gradient = f"## Gradient\n\n$$\n{latex}\n$$\n\n{remark}\n" if latex else "## Gradient\n"
    rows = "rows of the same class" if card.by_label else "views of the same image"
    compared, figure = f"The loss compares rows by {SCORES[card.score]}, {_of_rows(name)}.", ""
    if issubclass(cls, TwoViewLoss):
        compared = "The loss looks at the dimensions of both views over the batch, and not at scores of pairs."
    else:
        figure = f"{FIGURE}\n{figures.gradient_figure(name)}\n"
    return f"""# {card.title}

{card.summary}

Published in {card.year}: <{card.paper}>

## Formula

$$
{card.formula}
$$

The paper pairs {rows}. {compared}

{gradient}{figure}

## Settings

{knob_table(losses.knobs(name))}

```python
from contrastive_core import losses

loss = losses.create("{name}")
```

## Implementation notes

{notes(cls)}
"""


def _of_rows(name: str) -> str:
    return "with unit length by default" if losses.create(name).normalize else "without normalization by default"


def method_page(name: str) -> str:
    """Idea, data flow, defaults and settings of a method."""
    cls = methods.get(name)
    card = cls.card
    labels = "The method needs labels." if card.needs_labels else "The method does not need labels."
    return f"""# {card.title}

{card.idea}

Published in {card.year}: <{card.paper}>

## Data flow

{figures.flow_diagram(card)}

- Compared: {card.compared}.
- Default loss: [{losses.get(card.default_loss).card.title}](../losses/{card.default_loss}.md).
- {labels}

## Settings

Use them as `--set method.KEY=VALUE`.

{knob_table(methods.knobs(name))}

## Defaults on digits

{defaults(cls)}

## The paper

- Recipe: {card.paper_recipe}.
- Results: {card.measured_by_paper}
- Differences: {card.differences}

```
python -m contrastive_core train --method {name} --dataset {"shapes" if card.needs_captions else "digits"}
```
"""


def defaults(cls) -> str:
    """The defaults for the digits data set with their reasons."""
    usual = cls.defaults(methods.DatasetInfo((1, 8, 8), 1437, 10))
    rows = ["| setting | value | reason |", "|---|---|---|"]
    for key, (value, why) in usual.items():
        if key == "recipe":
            value = "see the reason"
        elif isinstance(value, dict) or hasattr(value, "items"):
            value = ", ".join(f"{k}={v}" for k, v in value.items()) or "none"
        rows.append(f"| `{key}` | {cell(value)} | {cell(why)} |")
    return "\n".join(rows)


def metric_list() -> str:
    """Every metric: how to read it, what it needs, its settings."""
    parts = ["# Metrics\n\nEach metric scores one embedding. The page is made from the code.\n"]
    for name in metrics.names():
        cls = metrics.get(name)
        needs = [
            word for word, is_needed in (("labels", cls.needs_labels), ("training rows", cls.needs_train)) if is_needed
        ]
        better = {True: "Higher is better.", False: "Lower is better.", None: "Neither direction is better."}
        source = f" Source: <{cls.paper}>." if cls.paper else ""
        facts = f"Key: `{name}`. {better[cls.higher_is_better]} Needs: {', '.join(needs) or 'rows only'}.{source}"
        parts.append(f"## {cls.title}\n\n{facts}\n\n{cls.reading}\n\n{knob_table(metrics.knobs(name))}\n")
    return "\n".join(parts)


def knob_table(knobs) -> str:
    """The settings of a registered class as a table."""
    if not knobs:
        return "No settings."
    rows = ["| setting | default | values | meaning |", "|---|---|---|---|"]
    for key, knob in knobs.items():
        if knob.choices:
            values = ", ".join(f"`{choice}`" for choice in knob.choices)
        elif knob.low is not None:
            values = f"{knob.low:g} to {knob.high:g}" if knob.high is not None else f"at least {knob.low:g}"
        else:
            values = "on, off" if isinstance(knob.default, bool) else "text"
        rows.append(
            f"| `{key}` | `{'none' if knob.default is None else knob.default}` | {values} | {cell(knob.help)} |"
        )
    return "\n".join(rows)


def notes(cls) -> str:
    """The docstring of the module of a class, with mathematics left as text."""
    text = inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "")
    return (
        html.escape(text, quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("$", "\\$")
    )


def cell(value) -> str:
    """A value as the text of a table's cell, options as code."""
    text = html.escape(str(value), quote=False).replace("|", "\\|").replace("\n", " ").replace("*", "\\*")
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]*)", r"`\1`", text)


def commands() -> str:
    """Every command with its usage and options, from the parser."""
    subparsers = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    parts = [
        "# Commands\n\nThe page is made from the command-line parser. `contrastive-lab COMMAND` takes the same "
        f"commands as `{PROGRAM} COMMAND`. [Command line](../command_line.md) has examples.\n\n"
        f"Every command takes these options:\n\n{_options(COMMON)}\n"
    ]
    for name in subparsers.choices:
        what = str(COMMANDS[name].help)
        parts.append(f"## `{name}`\n\n{what[0].upper()}{cell(what[1:])}.\n\n{_options(COMMANDS[name].options)}\n")
    return "\n".join(parts)


def _options(options) -> str:
    rows = ["| option | values | meaning |", "|---|---|---|"]
    for flags, entry in options:
        choices = entry.get("choices")
        values = ", ".join(map(str, choices)) if choices else entry.get("metavar") or ""
        default = entry.get("default")
        text = str(entry.get("help") or "")
        if default not in (None, [], False) and "default" not in text:
            text = f"{text} (default: {default})".strip()
        rows.append(f"| {', '.join(f'`{flag}`' for flag in flags)} | {cell(values)} | {cell(text)} |")
    return "\n".join(rows)


def settings() -> str:
    """The fields of `TrainConfig`, the recipe's settings and the encoders."""
    remarks = comments(train_config.TrainConfig)
    rows = ["| setting | type | default | range | meaning |", "|---|---|---|---|---|"]
    for name, field in train_config.FIELDS.items():
        low, high = field.metadata.get("low"), field.metadata.get("high")
        limits = " to ".join(f"{x:,}" for x in (low, high) if x is not None)
        limits = f"at least {limits}" if high is None and low is not None else limits
        meaning = field.metadata.get("option", {}).get("help") or remarks.get(name) or SETTINGS[name]
        default = "" if not isinstance(field.default, (str, int, float, bool)) else f"`{field.default}`"
        kind = getattr(field.type, "__name__", str(field.type)) if isinstance(field.type, type) else str(field.type)
        kind = "mapping" if "dict" in kind else kind.replace(" | None", "")
        rows.append(f"| `{name}` | {kind} | {default} | {limits} | {cell(meaning)} |")
    encoders = ", ".join(f"`{name}`" for name in encoder_names())
    return (
        "# Settings\n\nThese are the settings of `train`, stored in `config` of `run.json`. Change any of them with "
        "`--set KEY=VALUE`. The page is made from the code.\n\n"
        + "\n".join(rows)
        + "\n\n## Augmentation\n\nUse them as `--set recipe.KEY=VALUE`. The defaults depend on method and data set.\n\n"
        + knob_table(knobs_of(Recipe))
        + f"\n\n## Encoders\n\n{encoders}. `timm:NAME` and `torchvision:NAME` take any model of these libraries.\n"
    )


def comments(cls) -> dict[str, str]:
    """The comments that stand behind the fields of a class."""
    lines, _ = inspect.getsourcelines(cls)
    found = {}
    for node in ast.parse(inspect.cleandoc("".join(lines))).body[0].body:
        if isinstance(node, ast.AnnAssign) and node.end_lineno:
            _, hash_sign, comment = lines[node.end_lineno - 1].partition("  # ")
            if hash_sign:
                found[node.target.id] = comment.strip()
    return found
