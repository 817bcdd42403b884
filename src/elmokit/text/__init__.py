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
from elmokit.text.json_lines import JSON_LINES, read_json_lines
from elmokit.text.lexicon import Lexicon
from elmokit.text.lines import is_file, read_lines
from elmokit.text.scripts import count_scripts, foreign_script, known_scripts
from elmokit.text.sentences import has_several_sentences, sentences_from_lines, split_sentences
from elmokit.text.table_files import (
    Row,
    TextColumn,
    csv_rows,
    is_table,
    read_columns,
    shown_cells,
    tsv_rows,
    why_no_column,
)
from elmokit.text.text_files import Input, TextSource, read_documents, read_texts, split_language
from elmokit.text.tokenizers import (
    TokenizerSpec,
    choose_spec,
    default_spec,
    make_tokenizer,
    make_word_tokenizer,
)
from elmokit.text.tokens import Token, Tokenizer, lists_of_tokens, refuse_bare_string, tokens_from_list
from elmokit.text.vocabulary import SPECIAL_TOKENS, UNKNOWN_TOKEN, Vocabulary
from elmokit.text.word_search import Run, find_one, find_word, group_tokens, may_contain, one_spelling

__all__ = [
    "BEGIN_SENTENCE_TOKEN",
    "END_SENTENCE_TOKEN",
    "JSON_LINES",
    "PAD",
    "PREDICTION_SHIFT",
    "SPECIAL_TOKENS",
    "UNKNOWN_TOKEN",
    "Input",
    "Lexicon",
    "Row",
    "Run",
    "TextColumn",
    "TextSource",
    "Token",
    "Tokenizer",
    "TokenizerSpec",
    "Vocabulary",
    "character_matrix",
    "choose_spec",
    "count_scripts",
    "csv_rows",
    "default_spec",
    "find_one",
    "find_word",
    "foreign_script",
    "group_tokens",
    "has_several_sentences",
    "is_file",
    "is_table",
    "is_truncated",
    "known_scripts",
    "lists_of_tokens",
    "make_tokenizer",
    "make_word_tokenizer",
    "may_contain",
    "one_spelling",
    "read_columns",
    "read_documents",
    "read_json_lines",
    "read_lines",
    "read_texts",
    "refuse_bare_string",
    "sentences_from_lines",
    "shown_cells",
    "split_language",
    "split_sentences",
    "tokens_from_list",
    "tsv_rows",
    "used_characters",
    "why_no_column",
]
