"""Text processing without torch: files to lines, lines to sentences, sentences to tokens, tokens to ids.

Tokens carry their offsets into the given string, so that the vectors of a token can be shown in the text it
came from. A model records the `TokenizerSpec` it was trained with.
"""

from elmokit.text.character_ids import (
    BEGIN_SENTENCE_TOKEN,
    END_SENTENCE_TOKEN,
    PAD,
    PREDICTION_SHIFT,
    character_matrix,
    is_truncated,
    used_characters,
)
from elmokit.text.lexicon import Lexicon
from elmokit.text.lines import is_file, read_lines
from elmokit.text.sentences import sentences_from_lines, split_sentences
from elmokit.text.text_files import Input, TextSource, read_texts, split_language
from elmokit.text.tokenizers import (
    TokenizerSpec,
    choose_spec,
    default_spec,
    make_tokenizer,
    make_word_tokenizer,
)
from elmokit.text.tokens import Token, Tokenizer, lists_of_tokens, refuse_bare_string, tokens_from_list
from elmokit.text.vocabulary import SPECIAL_TOKENS, UNKNOWN_TOKEN, Vocabulary

__all__ = [
    "BEGIN_SENTENCE_TOKEN",
    "END_SENTENCE_TOKEN",
    "PAD",
    "PREDICTION_SHIFT",
    "SPECIAL_TOKENS",
    "UNKNOWN_TOKEN",
    "Input",
    "Lexicon",
    "TextSource",
    "Token",
    "Tokenizer",
    "TokenizerSpec",
    "Vocabulary",
    "character_matrix",
    "choose_spec",
    "default_spec",
    "is_file",
    "is_truncated",
    "lists_of_tokens",
    "make_tokenizer",
    "make_word_tokenizer",
    "read_lines",
    "read_texts",
    "refuse_bare_string",
    "sentences_from_lines",
    "split_language",
    "split_sentences",
    "tokens_from_list",
    "used_characters",
]
