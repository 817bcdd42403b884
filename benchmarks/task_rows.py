"""What benchmarks/tasks.py measures: the data of each task, and the aims."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        task: which head.
        data: folder (or file) under tasks/.
        score: which score is shown, in percent.
        gain: the aim for what ELMo adds, if that is the aim.
        least: the aim for the score with ELMo, if that is.
        dev, format, tokenizer, text_column, label_column, changes: see `train`.
        more: further training files in SQuAD's format, which are joined with the first.
        chinese: whether the Chinese model and vectors are to be used.
        vectors: whether the baseline has static vectors and a character CNN; else a vector of each token.
        start: the row whose model, with the same encoders, training starts from.
    """

    task: str
    data: str
    score: str
    gain: float | None = None
    least: float | None = None
    dev: str | None = None
    format: str | None = None
    tokenizer: str = "whitespace"
    text_column: str | None = None
    label_column: str | None = None
    more: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    chinese: bool = False
    vectors: bool = True
    start: str | None = None


ROWS = {
    "ner-conll2003": Row("tagger", "ner-conll2003", "f1", gain=1.5),
    "ner-wnut17": Row("tagger", "ner-wnut17", "f1", gain=2.0),
    "sentiment-sst5": Row(
        "classifier",
        "sentiment-sst5/sentences-train.tsv.xz",
        "accuracy",
        gain=1.5,
        dev="sentiment-sst5/sentences-dev.tsv",
    ),
    "question-trec": Row(
        "classifier", "question-trec/train_5500.label.xz", "accuracy", gain=1.0, format="trec"
    ),
    "intent-snips": Row("intent", "intent-snips", "slot_f1", least=94.0, changes=("head.scheme=BIO",)),
    "pos-ewt": Row("tagger", "pos-ewt", "accuracy", gain=0.5),
    "sentiment-chnsenticorp": Row(
        "classifier",
        "sentiment-chnsenticorp",
        "accuracy",
        gain=3.0,
        tokenizer="characters:zh",
        chinese=True,
        vectors=False,
    ),
    "ner-resume-zh": Row("tagger", "ner-resume-zh", "f1", chinese=True),
    "nli-snli": Row("entailment", "nli-snli", "accuracy", gain=1.5, tokenizer="rules:en"),
    "nli-sick": Row(
        *("entailment", "nli-sick", "accuracy"),
        gain=1.5,
        tokenizer="rules:en",
        text_column="2,3",
        label_column="1",
    ),
    # The same labels as SNLI's: from a model of those, as a user would.
    "nli-sick-snli": Row(
        *("entailment", "nli-sick", "accuracy"),
        least=84.0,
        tokenizer="rules:en",
        text_column="2,3",
        label_column="1",
        start="nli-snli",
    ),
    "nli-zh": Row(
        "entailment", "nli-zh", "accuracy", gain=1.5, tokenizer="characters:zh", chinese=True, vectors=False
    ),
    "pairs-afqmc-zh": Row(
        "entailment", "pairs-afqmc-zh", "accuracy", tokenizer="characters:zh", chinese=True, vectors=False
    ),
    "glue-mrpc": Row("entailment", "glue-mrpc", "accuracy", tokenizer="rules:en"),
    "glue-rte": Row("entailment", "glue-rte", "accuracy", tokenizer="rules:en"),
    "sts-b": Row(
        *("entailment", "sts-b/sts-train.csv.xz", "spearman"),
        dev="sts-b/sts-dev.csv",
        format="sts",
        tokenizer="rules:en",
        changes=("head.regression=true",),
    ),
    "qa-squad1": Row(
        *("reading", "qa-squad1/squad1.1-partial.json.xz", "f1"),
        gain=4.0,
        more=tuple(
            f"qa-squad1/squadshifts-{name}_v1.0.json.xz" for name in ("new_wiki", "reddit", "amazon_reviews")
        ),
        dev="qa-squad1/xquad.en.json.xz",
        tokenizer="rules:en",
    ),
    "qa-cmrc2018": Row(
        "reading", "qa-cmrc2018", "f1", gain=3.0, tokenizer="characters:zh", chinese=True, vectors=False
    ),
    "srl-ewt": Row("roles", "srl-ewt", "f1", gain=2.5, tokenizer="rules:en"),
    "coref-gum": Row("coreference", "coref-gum", "conll_f1", gain=2.0, tokenizer="rules:en"),
    # A tenth of the 100 novels is held out, always the same ten.
    "coref-litbank": Row(
        "coreference", "coref-litbank/litbank-coref.conll.xz", "conll_f1", gain=2.0, tokenizer="rules:en"
    ),
    "coref-gap": Row(
        *("coreference", "coref-gap/gap-development.tsv.xz", "gap_f1"),
        least=70.6,
        dev="coref-gap/gap-validation.tsv",
        tokenizer="rules:en",
        changes=("training.batch=8",),
    ),
    "relation-semeval2010": Row(
        *("relations", "relation-semeval2010", "macro_f1"),
        gain=2.0,
        least=82.0,
        tokenizer="rules:en",
        changes=("head.main=macro_f1",),
    ),
    # Entities are given; benchmarks/relations.py also finds them.
    "relation-conll04": Row("relations", "relation-conll04", "f1", tokenizer="rules:en"),
    "relation-finre-zh": Row(
        *("relations", "relation-finre-zh", "accuracy"),
        gain=2.0,
        tokenizer="characters:zh",
        chinese=True,
        vectors=False,
        changes=("head.main=accuracy",),
    ),
    "relation-cdr": Row(
        "relations", "relation-cdr", "f1", tokenizer="rules:en", changes=("training.batch=4",)
    ),
    "relation-ddi": Row("relations", "relation-ddi", "f1", tokenizer="rules:en"),
    "multi30k-en-de": Row(
        *("translate", "translation-multi30k", "bleu"),
        gain=1.0,
        tokenizer="rules:en",
        text_column="en",
        label_column="de",
        vectors=False,
    ),
    # ELMo is English: it would read the German as if it were.
    "multi30k-de-en": Row(
        *("translate", "translation-multi30k", "bleu"),
        tokenizer="rules:de",
        text_column="de",
        label_column="en",
        vectors=False,
    ),
    "tatoeba-zh-en": Row(
        *("translate", "translation-tatoeba-zh", "bleu"),
        tokenizer="characters:zh",
        text_column="2",
        label_column="1",
        chinese=True,
        vectors=False,
    ),
    "tatoeba-en-zh": Row(
        *("translate", "translation-tatoeba-zh", "bleu"),
        tokenizer="rules:en",
        text_column="1",
        label_column="2",
        changes=("head.target=characters",),
        vectors=False,
    ),
    "reply-dailydialog": Row("reply", "reply-dailydialog", "chrf", vectors=False),
    "reply-zh": Row(
        *("reply", "reply-zh", "chrf"),
        tokenizer="characters:zh",
        changes=("head.target=characters",),
        chinese=True,
        vectors=False,
    ),
}

# The six tasks of the paper's table 1: our row; the paper's data, baseline and ELMo, in percent (test).
PAPER = {
    "reading": ("qa-squad1", "SQuAD", 81.1, 85.8),
    "entailment": ("nli-snli", "SNLI", 88.0, 88.7),
    "semantic roles": ("srl-ewt", "OntoNotes", 81.4, 84.6),
    "coreference": ("coref-gum", "OntoNotes", 67.2, 70.4),
    "named entities": ("ner-conll2003", "CoNLL-2003", 90.15, 92.22),
    "sentiment": ("sentiment-sst5", "SST-5", 51.4, 54.7),
}
# How the gain depends on the amount of training data: shares of it.
CURVES = {
    "ner-conll2003": (0.01, 0.1, 1.0),
    "srl-ewt": (0.01, 0.1, 0.3, 1.0),
    "nli-snli": (0.01, 0.1, 1.0),
    "multi30k-en-de": (0.1, 1.0),
}
