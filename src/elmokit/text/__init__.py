"""Text work without torch: files to lines, lines to sentences, sentences to tokens, tokens to ids.

Tokens carry their offsets into the given string, so that whatever is computed for a token can be shown in
the text it came from; a model records the `TokenizerSpec` it was trained with.
"""

from elmokit.text.characters import character_ids, character_matrix, is_cut, num_cut, used_characters
from elmokit.text.lines import is_file, read_lines
from elmokit.text.sentences import sentences_from_lines, split_sentences
from elmokit.text.text_files import Input, read_texts, split_language
from elmokit.text.tokenizers import TokenizerSpec, default_spec, make_tokenizer, make_word_cutter
from elmokit.text.tokens import Token, Tokenizer, tokens_from_list
from elmokit.text.vocabulary import Vocabulary

__all__ = [
    "Input",
    "Token",
    "Tokenizer",
    "TokenizerSpec",
    "Vocabulary",
    "character_ids",
    "character_matrix",
    "default_spec",
    "is_cut",
    "is_file",
    "make_tokenizer",
    "make_word_cutter",
    "num_cut",
    "read_lines",
    "read_texts",
    "sentences_from_lines",
    "split_language",
    "split_sentences",
    "tokens_from_list",
    "used_characters",
]
