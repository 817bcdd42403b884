"""Published data as they are: how many examples, and of which scheme."""

import pytest

from elmokit.tasks import find_task
from elmokit.tasks.core import read_data
from elmokit.tasks.tagger.data import scheme_of
from elmokit.text import TokenizerSpec
from elmokit.text.tokenizers import make_word_tokenizer


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
    tokenize = make_word_tokenizer(TokenizerSpec(name="characters" if "zh" in data else "rules"))
    formats = find_task(task).task_type.formats
    found = read_data(formats, published.parent / "tasks" / data, tokenize=tokenize, **settings)
    assert (len(found.train), len(found.dev)) == (train, dev)
    if scheme is not None:
        tagged = [[getattr(e, "slots", e) for e in part] for part in (found.train, found.dev)]
        assert scheme_of(tagged[0]) == scheme
        assert scheme_of(tagged[1], scheme) == scheme
