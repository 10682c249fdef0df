"""Limits of the sandbox: a call ends at its time, and a child that dies is reported."""

import os
import time

import pytest

from contrastive_core.base.errors import Refused
from contrastive_core.base.sandbox import Limits, run_sandboxed


def test_a_call_that_takes_too_long_is_ended() -> None:
    with pytest.raises(Refused, match="it took over 2 s"):
        run_sandboxed(time.sleep, 60, limits=Limits(1 << 30, seconds=1))


def test_a_child_that_dies_is_refused() -> None:
    with pytest.raises(Refused, match="damaged or needs too much memory"):
        run_sandboxed(os._exit, 1, limits=Limits(1 << 30))
