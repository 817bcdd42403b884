"""Traditional Chinese characters."""

import elmokit
from elmokit.text import Vocabulary


def test_a_model_of_simplified_text_reads_traditional_text():
    elmo = elmokit.load("zh", precision="float32")
    simplified, traditional = elmo.embed(["银行提高了利率。", "銀行提高了利率。"])
    assert traditional.tokens[0] == "銀"  # as written
    assert (simplified.layers == traditional.layers).all()


def test_a_vocabulary_with_both_forms_keeps_them_apart():
    vocabulary = Vocabulary(["<UNK>", "银", "銀"])
    assert [vocabulary.id(token) for token in ("银", "銀", "铜", "銅")] == [1, 2, 0, 0]
