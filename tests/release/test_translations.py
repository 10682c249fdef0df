"""At a release every sentence of the interface has its Chinese."""

import pytest

from contrastive_lab.locale.__main__ import SOURCES, is_translated, read


@pytest.mark.parametrize("domain", SOURCES)
def test_every_sentence_is_translated(domain: str) -> None:
    assert not [entry.id for entry in read(domain) if entry.id and not is_translated(entry)]
