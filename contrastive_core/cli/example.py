"""The command `example`: write the files of an example into a folder."""

from argparse import Namespace
from pathlib import Path

from contrastive_core.cli.command_io import print_result
from contrastive_core.spaces import example_questions


def example(args: Namespace) -> None:
    """Write an example and print how to compare its models. Raises ValueError if the folder contains files."""
    folder = Path(args.out or args.name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty; choose another folder with --out")
    files = example_questions.write(folder)
    judgments = folder / example_questions.JUDGMENTS
    text = f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}"
    text += f"\ncontrastive-lab compare {' '.join(map(str, files))} --qrels {judgments}"
    print_result(args, {"out": str(folder), "vectors": [*map(str, files)], "qrels": str(judgments)}, text)
