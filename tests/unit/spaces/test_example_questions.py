"""The example of questions and answers: what is planted is there, and the better of its two models is known."""

import json
from pathlib import Path

import numpy as np

from contrastive_core.base.messages import printable
from contrastive_core.cli.main import main
from contrastive_core.compare.retrieval import figures_of_rows
from contrastive_core.spaces import example_questions, file_formats
from contrastive_core.spaces.attached_files import read_qrels
from contrastive_core.spaces.towers import towers_of


def test_the_example_has_what_it_says_and_is_the_same_each_time(tmp_path: Path, capsys) -> None:
    out = tmp_path / "questions"
    assert main(["example", "questions", "--out", str(out), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    rows = [file_formats.read(file) for file in made["vectors"]]
    qrels = read_qrels(made["qrels"])
    lines = [json.loads(line) for line in (out / "questions.jsonl").read_text().splitlines()]
    towers = [towers_of(each) for each in rows]
    assert towers[0] is not None
    assert towers[1] is not None
    assert (len(towers[0].a), len(towers[0].b), len(qrels)) == (480, 1440, 480)
    text = dict(zip(rows[0].ids, rows[0].columns["text"].tolist(), strict=True))
    right = {q: {text[f"document:{d}" if f"document:{d}" in text else d] for d in of} for q, of in qrels.items()}
    given = [(line["id"], negative) for line in lines for negative in line["negative"]]
    assert len(given) == 1920
    assert sum(negative in right[q] for q, negative in given) == 192  # planted false negatives
    assert all({*line["positive"]} <= right[line["id"]] for line in lines)
    found = figures_of_rows([towers[0], towers[1]], qrels, printable(made["qrels"]))
    trigrams, ngrams = np.nanmean(found["recall_10"], 1)
    assert 0.2 < trigrams < ngrams - 0.1 < 0.5
    again = example_questions.write(tmp_path / "again")
    assert [path.read_bytes() for path in again] == [Path(path).read_bytes() for path in made["vectors"]]
    assert main(["example", "questions", "--out", str(out)]) == 2
    assert "is not empty; choose another folder with --out" in capsys.readouterr().err
