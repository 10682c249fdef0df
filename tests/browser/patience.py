"""How long a test waits for what comes in a moment on a machine that has nothing else to do."""

__all__ = ["PATIENCE", "SLOW"]

PATIENCE = 300  # seconds that a busy machine may take
SLOW = 1000 * PATIENCE  # in the browser's milliseconds
