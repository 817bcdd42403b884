import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from elmokit.text import TokenizerSpec, make_tokenizer

ENGLISH = make_tokenizer(TokenizerSpec(name="rules", language="en"))
LANGUAGES = ["en", "fr", "it", "ca", "de", "nl", "ru", "tr", None]
TOKENIZERS = {
    language: make_tokenizer(TokenizerSpec(name="rules", language=language)) for language in LANGUAGES
}


def cut(text, language="en"):
    return " ".join(token.text for token in TOKENIZERS[language](text))


@pytest.mark.parametrize(
    "tokens",
    [
        # clitics
        "I do n't think it 's John 's , they 'll ca n't wo n't should n't 've",
        "I ca n’t , it ’s",
        "DO N'T",
        "can not gon na wan na do nt",
        "O'Brien 's Shi'ite o'clock",
        "students ' '90s 'em '",
        # numbers, money, units
        "1,000.50 3.5 % $ 5 £ 10 , # 1 -",
        "7:30 PM 35 mm $ 3 M 5 kg 23rd 1970s 60's 3143C B2B",
        "11/28/2000 9/11 713-853-3989 1-800-991-9019 2004-11-17 5 - 10",
        # abbreviations and initials
        "Mr. Smith , J. R. Ewing and the U.S. at 5 p.m. e.g. Inc. vs. Ph.D.",
        "the end .",
        # web
        "see http://www.a-b.org/x_(y)?q=1#z .",
        "( www.juancole.com ) , carol.st.clair@enron.com ; foo.com .",
        "@user #topic # 1 AT&T R&D report.xls comp.sources.unix",
        # emoticons, emoji
        ":) ;-) :D great :) <3 ^_^ xD",
        "ok 👍🏽 👩‍👩‍👧 🇩🇪 1️⃣",
        # dots, dashes, stops
        "well ... he -- wait !!! what ?! … – yes",
        # hyphens
        "15 - year - old state - of - the - art non-commercial e-mail mid-1980s",
        # quotes and brackets
        "\" He said ' no ' , \" “ ( and [ left ] ) ”",
        "and / or << a >> ** b **",
    ],
)
def test_english(tokens):
    """Closing up the blanks where people write none is undone; see the next test for such text."""
    assert cut(tokens) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I don't think it's John's.", "I do n't think it 's John 's ."),
        ("They'll say he can't, won't, shouldn't've.", "They 'll say he ca n't , wo n't , should n't 've ."),
        ("I cannot; gonna, dont", "I can not ; gon na , do nt"),
        ("'Tis the students' 'own' idea", "'Tis the students ' ' own ' idea"),
        ("It cost $1,000.50 (3.5% more).", "It cost $ 1,000.50 ( 3.5 % more ) ."),
        ("At 7:30PM, 35mm film, $3M", "At 7:30 PM , 35 mm film , $ 3 M"),
        ("Mr. O'Neil of the U.S.'s Inc.", "Mr. O'Neil of the U.S. 's Inc."),
        ("(see http://a.org/b?c=d, or mail x@y.com.)", "( see http://a.org/b?c=d , or mail x@y.com . )"),
        ("Wait...what?!Really--yes", "Wait ... what ?! Really -- yes"),
        ("a 15-year-old non-stop e-mail", "a 15 - year - old non-stop e-mail"),
        ('"Go," she said.', '" Go , " she said .'),
        ("and/or great:) #1 #fun", "and / or great :) # 1 #fun"),
        ("the 北京 office of 東京タワー", "the 北 京 office of 東 京 タ ワ ー"),
        ("한국어 문장입니다.", "한국어 문장입니다 ."),
        ("", ""),
        (" \t\n\u3000\x1c", ""),
    ],
)
def test_english_text(text, tokens):
    assert cut(text) == tokens


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("fr", "L'homme qu'il n'a vu aujourd'hui", "L' homme qu' il n' a vu aujourd'hui"),
        ("fr", "Est-ce vrai ? A-t-il un porte-parole ?", "Est -ce vrai ? A -t-il un porte-parole ?"),
        ("it", "Dell'uomo un po' d'acqua.", "Dell' uomo un po' d' acqua ."),
        ("ca", "l'home, agafa'l", "l' home , agafa 'l"),
        (
            "de",
            "Der 15-jährige E-Mail-Autor, z.B. Dr. Maier.",
            "Der 15-jährige E-Mail-Autor , z.B. Dr. Maier .",
        ),
        ("nl", "'s avonds foto's", "'s avonds foto's"),
        ("ru", "В 1990 г. цена 3,5 руб.", "В 1990 г. цена 3,5 руб."),
        ("tr", "İstanbul'da yaşıyor.", "İstanbul'da yaşıyor ."),
        (None, "don't split l'homme", "don't split l'homme"),
    ],
)
def test_other_languages(language, text, tokens):
    assert cut(text, language) == tokens


# Text full of what the rules look at.
SIGNS = "aZé中ッ한5.,:;'’\"!?-–/@#$%&*()<>_^=~…\u0301\u200d\x1c\x00\xa0 \n😀🇩\ud800"
STRINGS = [
    "n't",
    "'s",
    "l'",
    "-t-il",
    "http://",
    "www.",
    ".com",
    "e-",
    "1,000",
    "U.S.",
    "Mr.",
    "...",
    "cannot",
]
PIECES = st.sampled_from([*SIGNS, *STRINGS])
TEXTS = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=40)


@given(TEXTS, st.sampled_from(LANGUAGES))
@example("it's 3.5%\x1cof don't", "en")
def test_nothing_is_lost_and_offsets_are_true(text, language):
    tokens = TOKENIZERS[language](text)
    assert "".join(token.text for token in tokens) == "".join(text.split())
    position = 0
    for token in tokens:
        assert position <= token.start < token.end <= len(text)
        assert text[token.start : token.end] == token.text
        position = token.end


@given(st.text(st.sampled_from("abc XY.,!?'\"-()$%12éü"), max_size=60), st.sampled_from(LANGUAGES))
def test_kept_results_are_the_results(text, language):
    fresh = make_tokenizer(TokenizerSpec(name="rules", language=language))
    assert fresh(text) == fresh(text) == TOKENIZERS[language](text)


CHUNKS = """
    don't it's $5.50, (Mr. U.S. 3.5% 15-year-old "Go!" foo@bar.com. http://a.org/b end. cannot... 1980s a/b :)
"""
SENTENCES = st.lists(st.sampled_from(CHUNKS.split()), max_size=12).map(" ".join)


@given(SENTENCES)
def test_tokens_joined_by_blanks_are_cut_the_same(text):
    tokens = [token.text for token in ENGLISH(text)]
    assert [token.text for token in ENGLISH(" ".join(tokens))] == tokens


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a.",
        "a'",
        "'s",
        "n't",
        "l'",
        "a-",
        "-il",
        "1-",
        "1,",
        "1/",
        "http://a(",
        "a@",
        "x.com",
        "(",
        ":(",
        "中",
        "\u0301",
    ],
)
def test_long_runs_without_blanks(language, piece):
    """A pattern that backtracks over the whole run would not come back from this in a day."""
    text = piece * (100_000 // len(piece))
    tokens = TOKENIZERS[language](text)
    assert "".join(token.text for token in tokens) == "".join(text.split())
