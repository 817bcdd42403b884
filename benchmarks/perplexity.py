"""Full-softmax perplexity of a bundled model on text it has not seen, each text from the zero state.

    ELMOKIT_DATA=… python benchmarks/perplexity.py MODEL [--language zh]

Whole articles of Wikipedia that were held out, cut as in training: by sentences, and by paragraphs, each of
which is one text. English also: WikiText-2 valid, the tokenised release (its sentences as
`common.wikitext_sentences` takes them).
"""

from collections.abc import Iterable

from common import data_file, markdown_table, model_parser, report, wikitext_sentences
from elmokit.embed.reader import Text
from elmokit.language_model import LanguageModel
from elmokit.text import read_texts

AIM = 95.0  # mean of both directions, English held-out articles


def main() -> None:
    """Measure, print, write."""
    parser = model_parser(__doc__)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    arguments = parser.parse_args()
    language = arguments.language
    heldout = data_file(
        f"lm/{language}-wikipedia-heldout.txt.xz", "Wikipedia prose that no model was trained on"
    )
    texts: dict[str, Iterable[Text]] = {
        "Wikipedia, held out": filter(None, read_texts(heldout, split=language)),
        "the same, by paragraphs": filter(None, read_texts(heldout)),
    }
    if language == "en":
        texts["WikiText-2, valid"] = wikitext_sentences()
    model = LanguageModel.load(arguments.model, precision=arguments.precision)
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
    if language == "en":
        text += f"\n\naim for the held-out articles: mean ≤ {AIM:g} with 60,000 words"
    report("perplexity", arguments, text, {name: one.to_dict() for name, one in found.items()})


if __name__ == "__main__":
    main()
