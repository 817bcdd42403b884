"""Published data as they are: how many examples, and of which scheme."""

import pytest

from elmokit.tasks.dataset import read_data
from elmokit.tasks.examples import scheme_of
from elmokit.text import TokenizerSpec
from elmokit.text.tokenizers import make_word_cutter


@pytest.mark.parametrize(
    ("task", "data", "settings", "train", "dev", "scheme"),
    [
        ("tagger", "ner-conll2003", {}, 14041, 3250, "IOB1"),
        ("tagger", "ner-wnut17", {}, 3394, 1009, "BIO"),
        ("tagger", "ner-resume-zh", {}, 3821, 463, "BMES"),
        ("tagger", "pos-gsd-zh", {}, 3997, 500, "plain"),
        ("classifier", "question-trec/train_5500.label.xz", {"format": "trec"}, 4907, 545, None),
        ("classifier", "sentiment-finance/Sentences_AllAgree.txt", {"format": "at"}, 2038, 226, None),
        ("classifier", "fraud-sms/SMSSpamCollection.xz", {"format": "tsv"}, 5017, 557, None),
        ("classifier", "intent-smp2017-zh", {}, 2299, 770, None),
        ("intent", "intent-snips", {}, 13084, 700, "BIO"),
        ("intent", "intent-smp2019-zh", {}, 2065, 257, "BIO"),
    ],
)
def test_published(published, task, data, settings, train, dev, scheme):
    cut = make_word_cutter(TokenizerSpec(name="characters" if "zh" in data else "rules"))
    found = read_data(published.parent / "tasks" / data, task, cut=cut, **settings)
    assert (len(found.train), len(found.dev)) == (train, dev)
    if scheme is not None:
        assert scheme_of(found.train) == scheme
        assert scheme_of(found.dev, scheme) == scheme
