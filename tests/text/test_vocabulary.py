import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import DataError
from elmokit.text import Vocabulary


def test_ids_are_line_numbers(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_text("<S>\n</S>\n<UNK>\nthe\n été \n!!!MAXTERMID\nbank\n", encoding="utf-8")
    vocabulary = Vocabulary.load(file)
    assert vocabulary.tokens == ("<S>", "</S>", "<UNK>", "the", "été", "bank")
    assert [vocabulary.id(token) for token in ("<S>", "été", "bank", "brook")] == [0, 4, 5, 2]
    assert "bank" in vocabulary
    assert "brook" not in vocabulary
    assert len(vocabulary) == 6
    vocabulary.require_specials()


def test_a_repeated_token_keeps_its_rows_and_the_later_id(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\nb\na\n\n", encoding="utf-8")
    vocabulary = Vocabulary.load(tmp_path / "vocab.txt")
    assert vocabulary.tokens == ("a", "b", "a", "")
    assert vocabulary.id("a") == 2


def test_compressed_vocabulary(tmp_path):
    (tmp_path / "vocab.txt.gz").write_bytes(gzip.compress(b"<S>\n</S>\n"))
    assert Vocabulary.load(tmp_path / "vocab.txt.gz").tokens == ("<S>", "</S>")


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz", "vocab.txt.xz"])
@given(tokens=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0\ufeff")).map(str.strip)))
def test_round_trip(tmp_path_factory, name, tokens):
    file = tmp_path_factory.getbasetemp() / name
    Vocabulary(tokens).save(file)
    assert Vocabulary.load(file).tokens == tuple(tokens)


def test_compression_follows_the_name(tmp_path):
    Vocabulary(["a"]).save(tmp_path / "v.gz")
    assert gzip.decompress((tmp_path / "v.gz").read_bytes()) == b"a\n"


@pytest.mark.parametrize("token", [" a", "a\nb", "!!!MAXTERMID", "\ud800", "\0", "\ufeffa"])
def test_what_would_be_read_back_changed_is_not_written(tmp_path, token):
    with pytest.raises(DataError, match=r"token 0 of the vocabulary.*cannot be written as a line"):
        Vocabulary([token]).save(tmp_path / "vocab.txt")
    assert not (tmp_path / "vocab.txt").exists()


def test_no_unknown_token_is_an_error_when_it_is_needed():
    vocabulary = Vocabulary(["<S>", "</S>", "bank"])
    assert vocabulary.id("bank") == 2
    with pytest.raises(DataError, match=r"'brook' is not in the vocabulary of 3 tokens.*<UNK>"):
        vocabulary.id("brook")


def test_missing_specials_are_named():
    with pytest.raises(DataError, match="has no </S>, <UNK>;"):
        Vocabulary(["<S>", "bank"]).require_specials()
