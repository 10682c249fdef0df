"""A text tower from a local sentence-transformers folder: its rows, what it refuses, and a run that rests on it."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from clip_runs import captioned_folder, trained_clip

from contrastive_core.__main__ import main
from contrastive_core.base.errors import BadSetting
from contrastive_core.compare.embed import embed_run, encode_texts, load_model
from contrastive_core.models import text_tower
from contrastive_core.models.text_tower import SentenceTower
from contrastive_core.runs import checkpoints
from contrastive_core.spaces import loaded_vectors, triplets
from contrastive_core.spaces.loaded_vectors import OtherTower, open_vectors

pytest.importorskip("sentence_transformers", reason="of the test extra: uv sync --extra test")

WORDS = "[PAD] [UNK] a red green blue square number is 1 2 3".split()
TEXTS = ["a red square", "number 1 is blue"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with a tokenizer of words, as `SentenceTransformer.save` writes it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    home = tmp_path_factory.mktemp("sentences")
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", model_max_length=16
    ).save_pretrained(home / "hf")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(home / "hf")
    SentenceTransformer(modules=[Transformer(str(home / "hf")), Pooling(16)], device="cpu").save(str(home / "tiny"))
    return home / "tiny"


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "tiny"))


def named(folder: Path) -> str:
    return f"sentence-transformers:{folder}"


def test_rows_are_the_librarys_and_a_frozen_tower_keeps_no_weights(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    frozen, trained = SentenceTower(named(folder)).train(), SentenceTower(named(folder), True).train()
    expected = torch.from_numpy(SentenceTransformer(str(folder), device="cpu").encode(TEXTS))
    for tower in (frozen, trained):
        torch.testing.assert_close(tower(tower.encode(TEXTS)).detach(), expected)
        assert tower.out_dim == 16
        assert tower.unknown_words("a RED zebra!") == ["zebra"]
        assert tower.known_words("a RED zebra!") == ["a", "red"]
    assert set(frozen.state_dict()) == {"digest"}
    assert not list(frozen.parameters())
    assert not frozen(frozen.encode(TEXTS)).requires_grad
    assert frozen.to(torch.float64)(frozen.encode(TEXTS)).dtype == torch.float64
    trained(trained.encode(TEXTS)).sum().backward()
    gradients = {name: p.grad is not None for name, p in trained.named_parameters() if p.requires_grad}
    assert len(gradients) > 10
    assert all(gradients.values())  # BERT's own pooler has none


class Bomb:
    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was opened",))


def bin_only(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))


def with_module(kind: str, path: str = "") -> bytes:
    return json.dumps([{"idx": 0, "name": "0", "path": path, "type": kind}]).encode()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (shutil.rmtree, "the folder of the text tower does not exist: .*tiny"),
        (bin_only, "has no model.safetensors; other weights may run code"),
        (lambda f: (f / "modules.json").unlink(), "it has no modules.json"),
        (lambda f: (f / "modules.json").write_bytes(b"[1"), "its modules.json cannot be read"),
        (lambda f: (f / "modules.json").write_bytes(with_module("os.system")), "has the module 'os.system'; known"),
        (lambda f: (f / "modules.json").write_bytes(with_module("sentence_transformers.Evil")), "has the module"),
        (
            lambda f: (f / "modules.json").write_bytes(with_module("sentence_transformers.models.Transformer", "../x")),
            "has the module",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"no tensors"), "is not a model of sentence-transformers"),
        (lambda f: (f / "adapter_config.json").write_bytes(b"{}"), "it is an adapter of another model"),
    ],
)
def test_a_folder_that_cannot_be_opened_is_one_sentence(folder: Path, change, sentence: str) -> None:
    change(folder)
    with pytest.raises(BadSetting, match=sentence):
        SentenceTower(named(folder))


def test_a_folder_encodes_the_texts_of_triplets_once(folder: Path, tmp_path: Path, monkeypatch) -> None:
    from sentence_transformers import SentenceTransformer

    path = tmp_path / "qa.jsonl"
    path.write_text(json.dumps({"anchor": TEXTS[0], "positive": TEXTS[1], "negative": "a blue"}))
    rows = loaded_vectors.rows(open_vectors(path, "qa.jsonl", other=OtherTower(folder, "tiny")))
    texts = rows.columns["text"].tolist()
    assert texts == [*TEXTS, "a blue"]
    np.testing.assert_allclose(rows.features, SentenceTransformer(str(folder), device="cpu").encode(texts), atol=1e-5)
    monkeypatch.setattr(text_tower, "encode_texts", lambda *_: pytest.fail("it is kept"))
    assert np.array_equal(triplets.read(path, folder).features, rows.features)
    (folder / "modeling_tiny.py").write_text("raise SystemExit")
    (folder / "modules.json").write_text((folder / "modules.json").read_text() + " ")  # nothing is kept of it
    monkeypatch.undo()
    with pytest.raises(BadSetting, match=r"tiny contains Python code \(modeling_tiny.py\), which is never run"):
        open_vectors(path, "qa.jsonl", other=OtherTower(folder, "tiny"))


def test_without_the_library_or_with_another_word_it_says_what_to_do(folder: Path, monkeypatch) -> None:
    for text in ("all-MiniLM-L6-v2", "sentence-transformers:", " "):
        with pytest.raises(BadSetting, match="text_tower must be sentence-transformers:FOLDER; got"):
            SentenceTower(text)
    monkeypatch.setattr(text_tower, "LIBRARY", "library_that_nobody_has")
    monkeypatch.setattr(text_tower, "_check_modules", lambda folder: None)
    with pytest.raises(BadSetting, match="pip install sentence-transformers"):
        SentenceTower(named(folder))


@pytest.mark.parametrize("trains", ["off", "on"])
def test_a_run_is_rebuilt_from_the_folder_and_notices_an_edit(
    folder: Path, tmp_path: Path, trains: str, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)  # a relative path is kept whole
    settings = (f"method.text_tower={named(Path('tiny'))}", f"method.train_text_tower={trains}")
    run = trained_clip(captioned_folder(tmp_path / "data", 4, 2), settings=settings)
    assert run.config["method_knobs"]["text_tower"] == named(folder)
    monkeypatch.chdir("/")
    z, weights = encode_texts(load_model(run), TEXTS), checkpoints.load_weights(run)
    assert ("text_tower.trained.0.model.embeddings.word_embeddings.weight" in weights) == (trains == "on")
    rows = embed_run(run, "test", "towers")
    np.testing.assert_allclose(rows.features[rows.columns["text"] == TEXTS[0]][0], z[0], atol=1e-5)
    start = SentenceTower(named(folder))
    moved = load_model(run).text_tower(start.encode(TEXTS)) - start(start.encode(TEXTS))
    assert (moved.abs().max() > 1e-6) == (trains == "on")
    more = ["train", "--run", run.name, "--resume", "--set", "epochs=3"]
    assert main(more) == 0
    config = folder / "config_sentence_transformers.json"
    before = config.read_bytes()
    config.write_bytes(before + b"\n")
    with pytest.raises(BadSetting, match="tiny was edited after training"):
        load_model(run)
    assert main([*more[:-1], "epochs=4"]) == 1
    assert "the folder of its text tower was edited" in capsys.readouterr().err
    config.write_bytes(before)
    folder.rename(tmp_path / "moved")
    assert main(["embed", run.name, "--layer", "towers", "--split", "train", "--out", str(tmp_path / "x.npz")]) == 2
    assert "the folder of the text tower does not exist" in capsys.readouterr().err
