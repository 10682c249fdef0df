"""Why something went wrong, in words for a person."""

from __future__ import annotations

import pytest

from contrastive_core.errors import explained


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("the file has no rows"), "the file has no rows"),
        (OSError("cannot be read"), "cannot be read"),
        (KeyError("scores"), "'scores' is missing"),
        (RuntimeError("size mismatch"), "RuntimeError: size mismatch"),
        (ValueError(), "ValueError"),
    ],
)
def test_the_kind_is_said_only_where_the_message_needs_it(error: Exception, words: str) -> None:
    assert explained(error) == words
