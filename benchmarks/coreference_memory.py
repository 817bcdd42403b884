"""Memory and time of the coreference head for one long document.

python benchmarks/coreference_memory.py [WORDS]

The vectors are random, of the size that `glove+chars+en` gives, so that what is measured is the head alone:
all spans, their scores and links. The process is fresh: its peak memory less that before the head was made.
"""

import random
import sys
import time

import torch

from elmokit.model import Packing
from elmokit.tasks.core import Hidden
from elmokit.tasks.core.comparison import peak_memory
from elmokit.tasks.coreference import CorefDocument, CoreferenceHead, CoreferenceHeadSettings

DIM = 784  # 2 x 200 of the LSTM, 384 of ELMo


def random_document(words: int) -> CorefDocument:
    """Sentences of 5 to 45 words, about every seventh of which starts a mention."""
    draw = random.Random(0)
    sentences: list[tuple[str, ...]] = []
    clusters: dict[int, list[tuple[int, int]]] = {}
    start = 0
    while start < words:
        length = min(draw.randrange(5, 45), words - start)
        sentences.append(tuple(f"w{draw.randrange(800)}" for _ in range(length)))
        for place in range(start, start + length - 3):
            if draw.random() < 0.13:
                own = clusters.setdefault(draw.randrange(max(1, words // 30)), [])
                own.append((place, place + draw.randrange(1, 4)))
        start += length
    return CorefDocument(tuple(sentences), tuple(map(tuple, clusters.values())))


def main() -> None:
    """Decode a document, then learn from it, and print what each took."""
    words = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    document = random_document(words)
    lengths = torch.tensor([len(sentence) for sentence in document.texts])
    before = peak_memory()
    head = CoreferenceHead(DIM, CoreferenceHeadSettings(), singletons=False)
    hidden = Hidden(torch.randn(words, DIM), lengths, Packing.of(lengths))
    for name in ("predict", "train"):
        began = time.process_time()
        if name == "predict":
            with torch.no_grad():
                head.eval().decode(hidden, [document])
        else:
            head.train().loss(hidden, [document]).backward()
        memory = (peak_memory() - before) / 1024**2
        print(f"{name}: {words:,} words, {memory:,.0f} MB, {time.process_time() - began:.1f} CPU seconds")


if __name__ == "__main__":
    main()
