"""How well the rules agree with a treebank; `benchmarks/tokenizer.py` measures more."""

import lzma
import os
from pathlib import Path

import pytest

from elmokit.text import TokenizerSpec, make_tokenizer


def test_english_rules_agree_with_the_treebank():
    folder = os.environ.get("ELMOKIT_DATA")
    if not folder:
        pytest.skip("set ELMOKIT_DATA to the folder that holds tasks/pos-ewt (UD_English-EWT)")
    file = Path(folder, "tasks/pos-ewt/en_ewt-ud-dev.conllu.xz")
    tokenize = make_tokenizer(TokenizerSpec(name="rules", language="en"))
    right = num_found = num_true = 0
    with lzma.open(file, "rt", encoding="utf-8") as treebank:
        blocks = treebank.read().strip().split("\n\n")
    for block in blocks:
        lines = block.split("\n")
        text = next(line.removeprefix("# text = ") for line in lines if line.startswith("# text = "))
        # Counted in characters that are not white space, so that text and words need no aligning.
        true, position = set(), 0
        for line in lines:
            number, _, rest = line.partition("\t")
            if number.isdigit():
                start = position
                position += len("".join(rest.split("\t")[0].split()))
                true.add((start, position))
        found, position = set(), 0
        for token in tokenize(text):
            found.add((position, position + len(token.text)))
            position += len(token.text)
        right += len(found & true)
        num_found += len(found)
        num_true += len(true)
    assert 2 * right / (num_found + num_true) > 0.985
