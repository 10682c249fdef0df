"""The example "questions and answers": 480 questions with two answers and four given negatives each, from templates,
and two encoders of them: hashed character n-grams, projected at random. One given negative in ten is in fact the
question's second answer: a planted false negative. The relevance judgments list both answers. Torch-free."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from contrastive_core.base import storage
from contrastive_core.spaces import triplets

THINGS = {
    "kitchen": "pan/skillet kettle/teapot stove/cooker fridge/refrigerator cup/mug",
    "garden": "lawn/grass hedge/shrubs shed/hut path/walkway spade/shovel",
    "travel": "bicycle/bike car/automobile suitcase/luggage boat/dinghy tent/canopy",
    "clothes": "coat/jacket boots/shoes jeans/trousers sweater/pullover cap/hat",
    "music": "guitar/strings piano/keyboard drum/snare violin/fiddle microphone/mike",
    "office": "desk/table chair/seat printer/copier lamp/light telephone/phone",
    "home": "sofa/couch carpet/rug window/pane door/gate bath/tub",
    "sports": "racket/bat ball/football skates/rollers kayak/canoe helmet/headgear",
}  # each with a second name
ACTIONS = {
    "clean/wash": "warm water",
    "repair/fix": "strong glue",
    "store/keep": "a dry box",
    "buy/purchase": "a fair price",
    "choose/select": "a short list",
    "replace/renew": "a spare one",
    "move/carry": "two straps",
    "paint/color": "thin primer",
    "protect/shield": "a tight cover",
    "measure/size": "a long tape",
    "sell/trade": "good photos",
    "recycle/reuse": "a scrap yard",
}
QUESTIONS = (
    "How do I {verb} a {thing}?",
    "What is the best way to {verb} my {thing}?",
    "Can you explain how people {verb} an old {thing}?",
    "Is there a simple trick to {other} the {name} at home?",
)
ANSWERS = ("To {verb} a {thing}, take {how}.", "People {verb} their {thing} or {name} with {how}.")
ASIDE = "The {name} in question was bought {n} years ago and nobody remembers who wanted to {verb} it."
JUDGMENTS = "qrels.tsv"
FALSE_SHARE = 0.1  # of the given negatives
BUCKETS = 1 << 13
MODELS = {"trigrams": ((3, 3), 64, 1), "ngrams": ((2, 5), 256, 2)}  # shortest and longest n-gram, width and seed


def write(folder: Path) -> list[Path]:
    """Write `questions.jsonl`, `qrels.tsv` and a file of vectors for each model into a folder; return the files of
    vectors. Takes about two seconds. Raises: OSError."""
    lines, judged, topics = _lines()
    path = folder / "questions.jsonl"
    storage.write_bytes(path, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
    found = triplets.read_texts(path)
    known = found.documents.known
    rows = [
        f"{line['id']}\t{known[text]}\t{grade}\n" for line, of in zip(lines, judged, strict=True) for text, grade in of
    ]
    storage.write_bytes(folder / JUDGMENTS, "".join(["query-id\tcorpus-id\tscore\n", *rows]).encode())
    files = []
    for model, how in MODELS.items():
        texts = found.queries.texts, found.documents.texts
        features = encode([*texts[0], *texts[1]], *how)
        made = triplets.of_triplets(found, [features[: len(texts[0])], features[len(texts[0]) :]])
        topic = np.array([*topics, *([-1] * len(texts[1]))])
        files.append(folder / f"{model}.npz")
        replace(made, labels=topic, classes=(*THINGS,)).save(files[-1])
    return files


def _lines() -> tuple[list[dict[str, object]], list[list[tuple[str, int]]], list[int]]:
    """Return the triplets, the relevant texts of each question with their grades, and the topic of each question."""
    rng, subjects = np.random.default_rng(0), list[tuple[int, str, str]]()
    for topic, names in enumerate(THINGS.values()):
        subjects += [(topic, thing, name) for thing, name in (both.split("/") for both in names.split())]
    intents = [*product(subjects, ACTIONS.items())]
    answers, asides, questions = [], [], []
    for number, ((_, thing, name), (verbs, how)) in enumerate(intents):
        verb, other = verbs.split("/")
        words = {"verb": verb, "other": other, "thing": thing, "name": name, "how": how, "n": 2 + number % 90}
        questions.append(QUESTIONS[rng.integers(len(QUESTIONS))].format(**words))
        answers.append([text.format(**words) for text in ANSWERS])
        asides.append(ASIDE.format(**words))
    n, per_thing = len(intents), len(ACTIONS)
    planted = set(rng.choice(n, round(FALSE_SHARE * 4 * n), replace=False).tolist())
    lines: list[dict[str, object]] = []
    for i, (first, second) in enumerate(answers):
        own = i - i % per_thing
        near = [answers[own + (i + k) % per_thing][k % 2] for k in (1, 5)]  # the same thing, another action
        far = answers[(i + per_thing * int(rng.integers(1, len(subjects)))) % n][1]  # another thing, the same action
        negative = [asides[i], *near, second if i in planted else far]
        positive = [first] if i in planted else [first, second]
        lines.append({"id": f"q{i}", "query": questions[i], "positive": positive, "negative": negative})
    return lines, [[(first, 2), (second, 1)] for first, second in answers], [topic for (topic, _, _), _ in intents]


def encode(texts: Sequence[str], lengths: tuple[int, int], width: int, seed: int) -> Float32[np.ndarray, "n d"]:
    """Return unit rows (n, d): hashed counts of character n-grams, projected at random. Counts are weighted by
    log(n / texts with this n-gram) if the lengths differ. Args: lengths: shortest and longest n-gram; width: d."""
    from scipy.sparse import csr_array

    grams = [
        [
            zlib.crc32(padded[i : i + n].encode()) % BUCKETS
            for n in range(lengths[0], lengths[1] + 1)
            for i in range(len(padded) + 1 - n)
        ]
        for padded in (f" {text.lower()} " for text in texts)
    ]
    at = np.repeat(np.arange(len(texts)), [*map(len, grams)]), np.concatenate([*map(np.array, grams)])
    counts = csr_array((np.ones(len(at[0])), at), shape=(len(texts), BUCKETS))  # sums entries of one place
    if lengths[0] < lengths[1]:
        counts = counts * np.log(len(texts) / np.maximum(1, np.bincount(counts.indices, minlength=BUCKETS)))
    projection = np.random.default_rng(seed).standard_normal((BUCKETS, width))
    rows = counts @ projection
    rows -= rows.mean(0)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
