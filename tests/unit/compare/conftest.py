"""The trained clip run of several tests."""

from clip_runs import clip_home, clip_run

__all__ = ["clip_home", "clip_run"]
