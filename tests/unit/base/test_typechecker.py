"""Annotations are held to at run time, also after calls that were right."""

import jaxtyping
import pytest
import torch

from contrastive_core.ops import similarity


@pytest.mark.parametrize("wrong", [torch.ones(3), torch.ones(3, 4), torch.ones(3, 2, dtype=torch.long)])
def test_another_shape_or_type_is_refused(wrong: torch.Tensor) -> None:
    similarity.dot(torch.ones(5, 2), torch.ones(3, 2))
    with pytest.raises(jaxtyping.TypeCheckError):
        similarity.dot(torch.ones(5, 2), wrong)
