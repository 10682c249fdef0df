"""Text towers of two-tower methods, and a learned temperature (CLIP, arXiv 2103.00020).

`TextTower` is small and learns its words from the training captions. `SentenceTower` comes from a local folder of
sentence-transformers (Reimers and Gurevych 2019, arXiv 1908.10084), an optional dependency. It opens only safetensors
and only modules of the library itself, and downloads nothing."""

import hashlib
import importlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from contrastive_core.base import storage
from contrastive_core.base.device import send
from contrastive_core.base.errors import BadSetting, explained
from contrastive_core.base.messages import N_, printable
from contrastive_core.base.storage import FileCache, read_regular
from contrastive_core.data.captions import LENGTH, PADDING, SENTENCE_TOWER, Vocabulary, split_words

TEXT_ENCODERS = ("transformer", "bag_of_words")
WIDTH, LAYERS, HEADS = 128, 2, 4
MAX_SCALE = 100.0  # of 1/τ, as in CLIP


class TextTower(nn.Module):
    """Text encoder of tokens (b, length) int64 to h (b, 128): the mean over the words. Its state holds the vocabulary
    as bytes, so `from_state` needs nothing else. Raises BadSetting for another kind."""

    out_dim = WIDTH

    def __init__(self, vocabulary: Vocabulary, kind: str = "transformer", length: int = LENGTH) -> None:
        super().__init__()
        if kind not in TEXT_ENCODERS:
            values = {"known": ", ".join(TEXT_ENCODERS), "kind": f"{kind!r}"}
            raise BadSetting("text_encoder must be one of {known}; got {kind}", **values)
        self.vocabulary = vocabulary
        self.register_buffer("words", torch.tensor(list("\n".join(vocabulary.words).encode()), dtype=torch.uint8))
        self.embedding = nn.Embedding(len(vocabulary), WIDTH, PADDING)
        self.positions = nn.Parameter(torch.randn(length, WIDTH) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, WIDTH, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(LAYERS if kind == "transformer" else 0)
        )

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> "TextTower":
        """Return the tower with a `state_dict`."""
        words = bytes(state["words"].tolist()).decode()
        kind = TEXT_ENCODERS[0] if any(key.startswith("layers.") for key in state) else TEXT_ENCODERS[1]
        tower = cls(Vocabulary(tuple(words.split("\n")) if words else ()), kind, len(state["positions"]))
        tower.load_state_dict(state)
        return tower

    def encode(self, texts: Sequence[str]) -> Int[Tensor, "b length"]:
        """Return the tokens (b, length) of texts on the tower's device; `length` is that of the longest text."""
        tokens = self.vocabulary.encode(texts, len(self.positions))
        used = max(1, int((tokens != PADDING).sum(1).max(initial=0)))
        return send(torch.from_numpy(tokens[:, :used]), self.positions.device)

    def known_words(self, text: str) -> list[str]:
        """Return the words of a text that the tower has learned."""
        known = set(self.vocabulary.words)
        return [word for word in split_words(text) if word in known and word[0].isalnum()]

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that the tower has not learned."""
        known = set(self.vocabulary.words)
        return [word for word in split_words(text) if word not in known and word[0].isalnum()]

    def forward(self, tokens: Int[Tensor, "b length"]) -> Float[Tensor, "b d"]:
        is_padding = tokens == PADDING
        is_padding[:, 0] = False  # a text without words would have nothing to attend to
        x = self.embedding(tokens)
        if self.layers:
            x = x + self.positions[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=is_padding)
        is_word = (~is_padding).to(x.dtype)[..., None]
        return (x * is_word).sum(1) / is_word.sum(1)


class LearnedTemperature(nn.Module):
    """Learned temperature τ = e^{−t} with the parameter t = log(1/τ). `clamp` after each step keeps 1/τ ≤ 100."""

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(0.07)))

    def forward(self) -> Tensor:
        """Return τ, with its gradient."""
        return (-self.log_scale).exp()

    @torch.no_grad()
    def start(self, temperature: float) -> None:
        """Set τ before training."""
        self.log_scale.fill_(-math.log(temperature))

    @torch.no_grad()
    def clamp(self) -> None:
        """Limit t to log 100 after a step; clamping in `forward` would stop its gradient."""
        self.log_scale.clamp_(max=math.log(MAX_SCALE))


# --- from a folder of sentence-transformers ---


LIBRARY = "sentence_transformers"
WITHOUT_WEIGHTS = frozenset(("Pooling", "Normalize"))
MODULES = frozenset(("Transformer", "Dense", "LayerNorm", "StaticEmbedding")) | WITHOUT_WEIGHTS
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
ENDINGS = frozenset((".json", ".txt", ".model", ".safetensors", ".jinja"))  # of files that the model depends on
MOST_BYTES = 1 << 20  # of modules.json
RATE = 0.01  # of the learning rate: 3e-5 where the small encoder learns at 3e-3
FORM = N_("text_tower must be sentence-transformers:FOLDER; got {text}")
MISSING = N_("sentence-transformers is not installed; text_tower needs it: pip install sentence-transformers")
GONE = N_("the folder of the text tower does not exist: {path}")
NO_MODEL = N_("{path} is not a model of sentence-transformers: {why}")
NO_WEIGHTS = N_("{path} has no model.safetensors; other weights may run code and are not opened")
CODE = N_("{path} contains Python code ({file}), which is never run: such a model cannot be opened")
EDITED = N_(
    "{path} was edited after training and no longer contains the text tower that the run was trained "
    "with; restore the original files or train again"
)

_hash_of = FileCache(storage.sha256_file, 256)


class SentenceTower(nn.Module):
    """Text encoder of a batch of texts to h (b, d), without dropout. A frozen tower's weights stay in its folder; its
    state is `digest` (32) uint8, the SHA-256 of the folder's files. Raises BadSetting for a folder that cannot be
    opened."""

    digest: Tensor

    def __init__(self, text: str, is_trained: bool = False) -> None:
        super().__init__()
        self.folder = folder_of(text)
        digest = digest_of(self.folder)
        self.register_buffer("digest", torch.tensor(list(digest), dtype=torch.uint8))
        sentences = _opened(self.folder)
        self.out_dim = int(_either(sentences, "get_embedding_dimension", "get_sentence_embedding_dimension")())
        self.trained: Any = sentences if is_trained else None
        self.frozen = [] if is_trained else [sentences]  # a list is no submodule
        if is_trained:  # weights are left alone that the rows do not depend on, such as BERT's own pooler
            self(self.encode(["a"])).sum().backward()
            for p in self.parameters():
                p.requires_grad_(p.grad is not None)
                p.grad = None
        else:
            sentences.requires_grad_(False)

    @property
    def sentences(self) -> Any:
        """The model of sentence-transformers."""
        return self.frozen[0] if self.trained is None else self.trained

    def encode(self, texts: Sequence[str]) -> dict[str, object]:
        """Tokenize texts and return the model's inputs, by name, on the tower's device."""
        made = _either(self.sentences, "preprocess", "tokenize")(list(texts))
        device = self.digest.device
        return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in made.items()}

    def forward(self, features: Mapping[str, object]) -> Float[Tensor, "b d"]:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.trained is not None):
            rows: Tensor = self.sentences(dict(features))["sentence_embedding"]
        return rows

    def known_words(self, text: str) -> list[str]:
        """Return the words of a text that the tokenizer knows."""
        unknown = set(self.unknown_words(text))
        return [word for word in split_words(text) if word not in unknown and word[0].isalnum()]

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that the tokenizer does not know."""
        tokenizer = getattr(self.sentences, "tokenizer", None)
        mark = getattr(tokenizer, "unk_token_id", None)
        words = [word for word in split_words(text) if word[0].isalnum()] if mark is not None else []
        return [word for word in words if mark in tokenizer(word)["input_ids"]]  # type: ignore[misc]

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the weights of a run. Raises BadSetting if the folder is not the one used in training."""
        if not torch.equal(state["digest"].cpu(), self.digest.cpu()):
            raise BadSetting(EDITED, path=printable(self.folder))
        self.load_state_dict(state)

    def train(self, mode: bool = True) -> "SentenceTower":
        super().train(mode)
        self.sentences.eval()
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "SentenceTower":
        for one in self.frozen:
            one._apply(fn, recurse)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self


def folder_of(text: str) -> Path:
    """Return the folder that a setting names. Raises BadSetting."""
    name = text.removeprefix(SENTENCE_TOWER).strip()
    if name == text or not name:
        raise BadSetting(FORM, text=repr(printable(text)))
    return Path(name).expanduser()


def with_whole_path(value: Any) -> Any:
    """Return a setting that names such a folder with its absolute path; any other value unchanged."""
    is_tower = isinstance(value, str) and value.startswith(SENTENCE_TOWER) and value != SENTENCE_TOWER
    return f"{SENTENCE_TOWER}{folder_of(value).absolute()}" if is_tower else value


def digest_of(folder: Path) -> bytes:
    """Return the SHA-256 of the names and contents of a model's files. Raises BadSetting for a missing folder."""
    if not folder.is_dir():
        raise BadSetting(GONE, path=printable(folder))
    paths = (p for p in folder.rglob("*") if p.suffix in ENDINGS and p.is_file())
    named = sorted((p.relative_to(folder).as_posix(), p) for p in paths)
    lines = (f"{_hash_of(path)}  {name}\n" for name, path in named if not name.startswith("."))
    return hashlib.sha256("".join(lines).encode()).digest()


def encode_texts(folder: Path, queries: Sequence[str], documents: Sequence[str]) -> list[np.ndarray]:
    """Return vectors (n, d) float32 of queries and (m, d) of documents, each with the model's own prompt for its kind.
    Raises BadSetting."""
    model = _opened(folder)
    torch.set_num_threads(os.cpu_count() or 1)  # a child that reads foreign files begins with one
    sides = (("encode_query", queries), ("encode_document", documents))
    found = [getattr(model, name, model.encode)(list(texts), show_progress_bar=False) for name, texts in sides]
    return [np.asarray(x, np.float32) for x in found]


def _opened(folder: Path) -> Any:
    """Open the model of a folder, on the CPU in evaluation mode. Raises BadSetting."""
    _check_modules(folder)
    try:
        library = importlib.import_module(LIBRARY)
    except ImportError:
        raise BadSetting(MISSING) from None
    try:
        importlib.import_module("transformers.utils.logging").disable_progress_bar()
        kwargs = {"use_safetensors": True}
        made = library.SentenceTransformer(
            str(folder), device="cpu", local_files_only=True, trust_remote_code=False, model_kwargs=kwargs
        )
        return made.float().eval()
    except Exception as error:  # whatever its readers raise at a damaged file
        raise BadSetting(NO_MODEL, path=printable(folder), why=printable(explained(error))) from None


def _check_modules(folder: Path) -> None:
    """Check that all modules are the library's own and have safetensors. Raises BadSetting."""
    shown = printable(folder)
    if code := next(folder.rglob("*.py"), None):
        raise BadSetting(CODE, path=shown, file=printable(code.name))
    try:
        modules = json.loads(read_regular(folder / "modules.json", MOST_BYTES))
        listed = [(str(one["type"]), PurePosixPath(str(one["path"]))) for one in modules]
    except FileNotFoundError:
        raise BadSetting(NO_MODEL, path=shown, why=N_("it has no modules.json")) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise BadSetting(NO_MODEL, path=shown, why=N_("its modules.json cannot be read")) from None
    for kind, place in listed:
        name = kind.rpartition(".")[2]
        if not kind.startswith(f"{LIBRARY}.") or name not in MODULES or place.is_absolute() or ".." in place.parts:
            raise BadSetting(
                "{path} has the module {name}; known: {known}",
                path=shown,
                name=printable(repr(kind), 80),
                known=", ".join(sorted(MODULES)),
            )
        if name not in WITHOUT_WEIGHTS and not any((folder / place / file).is_file() for file in WEIGHTS):
            raise BadSetting(NO_WEIGHTS, path=printable(folder / place))
        if (folder / place / "adapter_config.json").exists():
            raise BadSetting(NO_MODEL, path=shown, why=N_("it is an adapter of another model"))


def _either(model: Any, name: str, older: str) -> Callable[..., Any]:
    """Return a method of the library by its current name, or by its name in older versions."""
    found: Callable[..., Any] = getattr(model, name, None) or getattr(model, older)
    return found
