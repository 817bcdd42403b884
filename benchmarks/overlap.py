"""What of the dev sets is in the training text of a model, and what of that text the model knows by heart.

    ELMOKIT_DATA=… python benchmarks/overlap.py MODEL [--language en]

Overlap: the share of a dev set's 13-grams (lower case, words and figures alone; of Chinese, characters) that
occur in the training text, and the share of its texts with at least one of them. Dev sets with fewer than 100
such grams, whose texts are shorter, are left out.

Memorisation: 1,000 sentences of at least 20 tokens are drawn from the training news. The model reads the
first 10 tokens and continues with the likeliest ones; counted is how many of the ten next tokens agree before
the first that does not, and how often all ten do. The same with held-out news shows what is merely guessed.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from common import data_file, markdown_table, model_parser, percent, report
from elmokit.base import progress_display
from elmokit.formats import load_model
from elmokit.language_model import LanguageModel
from elmokit.text import TokenizerSpec, make_word_tokenizer, read_lines, read_texts

GRAM, LEAST_GRAMS = 13, 100
SENTENCES, PREFIX, CONTINUED = 1_000, 10, 10
SEED = 0
WORD = re.compile(r"[\u4e00-\u9fff]|[^\W_]+")
AT_ONCE = 20_000  # lines

TRAINING = {
    "en": ("en-wikipedia.txt.xz", "en-books.txt.xz", "en-news.txt.xz", "en-talk.txt.xz"),
    "zh": ("zh-wikipedia.txt.xz", "zh-more.txt.xz"),
    "de": ("de-prose.txt.xz",),
}
# Dev files below tasks/, and the column of the words where a line is a word.
DEV = {
    "en": {
        "ner-conll2003/dev.txt.xz": 0, "ner-wnut17/dev.txt": 0, "chunk-conll2000/dev.txt.xz": 0,
        "pos-ewt/en_ewt-ud-dev.conllu.xz": 1, "coref-gum/dev.conll.xz": 1,
        "sentiment-sst5/sentences-dev.tsv": None, "blimp/dev.tsv.xz": None, "nli-sick/dev.tsv": None,
        "nli-snli/dev.tsv.xz": None, "glue-cola/dev.tsv": None, "glue-mrpc/dev.tsv": None,
        "glue-rte/dev.tsv": None, "sts-b/sts-dev.csv": None, "wic/dev.en-en.tsv.xz": None,
        "qa-squad1/xquad.en.json.xz": None,
    },
    "zh": {
        "ner-resume-zh/dev.bmes": 0, "ner-weibo-zh/dev.bio": 0, "ner-msra-zh/dev.bio.xz": 0,
        "pos-gsd-zh/dev.conllu": 1, "sentiment-chnsenticorp/dev.tsv": None, "topic-tnews-zh/dev.tsv": None,
        "qa-cmrc2018/dev.json.xz": None, "pairs-afqmc-zh/dev.tsv": None, "nli-zh/dev.jsonl": None,
    },
    "de": {"pos-gsd-de/dev.conllu": 1, "ner-germeval14/dev.tsv": 0},
}  # fmt: skip

Hashes = npt.NDArray[np.uint64]


class Grams:
    """Hashes of 64 bits of 13-grams."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}  # at random: a hash is compared only with those of the same run
        self._random = np.random.default_rng(SEED)
        self._factors = self._random.integers(1, 2**63, GRAM, dtype=np.uint64) | np.uint64(1)

    def __call__(self, text: str) -> Hashes:
        """The hashes of a text."""
        words = WORD.findall(text.lower())
        if len(words) < GRAM:
            return np.empty(0, np.uint64)
        codes = np.fromiter((self._code(word) for word in words), np.uint64, len(words))
        found: Hashes = np.convolve(codes, self._factors, mode="valid")
        return found

    def _code(self, word: str) -> int:
        code = self._codes.get(word)
        if code is None:
            code = self._codes[word] = int(self._random.integers(2**63))
        return code


def dev_texts(path: Path, column: int | None) -> Iterator[str]:
    """The texts of a dev file: sentences of a column, cells of a table, strings of JSON."""
    if column is not None:
        lines = (line.strip() for line in read_lines(path))
        for filled, block in groupby(lines, bool):
            if filled:
                rows = (re.split(r"[\t ]+", line) for line in block if not line.startswith("#"))
                yield " ".join(row[column] for row in rows if len(row) > column)
    elif ".json" in path.name:
        lines = list(read_lines(path))
        for part in lines if ".jsonl" in path.name else ["".join(lines)]:
            yield from _strings(json.loads(part))
    else:
        for line in read_lines(path):
            yield from line.split("\t")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def overlaps(language: str) -> dict[str, dict[str, float]]:
    """Share of known grams and of texts with one, for each dev set."""
    grams = Grams()
    sets: dict[str, list[Hashes]] = {}
    for name, column in DEV[language].items():
        path = data_file(f"tasks/{name}", "a dev set")
        texts = [found for text in dev_texts(path, column) if len(found := grams(text))]
        if sum(map(len, texts)) >= LEAST_GRAMS:
            sets[name] = texts
    wanted = np.unique(np.concatenate([one for texts in sets.values() for one in texts]))
    is_known = np.zeros(len(wanted), bool)
    with progress_display(shown=True) as start:
        for file in TRAINING[language]:
            advance = start(file, None)
            for block in blocks(read_lines(data_file(f"lm/{file}", "training text"))):
                found = np.concatenate([grams(line) for line in block])
                at = np.minimum(np.searchsorted(wanted, found), len(wanted) - 1)
                is_known[at[wanted[at] == found]] = True
                advance(len(block))
    result = {}
    for name, texts in sets.items():
        known = [is_known[np.searchsorted(wanted, one)] for one in texts]
        result[name] = {
            "grams": sum(map(len, texts)),
            "known grams": percent(float(np.concatenate(known).mean())),
            "texts with one": percent(sum(bool(one.any()) for one in known) / len(known)),
        }
    return result


def blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Some lines at a time."""
    kept: list[str] = []
    for line in lines:
        kept.append(line)
        if len(kept) == AT_ONCE:
            yield kept
            kept = []
    if kept:
        yield kept


def memorised(model: LanguageModel, spec: TokenizerSpec, path: Path) -> dict[str, float]:
    """How far the model continues sentences of a file as they stand there."""
    tokenize = make_word_tokenizer(spec)
    random = np.random.default_rng(SEED)
    lines = [line for line in read_lines(path) if len(line) > 100]
    agreed = []
    for at in random.permutation(len(lines)).tolist():
        sentence = tokenize(next(iter(read_texts([lines[at]], split=spec.language))))
        if len(sentence) < PREFIX + CONTINUED:
            continue
        prompt, true = sentence[:PREFIX], sentence[PREFIX : PREFIX + CONTINUED]
        said = model.generate(prompt, generator=torch.Generator(), temperature=0, max_tokens=CONTINUED)
        same = [a == b for a, b in zip(said[PREFIX:], true, strict=False)]
        agreed.append([*same, False].index(False))
        if len(agreed) == SENTENCES:
            break
    return {
        "sentences": len(agreed),
        "all ten": sum(number >= CONTINUED for number in agreed),
        "mean agreement": round(float(np.mean(agreed)), 3),
    }


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--language", choices=list(TRAINING), default="en")
    arguments = parser.parse_args()
    found = overlaps(arguments.language)
    rows = [
        [name, f"{one['grams']:,.0f}", one["known grams"], one["texts with one"]]
        for name, one in found.items()
    ]
    text = markdown_table(["dev set", "13-grams", "in the training text, %", "texts with one, %"], rows)
    result: dict[str, Any] = {"overlap": found}
    if arguments.language == "en":
        model = LanguageModel.load(arguments.model, precision=arguments.precision)
        spec = load_model(arguments.model).tokenizer
        news = {"training news": "en-news.txt.xz", "held-out news": "en-news-heldout.txt"}
        by_heart = {
            name: memorised(model, spec, data_file(f"lm/{file}", "news")) for name, file in news.items()
        }
        rows = [[name, *one.values()] for name, one in by_heart.items()]
        text += "\n\n" + markdown_table(
            ["continued", "sentences", "ten tokens alike", "alike on average"], rows
        )
        result["memorisation"] = by_heart
    report("overlap", arguments, text, result)


if __name__ == "__main__":
    main()
