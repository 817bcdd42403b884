"""Embed lines as they come, for a pipe: each result is plain data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmokit.embed.file_choice import DType, FileChoice
from elmokit.embed.sentence import LayerChoice
from elmokit.embed.sentence_vectors import SentencePooling
from elmokit.embed.text_embedder import TextEmbedder
from elmokit.text import TextSource, read_texts, split_language

_LIKE = Path("lines.tsv")  # the vectors of a line are those that a table of this kind would hold


def embed_lines(
    embedder: TextEmbedder,
    source: TextSource,
    *,
    layers: LayerChoice | None = None,
    dtype: DType = "float32",
    tokens: bool = False,
    split: bool | str = False,
    pooling: SentencePooling | None = None,
    word: str | None = None,
    match_case: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield line, text, tokens, offsets and vectors of each line of a text as soon as it has been read.

    Args:
        embedder: The model.
        source: See `embed_file`, like all settings.
        layers: "mix" by default.
        dtype: Decides how many digits the numbers have.
        tokens: Whether lines are tokens separated by blanks.
        split: Whether to split running text into sentences.
        pooling: Yield one vector for each line.
        word: Yield the uses of this word only; a line without it has none.
        match_case: Whether `word` has to match in upper and lower case, too.

    Raises:
        ConfigError: Two settings contradict each other.
        DataError: The text cannot be read.
    """
    choice = FileChoice.of(
        _LIKE, embedder, layers=layers, dtype=dtype, pooling=pooling, word=word, match_case=match_case
    )
    language = split_language(split, embedder.tokenizer_spec.language, tokens=tokens)
    texts = read_texts(source, tokens=tokens, split=language)
    for line, sentence in enumerate(embedder.stream(texts, latency=0, copy=False), start=1):
        row = choice.row(sentence)
        # Through text, so that each number has the fewest digits that tell it from its neighbours.
        numbers = row.vectors.astype(dtype).astype(str).astype(float).tolist()
        found = {"line": line, "text": row.text, "tokens": row.tokens, "offsets": row.offsets}
        yield found | {"vectors": numbers}
