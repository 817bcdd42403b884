"""ELMo as a transformers model. Importing this module registers it with the Auto classes.

>>> import elmokit.integrations.transformers                                      # doctest: +SKIP
>>> from transformers import AutoModel, AutoTokenizer, pipeline                   # doctest: +SKIP
>>> ElmoModel.from_elmokit("path/to/model").save_pretrained("folder")             # doctest: +SKIP
>>> ElmoTokenizer.from_elmokit("path/to/model").save_pretrained("folder")         # doctest: +SKIP
>>> pipeline("feature-extraction", "folder")("The bank raised its rates.")        # doctest: +SKIP

The tokenizer returns one position per token of the text, and the model one vector per position, without `<S>`
and `</S>`; see `token_ids.py`. Nothing is downloaded for a path to a folder.

Shapes: B sentences, T positions of the longest, P projection.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmokit.base import shown, write_text
from elmokit.embed import Text, TextReader
from elmokit.errors import ConfigError, MissingExtra
from elmokit.formats import UNRECORDED, ModelBundle, load_model
from elmokit.integrations.token_ids import TokenIds, lowercased, padded_layers, sentence_marks
from elmokit.model import BiLM, BiLMConfig, BiLSTMLayer
from elmokit.text import Lexicon, Token, TokenizerSpec, Vocabulary, make_tokenizer

try:
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoTokenizer,
        BatchEncoding,
        PreTrainedConfig,
        PreTrainedModel,
        PreTrainedTokenizer,
        initialization,
    )
    from transformers.modeling_outputs import BaseModelOutput
    from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy
except ImportError as error:
    raise MissingExtra(
        "transformers 5 or later", "transformers", "elmokit.integrations.transformers"
    ) from error

_PAD = "<pad>"


class ElmoConfig(PreTrainedConfig):  # type: ignore[misc]
    """`BiLMConfig` as plain data, and the ids of `<S>` and `</S>`; made by `ElmoModel.from_elmokit`."""

    model_type = "elmo"

    bilm: dict[str, Any] | None = None
    marks: dict[str, Any] | None = None

    @property
    def hidden_size(self) -> int:
        """Return 2P, the size of each vector."""
        return self.shape.output_dim

    @property
    def num_hidden_layers(self) -> int:
        """Return L; `hidden_states` contains the token layer too."""
        return self.shape.num_layers

    @property
    def shape(self) -> BiLMConfig:
        """Return the sizes, checked."""
        if self.bilm is None or self.marks is None:
            raise ConfigError(
                "an ElmoConfig takes its sizes from a model; make it by ElmoModel.from_elmokit(path)"
            )
        return BiLMConfig.from_dict(self.bilm)

    @classmethod
    def from_bundle(cls, bundle: ModelBundle) -> "ElmoConfig":
        """Make the config of an elmokit model."""
        config = bundle.model.config
        marks = sentence_marks(bundle, TokenIds(config, bundle.vocabulary, bundle.lexicon))
        return cls(bilm=config.to_dict(), marks=marks)


class ElmoModel(PreTrainedModel):  # type: ignore[misc]
    """The biLM. All of its weights can be trained."""

    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__(config)
        self.bilm = BiLM(config.shape)
        self.post_init()

    @classmethod
    def from_elmokit(cls, model: str | Path | ModelBundle) -> "ElmoModel":
        """Convert an elmokit model, given in memory or as a path or name for `elmokit.load`."""
        bundle = model if isinstance(model, ModelBundle) else load_model(model)
        config = ElmoConfig.from_bundle(bundle)
        with torch.device("meta"):
            made: ElmoModel = cls(config)
        made.bilm.load_state_dict(bundle.model.state_dict(), assign=True)
        made.eval()
        return made

    def to_elmokit(self, tokenizer: "ElmoTokenizer") -> ModelBundle:
        """Return an elmokit model, for the faster `elmokit.Embedder` and `elmokit.formats.save_model`."""
        return tokenizer.bundle(self.bilm.eval())

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        word_input_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Compute all layers of a padded batch, made by `ElmoTokenizer`.

        By default the `attention_mask` (B, T) is found from the ids. `word_input_ids` (B, T) are for models
        whose words have vectors beside their characters.

        Returns:
            `last_hidden_state` (B, T, 2P), the top layer; and `hidden_states`, L+1 tensors of that shape.
        """
        ids = {"input_ids": input_ids}
        if word_input_ids is not None:
            ids["word_input_ids"] = word_input_ids
        layers = padded_layers(self.bilm, self.config.marks, ids, attention_mask)  # (L+1, B, T, 2P)
        wanted = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        hidden = tuple(layers) if wanted else None
        output = BaseModelOutput(last_hidden_state=layers[-1], hidden_states=hidden)
        named = self.config.return_dict if return_dict is None else return_dict
        return output if named else output.to_tuple()

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise weights that no file has, as `BiLSTMLayer` and `CharCNN` do."""
        if isinstance(module, BiLSTMLayer | nn.Conv1d | nn.Linear):
            read = [weight for weight in module.parameters() if getattr(weight, "_is_hf_initialized", False)]
            values = [weight.detach().clone() for weight in read]
            module.reset_parameters()
            for weight, value in zip(read, values, strict=True):
                weight.data.copy_(value)
        elif isinstance(module, nn.Embedding):
            initialization.uniform_(module.weight, -1.0, 1.0)
        else:
            super()._init_weights(module)


class ElmoTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """Converts text to token ids: a row of characters per token, or one number in a model of words.

    Texts are tokenised by the model's own tokenizer unless `is_split_into_words` is true. Padding is zero. No
    special tokens are added, and pairs are refused: ELMo reads one sentence. `bilm` and `spec` are a
    `BiLMConfig` and a `TokenizerSpec` as plain data. A vocabulary and a lexicon may be given by their files.
    """

    vocab_files_names = {"vocab_file": "vocab.txt", "lexicon_file": "lexicon.json"}  # noqa: RUF012
    model_input_names = ["input_ids", "word_input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(
        self,
        bilm: Mapping[str, Any],
        spec: Mapping[str, Any],
        vocab_file: str | Vocabulary | None = None,
        lexicon_file: str | Lexicon | None = None,
        **settings: Any,  # noqa: ANN401 (transformers' own)
    ) -> None:
        self.bilm, self.spec = dict(bilm), dict(spec)
        if isinstance(vocab_file, str):
            vocab_file = Vocabulary.load(vocab_file)
        if isinstance(lexicon_file, str):
            lexicon_file = Lexicon(**json.loads(Path(lexicon_file).read_text("utf-8")))
        self._vocabulary, self._lexicon = vocab_file, lexicon_file
        config, self._spec = BiLMConfig.from_dict(self.bilm), TokenizerSpec.from_dict(self.spec)
        self._reader = TextReader(make_tokenizer(self._spec), config, recorded=self._spec != UNRECORDED)
        self._token_ids = TokenIds(config, vocab_file, lexicon_file)
        super().__init__(bilm=self.bilm, spec=self.spec, **{"pad_token": _PAD, **settings})

    @classmethod
    def from_elmokit(
        cls, model: str | Path | ModelBundle, *, tokenizer: str | None = None
    ) -> "ElmoTokenizer":
        """Make the tokenizer for `ElmoModel.from_elmokit`; `tokenizer` replaces the model's own."""
        bundle = model if isinstance(model, ModelBundle) else load_model(model)
        spec = bundle.tokenizer if tokenizer is None else TokenizerSpec.parse(tokenizer)
        config = bundle.model.config
        vocabulary = bundle.vocabulary if config.encoder.vocabulary_size is not None else None
        return cls(config.to_dict(), spec.to_dict(), vocabulary, bundle.lexicon)

    def bundle(self, model: BiLM) -> ModelBundle:
        """Return the model of this tokenizer together with what elmokit needs beside it."""
        return ModelBundle(
            model, self._spec, vocabulary=self._vocabulary, lexicon=self._lexicon, source="transformers"
        )

    @property
    def vocab_size(self) -> int:
        """Return the size of `get_vocab`."""
        return len(self.get_vocab())

    def get_vocab(self) -> dict[str, int]:
        """Return the words of a model of words, and the padding; characters have no names."""
        words = () if self._vocabulary is None else self._vocabulary.tokens
        return {word: number for number, word in enumerate(words, start=1)} | {_PAD: 0}

    def tokenize(self, text: str, **_: object) -> list[str]:
        """Return the tokens of a text."""
        return [token.text for token in self._reader(text)]

    def _encode_plus(
        self,
        text: Text | Sequence[Text],
        text_pair: object = None,
        *,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        **_: object,
    ) -> BatchEncoding:
        """Do what a call of the tokenizer does; the arguments are those of transformers."""
        if text_pair is not None or return_overflowing_tokens:
            raise ConfigError(
                "ELMo reads one sentence of any length; leave out text_pair and return_overflowing_tokens"
            )
        one = isinstance(text, str) or (
            is_split_into_words and not any(isinstance(part, list | tuple) for part in text)
        )
        texts: Sequence[Any] = [text] if one else text
        sentences = [self._read(each, is_split_into_words) for each in texts]
        if truncation_strategy != TruncationStrategy.DO_NOT_TRUNCATE:
            sentences = [self._truncate(sentence, max_length) for sentence in sentences]
        batch = self._ids(sentences)
        if return_offsets_mapping:
            batch["offset_mapping"] = [[(token.start, token.end) for token in each] for each in sentences]
        if return_special_tokens_mask:
            batch["special_tokens_mask"] = [[0] * len(each) for each in sentences]
        if return_length:
            batch["length"] = [len(each) for each in sentences]
        if return_tensors is not None and not any(sentences):  # a tensor needs one position
            padding_strategy, max_length = PaddingStrategy.MAX_LENGTH, max(1, max_length or 1)
        padded = self.pad(
            batch,
            padding=padding_strategy,
            max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            return_attention_mask=return_attention_mask,
        )
        found = {name: rows[0] for name, rows in padded.items()} if one else dict(padded)
        return BatchEncoding(found, tensor_type=return_tensors, prepend_batch_axis=one)

    def _read(self, text: Text, is_split_into_words: bool) -> list[Token]:
        if isinstance(text, str) == is_split_into_words:
            hint = "leave out" if is_split_into_words else "pass"
            raise ConfigError(
                f"found {shown(text)}; {hint} is_split_into_words=True, or pass "
                + ("lists of words" if is_split_into_words else "strings")
            )
        tokens = self._reader(text if isinstance(text, str) else lowercased(text, self._spec))
        self._reader.truncated([token.text for token in tokens])  # warns
        return tokens

    def _truncate(self, sentence: list[Token], length: int | None) -> list[Token]:
        """Keep the beginning of a sentence, or its end if `truncation_side` is "left"."""
        if length is None or self.truncation_side == "right":
            return sentence[:length]
        return sentence[max(0, len(sentence) - length) :]

    def _ids(self, sentences: list[list[Token]]) -> dict[str, list[Any]]:
        rows = self._token_ids([token.text for sentence in sentences for token in sentence])
        lengths = [len(sentence) for sentence in sentences]
        return {name: [part.tolist() for part in torch.split(ids, lengths)] for name, ids in rows.items()}

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (transformers' own)
        """Pad one sentence. transformers pads lists of numbers; ours may be lists of rows."""
        numbers = list(range(1, len(encoded_inputs["input_ids"]) + 1))
        padded = super()._pad({**encoded_inputs, "input_ids": numbers}, *args, **kwargs)
        places = padded["input_ids"]  # 0 for padding, or the number of a token
        no_token = torch.zeros(self._token_ids([])["input_ids"].shape[1:], dtype=torch.long).tolist()
        blanks = {"input_ids": no_token, "word_input_ids": 0, "offset_mapping": (0, 0)}
        for name in blanks.keys() & encoded_inputs.keys():
            rows = [blanks[name], *encoded_inputs[name]]
            padded[name] = [rows[place] for place in places]
        return padded

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write the files that this kind of model needs; a model that reads bytes needs none."""
        start = f"{filename_prefix}-" if filename_prefix else ""
        paths = [Path(save_directory) / (start + name) for name in self.vocab_files_names.values()]
        if self._vocabulary is not None:
            self._vocabulary.save(paths[0])
        if self._lexicon is not None:
            write_text(paths[1], json.dumps(vars(self._lexicon)))
        return tuple(str(path) for path in paths if path.exists())


AutoConfig.register(ElmoConfig.model_type, ElmoConfig, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
