"""Pages that are made from the code say what the code does."""

import re
import sys

import pytest
from cases import cases

from contrastive_core import losses
from contrastive_core.base.paths import ROOT

sys.path.append(str(ROOT / "docs"))

import figures
import generate


@cases("name", losses.names())
def test_page_of_a_loss(name):
    """Code has no backslash of Markdown, and the symbols of a formula are explained."""
    page = generate.loss_page(name)
    prose = re.sub(r"(?s)\$\$.*?\$\$|```.*?```|<svg.*?</svg>", "", page)
    assert not [code for code in re.findall(r"`([^`\n]+)`", prose) if "\\" in code]
    assert name not in generate.SYMBOLS or "\nwhere $" in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("soft_nearest_neighbor", "by squared Euclidean distance"),
        ("lifted_structure", "by Euclidean distance"),
        ("nt_xent", "The paper pairs views of the same image. The loss compares rows by dot product"),
        ("sup_con", "The paper pairs rows of the same class"),
        ("nce", "The paper pairs an image with its slot"),
    ],
)
def test_pairs_and_scores(name, words):
    assert words in generate.loss_page(name)


def test_figure_has_the_positives_of_its_sentence():
    """Two views of each image: one pull for an anchor of NT-Xent, and seven for one of SupCon."""
    for name, positives in (("nt_xent", 1), ("sup_con", 7)):
        labels = figures.batch(figures.GROUPS[losses.get(name).card.by_label])[1]
        assert int((labels == labels[0]).sum()) - 1 == positives
    assert figures.gradient_figure("nt_xent").count(f'<rect fill="{figures.PULL}"') == 3  # in each of three rows
    assert "<svg" not in generate.loss_page("swapped_prediction")


def test_pages_of_methods():
    """Defaults that differ in short runs stand beside each other, and captions are no labels."""
    assert re.search(r"\| `momentum` \| `0\.99` \| `0\.9` \|", generate.method_page("byol"))
    assert "default in short runs" not in generate.method_page("simclr")
    page = generate.method_page("clip")
    assert "needs captions, and no labels" in page
    assert "## Defaults on shapes" in page
