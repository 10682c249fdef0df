"""Pages that are made at each build: losses, methods, metrics, encoders, commands, settings and notebooks.

`write_all(folder)` writes Markdown, and the playground. A file is written only if its text has changed, which keeps
later builds short.
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

from contrastive_core import losses, methods, metrics, runs
from contrastive_core.base.registry import knobs_of
from contrastive_core.base.storage import SHIPPED
from contrastive_core.cli.main import COMMANDS, COMMON, PROGRAM, parser
from contrastive_core.compare.evaluation import Evaluation, read_evaluation
from contrastive_core.data.dataset import KNOWN
from contrastive_core.data.recipe import Recipe
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.models.encoders import encoder_names
from contrastive_core.runs import train_config
from contrastive_core.spaces.small_samples import load_samples
from contrastive_lab.playground.file import kernels, page

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
    "capture": "launch the encoder's kernels as CUDA graphs, on one GPU",
}


def write_all(folder: Path) -> None:
    """Write every page into the folder and remove pages of names that are gone."""
    pages = {
        "commands.md": commands(),
        "settings.md": settings(),
        "metrics.md": metric_list(),
        "encoders.md": encoders(),
        **_section("losses", "Losses", losses.names(), loss_page),
        **_section("methods", "Methods", methods.names(), method_page),
        "site/playground.html": page(kernels(), load_samples("digits"), "digits"),
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
The figure shows one anchor of a fixed batch of {batch} Each bar is a candidate, the most similar first. A bar below the
line is a pull (blue), a bar above it a push (orange). Each row has its own scale.
"""
BATCHES = {
    True: "three classes. Its positives are the rows of its class.",
    False: "twelve images with two views each. Its positive is the other view.",
}
# What a paper pairs, where it is neither rows of a class nor two views of an image.
PAIRED = {
    "info_nce": "a context with what follows it",
    "nce": "an image with its slot in the memory bank",
    "instance_softmax": "an image with its slot in the memory bank",
    "swapped_prediction": "a view with the prototypes of the other view",
    "siglip": "an image with its caption",
}
# Symbols of a formula that the notation of all losses lacks.
SYMBOLS = {
    "decoupled": 'where $c_{ip} = 1$ for `weighting="none"`. For `"von_mises"` it is 2 less the ratio of '
    "$e^{s_{ip}/\\sigma}$ to the mean of $e^{s/\\sigma}$ over all positive pairs.",
    "hard_negative": "where $K = |N(i)|$, $\\beta$ is `beta`, $\\tau^+$ is `tau_plus`, and $l$ runs over $N(i)$.",
    "instance_softmax": "where $v_j$ is the stored vector of image $j$, $f_i$ the vector of the anchor, and $N$ the "
    "number of images.",
    "n_pair": "where $f_i$ is the vector of row $i$ and $\\lambda$ is `l2_penalty`.",
    "nce": "where $K$ is the number of noise features, $N$ the number of slots that they are drawn from, $Z$ the "
    "normalizer (`log_z` is its logarithm) and $\\sigma$ the logistic function.",
    "soft_nearest_neighbor": "where $f_{ij}$ is the distance of rows $i$ and $j$ that `distance` chooses.",
    "swapped_prediction": "where $k$ and $l$ run over prototypes and $q_{ik}$ is the code of the other view.",
}


def loss_page(name: str) -> str:
    """Formula, gradient with figure, pairing and settings of a loss."""
    cls = losses.get(name)
    card, (latex, _, remark) = cls.card, GRADIENTS.get(name, ("", None, ""))
    gradient = f"## Gradient\n\n$$\n{latex}\n$$\n\n{remark}\n" if latex else "## Gradient\n"
    rows = PAIRED.get(name) or ("rows of the same class" if card.by_label else "views of the same image")
    compared, figure = f"The loss compares rows by {SCORES[losses.create(name).score]}, {_of_rows(name)}.", ""
    if issubclass(cls, TwoViewLoss):
        compared = "The loss looks at the dimensions of both views over the batch, and not at scores of pairs."
    elif name != "swapped_prediction":  # its candidates are prototypes, which a batch has none of
        figure = f"{FIGURE.format(batch=BATCHES[card.by_label])}\n{figures.gradient_figure(name)}\n"
    return f"""# {card.title}

{card.summary}

Published in {card.year}: <{card.paper}>

## Formula

$$
{card.formula}
$$

{SYMBOLS.get(name, "")}

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
    if card.needs_captions:
        labels = "The method needs captions, and no labels."
    dataset = "shapes" if card.needs_captions else "digits"
    usual = cls.defaults(DATA_SETS[dataset])
    here = usual.get("method_knobs", ({}, ""))[0]
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

{knob_table(methods.knobs(name), here)}

## Defaults on {dataset}

{defaults(usual)}

## The paper

- Recipe: {card.paper_recipe}.
- Results: {card.measured_by_paper}
- Differences: {card.differences}

```
contrastive-lab train --method {name} --dataset {dataset}
```
"""


DATA_SETS = {name: KNOWN[name] for name in ("digits", "shapes")}


def defaults(usual) -> str:
    """The defaults for a data set with their reasons."""
    rows = ["| setting | value | reason |", "|---|---|---|"]
    for key, (value, why) in usual.items():
        if key == "recipe":
            value = "see the reason"
        elif isinstance(value, dict) or hasattr(value, "items"):
            value = ", ".join(f"{k}={v}" for k, v in value.items()) or "none"
        rows.append(f"| `{key}` | {cell(value)} | {cell(why)} |")
    return "\n".join(rows)


def encoders() -> str:
    """The shipped encoders with their scores on test images, by data set, the most accurate first."""
    runs_of: dict[str, list[tuple[float, str]]] = {name: [] for name in DATA_SETS}
    beside = {}
    for run in map(runs.load, sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())):
        found, kept = read_evaluation(run), run.manifest
        method = f"[{methods.get(kept['method']).card.title}](methods/{kept['method']}.md)"
        row = f"| `{run.name}` | {method} | {kept['config']['epochs']} | {accuracies(found, 'h')} |"
        runs_of[kept["dataset"]].append((found.value("h", "knn"), row))
        beside[kept["dataset"]] = f"| raw pixels | | | {accuracies(found, 'raw')} |"
    parts = [f"# Encoders that come with the app\n{ENCODERS}"]
    for dataset, rows in runs_of.items():
        head = "| run | method | epochs | kNN accuracy, % | linear probe, % |\n|---|---|---:|---:|---:|"
        lines = [row for _, row in sorted(rows, reverse=True)]
        parts.append(f"## {dataset}\n\n" + "\n".join([head, *lines, beside[dataset]]) + "\n")
    return "\n".join(parts)


ENCODERS = """
Scores are of test images, by the encoder's output h, with 95 % intervals over images. The page is made from the stored
results. Open an encoder with `contrastive-lab simclr-shapes`.

Each has one seed, so a row says nothing about its method in general. [Which method?](../choose/which_method.md)
compares methods over seeds. `contrastive-lab sweep checkpoints/shipped.toml` trains all of these again.
"""


def accuracies(found: Evaluation, source: str) -> str:
    """Two cells: kNN and linear probe accuracy in % with their intervals."""
    cells = []
    for name in ("knn", "linear_probe"):
        score = found.score(source, name)
        low, high = (100 * x for x in score.interval)
        cells.append(f"{100 * score.value:.1f} [{low:.1f}, {high:.1f}]")
    return " | ".join(cells)


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


def knob_table(knobs, here=None) -> str:
    """The settings of a registered class as a table. Args: here: other defaults, which short runs take."""
    if not knobs:
        return "No settings."
    short = {key: value for key, value in (here or {}).items() if value != knobs[key].default}
    column, line = (" default in short runs |", "---|") if short else ("", "")
    rows = [f"| setting | default |{column} values | meaning |", f"|---|---|{line}---|---|"]
    for key, knob in knobs.items():
        if knob.choices:
            values = ", ".join(f"`{choice}`" for choice in knob.choices)
        elif knob.low is not None:
            values = f"{knob.low:g} to {knob.high:g}" if knob.high is not None else f"at least {knob.low:g}"
        else:
            values = "on, off" if isinstance(knob.default, bool) else "text"
        default = "none" if knob.default is None else knob.default
        other = f" `{short.get(key, default)}` |" if short else ""
        rows.append(f"| `{key}` | `{default}` |{other} {values} | {cell(knob.help)} |")
    return "\n".join(rows)


def notes(cls) -> str:
    """The docstring of the module of a class, with mathematics left as text."""
    parts = re.split(r"(`[^`\n]+`)", inspect.cleandoc(sys.modules[cls.__module__].__doc__ or ""))
    return "".join(part if i % 2 else plain(part) for i, part in enumerate(parts))


def plain(text: str) -> str:
    """Text whose characters mean nothing to Markdown."""
    return re.sub(r"[|*_$]", r"\\\g<0>", html.escape(text, quote=False))


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
