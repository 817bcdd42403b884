"""Token ids in padded batches, as transformers and sentence-transformers pass them.

Ids are those of the model's encoder plus one, so that zero is padding for every kind of model; models that
read bytes take what AllenNLP's `batch_to_ids` makes. `<S>` and `</S>` are not part of a batch:
`padded_layers` adds them before the network runs and removes them from its output.

Shapes: B sentences, T positions of the longest, S tokens of all sentences, U distinct tokens, C characters of
a token, P projection, L layers, W ids of a token: C, or 1 for a model of words; 1 more if words have vectors
beside their characters.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmokit.errors import ConfigError
from elmokit.formats import ModelBundle
from elmokit.model import (
    BiLM,
    BiLMConfig,
    encode_distinct_rows,
    first_positions,
    num_characters,
    pad_layers,
    with_boundaries,
)
from elmokit.text import Lexicon, TokenizerSpec, Vocabulary


def lowercased(words: Iterable[str], spec: TokenizerSpec) -> list[str]:
    """Return the words of another tokenizer, in lower case if the model's own tokenizer makes them so."""
    return [word.lower() if spec.lowercase else word for word in words]


class TokenIds:
    """Converts tokens to the ids of one model."""

    def __init__(self, config: BiLMConfig, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> None:
        self._inputs = config.encoder.inputs(vocabulary, lexicon)

    def __call__(self, tokens: list[str]) -> dict[str, Tensor]:
        """Return `input_ids` of n tokens, (n, C) or (n,), and `word_input_ids` (n,) where they are needed."""
        ids, *others = self._inputs(tokens)  # others: number of characters, words
        rows = {"input_ids": ids.long() + 1}
        if len(others) == 2:
            rows["word_input_ids"] = others[1].long() + 1
        return rows

    def batch(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        """Return the ids of sentences, padded with zeros, and their `attention_mask` (B, T); T ≥ 1."""
        lengths = [len(sentence) for sentence in sentences]
        rows = self([token for sentence in sentences for token in sentence])
        batch = {}
        for name, ids in rows.items():
            blank = ids.new_zeros(1, *ids.shape[1:])  # one more sentence, so that T ≥ 1
            batch[name] = pad_sequence([*torch.split(ids, lengths), blank], batch_first=True)[:-1]
        mask = first_positions(torch.tensor(lengths), batch["input_ids"].shape[1])
        return batch | {"attention_mask": mask.long()}


def sentence_marks(bundle: ModelBundle, token_ids: TokenIds) -> dict[str, Any]:
    """Return the ids of `<S>` and `</S>` and, for a model of characters, the id that pads a token."""
    ids = token_ids([*bundle.boundaries])
    marks: dict[str, Any] = {name: rows.tolist() for name, rows in ids.items()}
    if ids["input_ids"].dim() == 2:
        marks["pad_character"] = int(token_ids([""])["input_ids"][0, -1])
    return marks


def padded_layers(
    model: BiLM, marks: dict[str, Any], ids: dict[str, Tensor], attention_mask: Tensor | None = None
) -> Tensor:
    """Compute all layers (L+1, B, T, 2P) of a padded batch, zero where there is no token.

    `marks` come from `sentence_marks` and `ids` from `TokenIds`. Tokens may be anywhere in a row; by default
    the `attention_mask` (B, T) is found from the ids.

    Raises:
        ConfigError: the ids are not for this model.
    """
    names = [name for name in marks if name != "pad_character"]
    if missing := [name for name in names if ids.get(name) is None]:
        raise ConfigError(f"the model needs {' and '.join(missing)} too; make the ids with its own tokenizer")
    tokens = _joined(marks, {name: ids[name] for name in names})  # (B, T, W)
    edges = _joined(marks, {name: torch.tensor(marks[name]) for name in names}).to(tokens)  # (2, W)
    if tokens.dim() != 3 or tokens.shape[-1] != edges.shape[-1]:
        raise ConfigError(
            f"the model reads {edges.shape[-1]} ids a token, found a batch of shape {[*tokens.shape]}; make "
            "the ids with its own tokenizer"
        )
    mask = (tokens > 0).any(dim=-1)  # (B, T)
    if attention_mask is not None:
        mask &= attention_mask.bool()
    lengths = mask.sum(dim=1)  # (B,)
    types = torch.cat([edges, tokens[mask]])  # (2 + S, W)
    vectors = encode_distinct_rows(types, lambda rows: _encode(model, marks, rows - 1))  # (2 + S, P)
    packed, is_token = with_boundaries(vectors, lengths)  # (S + 2B, P)
    layers = model(packed, lengths + 2)[0]  # (L+1, S + 2B, 2P)
    return pad_layers(layers[:, is_token], mask)


def _joined(marks: dict[str, Any], ids: dict[str, Tensor]) -> Tensor:
    """Return all ids of a token in one row, (…, W)."""
    parts = [ids["input_ids"] if "pad_character" in marks else ids["input_ids"][..., None]]
    if "word_input_ids" in ids:
        parts.append(ids["word_input_ids"][..., None])
    return torch.cat(parts, dim=-1)


def _encode(model: BiLM, marks: dict[str, Any], types: Tensor) -> Tensor:
    """Return the vectors (U, P) of types (U, W), whose ids are the encoder's own."""
    inputs = [types[:, 0]]  # (U,) words
    if "pad_character" in marks:
        width = len(marks["input_ids"][0])
        characters, words = types[:, :width], types[:, width:].unbind(dim=1)  # (U, C), (U,) or nothing
        inputs = [characters, num_characters(characters, marks["pad_character"] - 1), *words]
    vectors: Tensor = model.encoder(*inputs)
    return vectors
