import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import ConfigError, DataError, MissingExtra
from elmokit.text import (
    Token,
    TokenizerSpec,
    default_spec,
    make_tokenizer,
    make_word_tokenizer,
    tokens_from_list,
)

EXTRAS = {"spacy": "en", "moses": "en", "icu": "th", "jieba": "zh"}
MODULES = {"spacy": "spacy", "moses": "sacremoses", "icu": "icu4py.breakers", "jieba": "jieba"}
EXTRA_NAMES = {"spacy": "spacy", "moses": "moses", "icu": "icu", "jieba": "zh"}
SPECS = [
    TokenizerSpec(name=name, language=language)
    for name, language in {"rules": "en", "characters": "zh", "whitespace": None, **EXTRAS}.items()
]


@pytest.fixture(scope="module", params=SPECS, ids=lambda spec: spec.name)
def tokenize(request):
    pytest.importorskip(MODULES.get(request.param.name, "regex"))
    return make_tokenizer(request.param)


def tokens_of(text, **spec):
    return " ".join(token.text for token in make_tokenizer(TokenizerSpec(**spec))(text))


@given(text=st.text(st.sampled_from("aB é.,'\"-$5 中文กขไทย😀\u3000\n\x01\xa0\ud800"), max_size=40))
def test_offsets_are_true_and_no_letter_is_lost(tokenize, text):
    tokens = tokenize(text)
    position = 0
    for token in tokens:
        assert position <= token.start < token.end <= len(text)
        assert text[token.start : token.end].replace("\x01", "") == token.text.replace("\x01", "")
        position = token.end
    kept = "".join(token.text for token in tokens).replace("\x01", "")
    assert kept == "".join(text.split()).replace("\x01", "")


def test_characters():
    text = "我用iPhone15买了3.5斤苹果，COVID-19！日本語のスーパー"
    assert tokens_of(text, name="characters", language="zh") == (
        "我 用 iPhone15 买 了 3.5 斤 苹 果 ， COVID - 19 ！ 日 本 語 の ス ー パ ー"
    )


def test_whitespace():
    assert tokens_of(" don't\u3000stop\x85now. ", name="whitespace") == "don't stop now."


def test_spacy():
    pytest.importorskip("spacy")
    assert tokens_of("I don't  like\n\nit.", name="spacy", language="en") == "I do n't like it ."


def test_moses_without_escapes():
    pytest.importorskip("sacremoses")
    assert tokens_of('He said "A & B\'s".', name="moses", language="en") == 'He said " A & B \'s " .'


def test_moses_that_changes_the_text_is_an_error_and_not_a_wrong_offset():
    pytest.importorskip("sacremoses")
    with pytest.raises(DataError, match=r"Moses changed the text at character 2.*another tokenizer"):
        tokens_of("a DOTMULTI b", name="moses", language="en")


def test_icu_counts_characters_and_not_utf16_units():
    pytest.importorskip("icu4py.breakers")
    tokens = make_tokenizer(TokenizerSpec(name="icu", language="th"))("😀 สวัสดีครับ")
    assert tokens == [Token("😀", 0, 1), Token("สวัสดี", 2, 8), Token("ครับ", 8, 12)]


def test_jieba_is_silent(capfd):
    pytest.importorskip("jieba")
    assert tokens_of("我爱北京 天安门", name="jieba", language="zh") == "我 爱 北京 天安门"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", EXTRAS)
def test_missing_library_names_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    with pytest.raises(MissingExtra, match=rf"tokenizer '{name}'.*elmokit\[{EXTRA_NAMES[name]}\]"):
        make_tokenizer(TokenizerSpec(name=name, language=EXTRAS[name]))


def test_lowercase_keeps_offsets():
    tokenize = make_tokenizer(TokenizerSpec(name="rules", language="en", lowercase=True))
    # "İ" becomes two characters in lower case.
    assert tokenize("İZMİR Is") == [Token("i̇zmi̇r", 0, 5), Token("is", 6, 8)]


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("en", "rules"),
        ("pt-BR", "rules"),
        ("ko", "rules"),
        ("grc", "rules"),
        ("zh", "characters"),
        ("zh_Hant", "characters"),
        ("ja", "characters"),
        ("th", "icu"),
        ("my", "icu"),
    ],
)
def test_default_for_a_language(language, name):
    assert default_spec(language).name == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: default_spec("xx-nonsense"),
            "'xx-nonsense' is not known; expected an ISO 639 code, one of: .* en ",
        ),
        (lambda: tokens_of("", name="rules", language="english"), "'english' is not known"),
        (lambda: tokens_of("", name="whitespace", language="??"), "is not known"),
        (lambda: tokens_of("", name="icu", language="qq"), "is not known"),
        (lambda: tokens_of("", name="spacy", language="qq"), "not known to spaCy; expected one of: .* en "),
        (lambda: tokens_of("", name="moses", language="qq"), "not known to Moses; expected one of: .* en "),
        (lambda: tokens_of("", name="moses"), "None is not known to Moses"),
        (
            lambda: tokens_of("", name="jieba", language="en"),
            "jieba tokenises Chinese only.* found 'en'",
        ),
        (
            lambda: TokenizerSpec(name="mosses"),
            "tokenizer must be one of rules, .*, found 'mosses'; did you mean 'moses'",
        ),
        (lambda: TokenizerSpec.from_dict({"name": "rules", "langauge": "en"}), "did you mean 'language'"),
        (lambda: TokenizerSpec.from_dict({"language": "en"}), "tokenizer: .*missing.* 'name'"),
        (
            lambda: TokenizerSpec.from_dict({"name": "rules", "lowercase": "no"}),
            "lowercase must be true or false, found 'no'",
        ),
    ],
)
def test_what_cannot_be_is_a_config_error(make, message):
    try:
        with pytest.raises(ConfigError, match=message):
            make()
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    "spec", [*SPECS, TokenizerSpec(name="rules", language="de", lowercase=True)], ids=str
)
def test_spec_round_trip(spec):
    assert TokenizerSpec.from_dict(spec.to_dict()) == spec


@given(st.lists(st.text(max_size=8)))
def test_tokens_from_list_are_placed_in_the_joined_text(tokens):
    text = " ".join(tokens)
    placed = tokens_from_list(tokens)
    assert [token.text for token in placed] == tokens
    assert all(text[token.start : token.end] == token.text for token in placed)


def test_tokens_from_list_refuses_what_is_no_list_of_tokens():
    with pytest.raises(ConfigError, match="expected a list of tokens, found the bare string 'The bank'"):
        tokens_from_list("The bank")
    with pytest.raises(ConfigError, match="token 1 is of type list, expected str"):
        tokens_from_list(["a", ["b"]])


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("name", ["rules", "whitespace", "characters"])
@given(text=st.text(alphabet=st.sampled_from("aB'’.,-3@$ \n\x1c\x85\u3000\u200b鱼é\u0301"), max_size=30))
def test_word_tokenizer_gives_the_same_tokens(name, lowercase, text):
    spec = TokenizerSpec(name=name, language="en", lowercase=lowercase)
    assert make_word_tokenizer(spec)(text) == [token.text for token in make_tokenizer(spec)(text)]
