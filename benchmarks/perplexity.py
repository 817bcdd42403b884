"""Full-softmax perplexity of a model on text it has not seen, each text from the zero state, and filled gaps.

    ELMOKIT_DATA=… python benchmarks/perplexity.py MODEL [--language zh] [--gaps]

Whole articles of Wikipedia that were held out, cut as in training: by sentences, and by paragraphs, each of
which is one text. English also: the first 120,000 characters of held-out news, and WikiText-2 valid, the
tokenised release (its sentences as `common.wikitext_sentences` takes them). Chinese: 350 lines of held-out
news, reviews, talk and novels. German: held-out prose. `--gaps` hides the words of these texts one by one,
the first 10,000 words of each, and counts how often they are found again.
"""

from collections.abc import Iterator
from itertools import islice

from common import data_file, markdown_table, model_parser, percent, report, wikitext_sentences
from elmokit.embed.reader import Text
from elmokit.language_model import LanguageModel
from elmokit.text import read_lines, read_texts

NEWS_CHARACTERS = 120_000
GAPS = 10_000  # words of each text
AIM = 95.0  # mean of both directions, English held-out articles


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--language", choices=["en", "zh", "de"], default="en")
    parser.add_argument("--gaps", action="store_true", help="fill gaps as well")
    arguments = parser.parse_args()
    model = LanguageModel.load(arguments.model, precision=arguments.precision)
    texts = heldout_texts(arguments.language)
    found = {name: model.perplexity(sentences) for name, sentences in texts.items()}
    rows = [
        [
            name,
            f"{one.words:,}",
            *(f"{value:.1f}" for value in (one.forward, one.backward, one.mean)),
            f"{one.bits_per_character:.3f}",
            f"{one.oov_rate:.1%}",
        ]
        for name, one in found.items()
    ]
    header = ["text", "words", "forward", "backward", "mean", "bits per character", "out of vocabulary"]
    text = markdown_table(header, rows)
    if arguments.language == "en":
        text += f"\n\naim for the held-out articles: mean ≤ {AIM:g} with 60,000 words"
    result = {name: one.to_dict() for name, one in found.items()}
    if arguments.gaps:
        gaps = {name: model.gaps(first_words(sentences, GAPS)) for name, sentences in texts.items()}
        rows = [[name, f"{one.words:,}", percent(one.top1), percent(one.top5)] for name, one in gaps.items()]
        text += "\n\n" + markdown_table(["gaps in", "words", "first, %", "among five, %"], rows)
        for name, one in gaps.items():
            result[name]["gaps"] = one.to_dict()
    report("perplexity", arguments, text, result)


def heldout_texts(language: str) -> dict[str, list[Text]]:
    """The held-out texts of a language, by name."""

    def read(path: str, source: str, *, split: str | None = language, lines: int | None = None) -> list[Text]:
        file = data_file(f"lm/{path}", source)
        text = file if lines is None else list(islice(read_lines(file), lines))
        return list(filter(None, read_texts(text, split=split)))

    if language == "de":
        return {"prose, held out": read("de-prose-heldout.txt", "German prose that no model was trained on")}
    wikipedia = (f"{language}-wikipedia-heldout.txt.xz", "Wikipedia prose that no model was trained on")
    texts = {
        "Wikipedia, held out": read(*wikipedia),
        "the same, by paragraphs": read(*wikipedia, split=False),
    }
    if language == "zh":
        texts["news, reviews, talk, novels, held out"] = read(
            "zh-more-heldout.txt", "more Chinese", lines=350
        )
        return texts
    news = data_file("lm/en-news-heldout.txt", "English news that no model was trained on")
    start = news.read_text(encoding="utf-8")[:NEWS_CHARACTERS]
    texts["news, held out"] = list(filter(None, read_texts(start.splitlines(), split="en")))
    texts["WikiText-2, valid"] = list(wikitext_sentences())
    return texts


def first_words(texts: list[Text], words: int) -> Iterator[Text]:
    """The first texts, until there are so many words (by spaces, or by characters without them)."""
    for text in texts:
        if words <= 0:
            return
        spaced = text.split() if isinstance(text, str) else text
        words -= max(len(spaced), len(text) // 6)
        yield text


if __name__ == "__main__":
    main()
