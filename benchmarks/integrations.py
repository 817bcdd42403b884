"""elmokit inside spaCy, transformers, sentence-transformers and scikit-learn: the same vectors, and how fast.

    ELMOKIT_DATA=… python benchmarks/integrations.py [--shape original] [--sentences 400]

Random weights, sentences of WikiText-2. Exit status 1 if a difference from `elmokit.load` exceeds 1e-5.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import spacy
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from spacy.tokens import Doc

import elmokit
from common import SHAPES, markdown_table, random_model, wikitext_sentences
from elmokit.formats import save_model
from elmokit.integrations.sentence_transformers import Elmo
from elmokit.integrations.sklearn import ElmoVectorizer
from elmokit.integrations.transformers import ElmoModel, ElmoTokenizer

TOLERANCE = 1e-5
Vectors = list[np.ndarray]  # of each sentence: the top layer (T, 2P), or the sentence vector (2P,)


def ways(path: Path, sentences: list[list[str]]) -> Iterator[tuple[str, bool, Callable[[], Vectors]]]:
    """Each library: its name, whether it gives sentence vectors, and what makes them, all set up."""
    texts = [" ".join(tokens) for tokens in sentences]
    elmo = elmokit.load(path)
    yield "elmokit `embed`", False, lambda: [sentence.layers[-1] for sentence in elmo.embed(sentences)]
    yield "elmokit `encode`", True, lambda: [*elmo.encode(texts)]
    nlp = spacy.blank("en")
    nlp.add_pipe("elmokit", config={"model": str(path)})
    yield (
        "spaCy `nlp.pipe`",
        False,
        lambda: [doc._.elmo[-1] for doc in nlp.pipe(Doc(nlp.vocab, words=tokens) for tokens in sentences)],
    )
    model, tokenizer = ElmoModel.from_elmokit(path), ElmoTokenizer.from_elmokit(path)
    yield "transformers, batches of 32", False, lambda: transformers_vectors(model, tokenizer, sentences)
    module = Elmo(path)
    encoder = SentenceTransformer(modules=[module, Pooling(module.get_embedding_dimension())], device="cpu")
    yield "sentence-transformers `encode`", True, lambda: [*encoder.encode(texts)]
    vectorizer = ElmoVectorizer(path)
    yield "scikit-learn `transform`", True, lambda: [*vectorizer.fit(texts).transform(texts)]


@torch.no_grad()
def transformers_vectors(model: ElmoModel, tokenizer: ElmoTokenizer, sentences: list[list[str]]) -> Vectors:
    """As one would by hand: batches of like length."""
    found: dict[int, np.ndarray] = {}
    order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        batch = tokenizer(
            [sentences[row] for row in rows], is_split_into_words=True, padding=True, return_tensors="pt"
        )
        for row, vectors in zip(rows, model(**batch).last_hidden_state.numpy(), strict=True):
            found[row] = vectors[: len(sentences[row])]
    return [found[row] for row in range(len(sentences))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--sentences", type=int, default=400)
    options = parser.parse_args()
    sentences = list(islice(wikitext_sentences(), options.sentences))
    words = sum(map(len, sentences))
    rows, worst, expected = [], 0.0, dict[bool, Vectors]()
    with TemporaryDirectory() as folder:
        save_model(random_model(SHAPES[options.shape]), Path(folder) / "model")
        for name, pooled, run in ways(Path(folder) / "model", sentences):
            run()  # lays out weights, fills caches
            start = time.perf_counter()
            vectors = run()
            seconds = time.perf_counter() - start
            pairs = zip(vectors, expected.setdefault(pooled, vectors), strict=True)
            difference = max(float(np.abs(one - other).max()) for one, other in pairs)
            worst = max(worst, difference)
            rows.append([name, f"{words / seconds:,.0f}", f"{difference:.2g}"])
    print(f"\n{options.shape} shape, {len(sentences)} sentences, {words:,} words\n")
    print(markdown_table(["", "words a second", "largest difference"], rows))
    sys.exit(not worst <= TOLERANCE)


if __name__ == "__main__":
    main()
