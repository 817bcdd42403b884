"""Our rules against the UD English EWT treebank, beside spaCy, Moses and white space.

    ELMOKIT_DATA=… python benchmarks/tokenizer.py

Tokens count by their character spans; a multiword token such as "don't" counts as its words "do" and "n't".
Sentences are found again in paragraphs whose sentences were joined by blanks, so what the treebank ends at
a line break without a stop (headings, signatures, lists) cannot be found by anyone.
"""

import lzma
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common import data_file, markdown_table
from elmokit.errors import MissingExtra
from elmokit.text import Tokenizer, TokenizerSpec, make_tokenizer, split_sentences

Spans = set[tuple[int, int]]

SPECS = (
    TokenizerSpec(name="rules", language="en"),
    TokenizerSpec(name="spacy", language="en"),
    TokenizerSpec(name="moses", language="en"),
    TokenizerSpec(name="whitespace"),
)


@dataclass
class Sentence:
    """A sentence of the treebank."""

    text: str = ""
    words: list[str] = field(default_factory=list)
    begins_paragraph: bool = False

    def spans(self) -> Spans:
        """Where the words stand in the text."""
        spans = set()
        position = 0
        for word in self.words:
            start = self.text.index(word, position)
            assert not self.text[position:start].strip(), f"{word!r} is not next in {self.text!r}"
            position = start + len(word)
            spans.add((start, position))
        return spans


def read_conllu(path: Path) -> Iterator[Sentence]:
    """Read the sentences of a treebank file."""
    sentence = Sentence()
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith(("# newpar", "# newdoc")):
                sentence.begins_paragraph = True
            elif line.startswith("# text = "):
                sentence.text = line.removeprefix("# text = ").strip()
            elif line and not line.startswith("#"):
                number, word = line.split("\t")[:2]
                if number.isdigit():  # neither "3-4", a multiword token, nor "5.1", which was not written
                    sentence.words.append(word)
            elif not line:
                yield sentence
                sentence = Sentence()


def paragraphs(sentences: Iterable[Sentence]) -> Iterator[list[str]]:
    """Put the texts of sentences together as they stood in paragraphs."""
    texts: list[str] = []
    for sentence in sentences:
        if sentence.begins_paragraph and texts:
            yield texts
            texts = []
        texts.append(sentence.text)
    yield texts


def scores(pairs: Iterable[tuple[Spans, Spans]]) -> list[str]:
    """Precision, recall and F1 of found spans against true ones, in percent."""
    right = num_found = num_true = 0
    for found, true in pairs:
        right += len(found & true)
        num_found += len(found)
        num_true += len(true)
    precision, recall = right / num_found, right / num_true
    return [f"{100 * value:.2f}" for value in (precision, recall, 2 * right / (num_found + num_true))]


def token_row(name: str, tokenize: Tokenizer, sentences: list[Sentence], running: str) -> list[str]:
    """Measure one tokenizer on the treebank, and its speed on running text."""
    found = [{(token.start, token.end) for token in tokenize(sentence.text)} for sentence in sentences]
    pieces = running.splitlines()
    began = time.process_time()
    for piece in pieces:
        tokenize(piece)
    speed = len(running.encode()) / 1e6 / (time.process_time() - began)
    pairs = zip(found, (sentence.spans() for sentence in sentences), strict=True)
    return [name, *scores(pairs), f"{speed:.2f}"]


def sentence_row(sentences: list[Sentence]) -> list[str]:
    """Measure the sentence splitter on the treebank's paragraphs."""
    pairs = []
    for texts in paragraphs(sentences):
        position = 0
        true = set()
        for text in texts:
            true.add((position, position + len(text)))
            position += len(text) + 1
        pairs.append((set(split_sentences(" ".join(texts), "en")), true))
    return ["rules", *scores(pairs)]


def main() -> None:
    """Print both tables."""
    source = "UD_English-EWT of Universal Dependencies, each file compressed by xz"
    dev = list(read_conllu(data_file("tasks/pos-ewt/en_ewt-ud-dev.conllu.xz", source)))
    train = read_conllu(data_file("tasks/pos-ewt/en_ewt-ud-train.conllu.xz", source))
    running = "\n".join(sentence.text for sentence in train)
    rows = []
    for spec in SPECS:
        try:
            rows.append(token_row(spec.name, make_tokenizer(spec), dev, running))
        except MissingExtra as error:
            rows.append([spec.name, str(error), "", "", ""])
    print("Tokens of EWT dev, speed on EWT train read once (one core)\n")
    print(markdown_table(["tokenizer", "precision", "recall", "F1", "MB/s"], rows))
    print("\nSentences of EWT dev\n")
    print(markdown_table(["splitter", "precision", "recall", "F1"], [sentence_row(dev)]))


if __name__ == "__main__":
    main()
