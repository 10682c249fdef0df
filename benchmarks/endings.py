"""Whether a server is left when `contrastive-lab` ends at any moment.

    python -m benchmarks.endings [--times 50] [--seconds 10] [--seed 0]

The command gets SIGTERM, SIGHUP, SIGINT or SIGKILL, in turn, at random times after its start. A server counts as left
if a process still holds the command's port ten seconds after the command ended.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import psutil

from benchmarks.browser import ROOT, free_port

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
PATIENCE = 10.0


def servers(port: int) -> list[psutil.Process]:
    """Processes that were started to serve on this port, but for the command."""
    words = ["--server.port", str(port)]
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if any(line[i : i + 2] == words for i in range(len(line))):
            found.append(process)
    return found


def once(number: signal.Signals, after: float, home: str) -> tuple[bool, bool]:
    """End the command so many seconds after its start. Returns: whether it had begun to serve; whether that is left."""
    port = free_port()
    command = [sys.executable, "-m", "contrastive_lab", "--no-window", "--port", str(port)]
    homes = {"CONTRASTIVE_LAB_HOME": f"{home}/home", "CONTRASTIVE_LAB_RUNS": f"{home}/runs"}
    null = subprocess.DEVNULL
    opened = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **homes}, stdout=null, stderr=null, start_new_session=True
    )
    time.sleep(after)
    has_begun = bool(servers(port))
    opened.send_signal(number)
    opened.wait(30)
    end = time.monotonic() + PATIENCE
    while (left := servers(port)) and time.monotonic() < end:
        time.sleep(0.2)
    for process in left:
        process.kill()
    return has_begun, bool(left)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    draw, begun, left = random.Random(args.seed), 0, 0
    with tempfile.TemporaryDirectory() as home:
        for n in range(args.times):
            number, after = SIGNALS[n % len(SIGNALS)], draw.uniform(0, args.seconds)
            has_begun, is_left = once(number, after, home)
            begun, left = begun + has_begun, left + is_left
            print(f"{number.name} after {after:4.1f} s: {'left' if is_left else 'ended' if has_begun else 'none yet'}")
    print(f"{left} servers left of {begun} that had begun, in {args.times} tries")
    print(json.dumps({"name": "endings", "left": left, "begun": begun, "tries": args.times}))


if __name__ == "__main__":
    main()
