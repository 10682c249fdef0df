"""The text tower of two-tower methods, and a learned temperature (CLIP, arXiv 2103.00020)."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from contrastive_core.base.device import send
from contrastive_core.base.errors import BadSetting
from contrastive_core.data.captions import LENGTH, PADDING, Vocabulary, split_words

TEXT_ENCODERS = ("transformer", "bag_of_words")
WIDTH, LAYERS, HEADS = 128, 2, 4
MAX_SCALE = 100.0  # of 1/τ, as in CLIP


class TextTower(nn.Module):
    """Text encoder that maps tokens (b, length) int64 to h (b, 128): the mean over the words. Under 0.5 M parameters
    with 2,000 words. Its state holds the vocabulary as bytes, so `from_state` needs nothing else. Raises BadSetting for
    another kind."""

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

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

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
