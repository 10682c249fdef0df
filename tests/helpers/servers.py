"""A server that can be killed and started again at the same address, and who it spoke to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks import browser as real

__all__ = ["Server"]

AUDIT = """
import os, sys
def hook(event, args, path=os.environ.get("CALLED_OUT")):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo") and path:
        with open(path, "a") as file:
            file.write(f"{event} {args[1:] if event != 'socket.getaddrinfo' else args[:2]}\\n")
sys.addaudithook(hook)
hook("socket.connect", ["", "'localhost' itself"])
"""


class Server:
    """Streamlit with app.py. Every Python process below it writes down whom it calls."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, real.free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.log, self.calls = home / "server.log", home / "calls.txt"
        audit = home / "audit"
        audit.mkdir(parents=True)
        (audit / "sitecustomize.py").write_text(AUDIT)
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{audit}{os.pathsep}{real.ROOT}",
            "CALLED_OUT": str(self.calls),
            "CONTRASTIVE_LAB_HOME": str(home / "home"),
            "CONTRASTIVE_LAB_RUNS": str(home / "runs"),
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "streamlit", "run", str(real.ROOT / "app.py")]
        command += ["--server.headless", "true", "--server.port", str(self.port)]
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=real.ROOT, env=self.environment, stdout=out, stderr=out)
        real.wait_for(f"{self.address}/_stcore/health", self.process, self.log)

    def kill(self) -> None:
        """End it without a word, as a crash or a power cut does."""
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self) -> None:
        """End it, and what goes on without it."""
        self.kill()
        real.end_tasks(self.environment)

    def called(self) -> list[str]:
        """Whom its processes called that is not this computer."""
        if not self.calls.exists():
            return []
        own = ("'127.0.0.1'", "'::1'", "'localhost'", "'0.0.0.0'", "('/", "b'127.0.0.1'")
        lines = self.calls.read_text().splitlines()
        return [line for line in lines if not any(name in line for name in own)]
