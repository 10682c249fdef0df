"""The browser parts' own modules, run by node: what they compute is held to the library without a browser."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contrastive_core.base.storage import ROOT

__all__ = ["Node", "node"]

# `load("/shared/kernels.js")` in a function gives that module; a line in is a function and its argument.
SERVE = f"""
import {{ createInterface }} from "node:readline";
globalThis.load = (path) => import({(ROOT / "contrastive_lab" / "components").as_uri()!r} + path);
for await (const line of createInterface({{ input: process.stdin }})) {{
  const [code, argument] = JSON.parse(line);
  try {{ console.log(JSON.stringify({{ value: await (0, eval)(code)(argument) }})); }}
  catch (error) {{ console.log(JSON.stringify({{ error: String(error.stack) }})); }}
}}
"""


class Node:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def evaluate(self, function: str, argument: Any) -> Any:
        """What a JavaScript function makes of an argument; NaN becomes None, which fails any comparison."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([function, argument]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["value"]


@contextmanager
def node() -> Iterator[Node]:
    program = shutil.which("node")
    if program is None:
        assert not os.environ.get("CI"), "node is missing"
        pytest.skip("node is not installed")
    command = [program, "--input-type=module", "--eval", SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Node(process)
