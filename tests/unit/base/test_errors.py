"""Why something went wrong, in words for a person."""

import pickle

from cases import cases

from contrastive_core.base.errors import BadSetting, explained


@cases(
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


def test_an_error_takes_a_template_and_its_values() -> None:
    error = BadSetting("lr must be at least {low}; got {value}", low=0, value="{-1}")
    assert str(error) == "lr must be at least 0; got {-1}"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args[0].template) == (BadSetting, "lr must be at least {low}; got {value}")
    assert str(BadSetting("a {brace} without values")) == "a {brace} without values"
    assert isinstance(error, ValueError)
