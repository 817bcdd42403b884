"""Padded batches, as transformers and sentence-transformers pass them, for a model that knows no padding.

Ids are the encoder's plus one: zero is padding in every kind of model, and models that read bytes take what
AllenNLP's `batch_to_ids` makes. `<S>` and `</S>` are not among them. They are added before the model runs and
left out of what it gives, so that there is one vector per token, and nobody can forget them.

Shapes: B sentences, T positions of the longest, S tokens of all, U types, C characters of a token, W numbers
that stand for a token (C, or 1 for a model of words, and 1 more where words have vectors of their own),
P projection, L layers.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmokit.embed import encoder_inputs
from elmokit.errors import ConfigError
from elmokit.formats import ModelBundle
from elmokit.model import BiLM, BiLMConfig, LexiconConfig, WordConfig
from elmokit.text import Lexicon, Vocabulary


class Spelling:
    """From tokens to their ids for one model."""

    def __init__(self, config: BiLMConfig, vocabulary: Vocabulary | None, lexicon: Lexicon | None) -> None:
        self._inputs = encoder_inputs(config, vocabulary, lexicon)

    def __call__(self, tokens: list[str]) -> dict[str, Tensor]:
        """The ids of n tokens.

        Returns:
            `input_ids` (n, C), or (n,) of a model of words; and `word_input_ids` (n,) where words have
            vectors of their own beside their characters.
        """
        ids, *others = self._inputs(tokens)  # others: used characters, words
        rows = {"input_ids": ids.long() + 1}
        if len(others) == 2:
            rows["word_input_ids"] = others[1].long() + 1
        return rows

    def batch(self, sentences: list[list[str]]) -> dict[str, Tensor]:
        """The ids of sentences with zeros after the shorter ones, and the `attention_mask` (B, T); T ≥ 1."""
        lengths = [len(sentence) for sentence in sentences]
        rows = self([token for sentence in sentences for token in sentence])
        batch = {
            name: pad_sequence(
                [*torch.split(ids, lengths), ids.new_zeros(1, *ids.shape[1:])], batch_first=True
            )[:-1]
            for name, ids in rows.items()
        }
        width = batch["input_ids"].shape[1]
        mask = torch.arange(width) < torch.tensor(lengths)[:, None]
        return batch | {"attention_mask": mask.long()}


def sentence_marks(bundle: ModelBundle, spelling: Spelling) -> dict[str, Any]:
    """The ids of what stands before and after a sentence, and of the character that fills up a token."""
    marks: dict[str, Any] = {name: ids.tolist() for name, ids in spelling([*bundle.boundaries]).items()}
    if not isinstance(bundle.model.config.encoder, WordConfig):
        marks["pad_character"] = int(spelling([""])["input_ids"][0, -1])
    return marks


def padded_layers(
    model: BiLM, marks: dict[str, Any], ids: dict[str, Tensor], attention_mask: Tensor | None = None
) -> Tensor:
    """All layers of a padded batch.

    Args:
        model: the network.
        marks: from `sentence_marks`.
        ids: as `Spelling` makes them, (B, T, …) each.
        attention_mask: (B, T) where there are tokens, on whichever side; found from the ids when not given.

    Returns:
        (L+1, B, T, 2P), zero where there is no token.

    Raises:
        ConfigError: the ids are not for this model.
    """
    names = [name for name in marks if name != "pad_character"]
    if missing := [name for name in names if ids.get(name) is None]:
        raise ConfigError(f"the model needs {' and '.join(missing)} too; make the ids with its own tokenizer")
    tokens = _together(model, {name: ids[name] for name in names})  # (B, T, W)
    edges = _together(model, {name: torch.tensor(marks[name]) for name in names}).to(tokens)  # (2, W)
    if tokens.dim() != 3 or tokens.shape[-1] != edges.shape[-1]:
        raise ConfigError(
            f"the model reads {edges.shape[-1]} ids a token, found a batch of shape {[*tokens.shape]}; make "
            "the ids with its own tokenizer"
        )
    mask = (tokens > 0).any(dim=-1)  # (B, T)
    if attention_mask is not None:
        mask &= attention_mask.bool()
    types, places = torch.unique(
        torch.cat([edges, tokens[mask]]), dim=0, return_inverse=True
    )  # (U, W), (2 + S,)
    vectors = _encode(model, types - 1, marks)  # (U, P)
    lengths = mask.sum(dim=1) + 2  # (B,)
    ends = lengths.cumsum(dim=0)
    inside = torch.ones(int(lengths.sum()), dtype=torch.bool, device=tokens.device)  # (S + 2B,)
    inside[ends - lengths] = False
    inside[ends - 1] = False
    order = torch.zeros_like(inside, dtype=torch.long)
    order[ends - 1] = 1
    order[inside] = torch.arange(2, len(places), device=tokens.device)
    layers = model(vectors[places[order]], lengths)[0]  # (L+1, S + 2B, 2P)
    padded: Tensor = layers.new_zeros(len(layers), *mask.shape, layers.shape[-1])
    padded[:, mask] = layers[:, inside]
    return padded


def _together(model: BiLM, ids: dict[str, Tensor]) -> Tensor:
    """All numbers of a token in one row, (…, W)."""
    of_words = isinstance(model.config.encoder, WordConfig)
    parts = [ids["input_ids"][..., None] if of_words else ids["input_ids"]]
    if "word_input_ids" in ids:
        parts.append(ids["word_input_ids"][..., None])
    return torch.cat(parts, dim=-1)


def _encode(model: BiLM, types: Tensor, marks: dict[str, Any]) -> Tensor:
    """The vectors (U, P) of types (U, W), counted from zero."""
    encoder = model.config.encoder
    if isinstance(encoder, WordConfig):
        vectors: Tensor = model.encoder(types[:, 0])
        return vectors
    width = (encoder.characters if isinstance(encoder, LexiconConfig) else encoder).max_characters
    spelt, words = types[:, :width], types[:, width:].unbind(dim=1)  # (U, C), (U,) or nothing
    positions = torch.arange(1, width + 1, device=types.device)
    used = ((spelt != marks["pad_character"] - 1) * positions).amax(dim=1)  # (U,)
    vectors = model.encoder(spelt, used, *words)
    return vectors
