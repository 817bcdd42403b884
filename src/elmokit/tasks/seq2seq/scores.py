"""BLEU and chrF of texts, by sacrebleu."""

import json
import warnings
from collections.abc import Sequence
from typing import Any

from elmokit.errors import MissingExtra
from elmokit.tasks.core import Scores

_RESAMPLES = 1000


def text_scores(texts: Sequence[str], references: Sequence[str], *, words: str = "13a") -> Scores:
    """Return BLEU and chrF of texts, each from 0 to 1; the interval is that of BLEU.

    Args:
        texts: what was written.
        references: what is right, text by text.
        words: sacrebleu's tokenizer for BLEU: "13a", for Chinese "zh", for others without blanks "char".

    Raises:
        MissingExtra: sacrebleu is not installed.
    """
    metrics = sacrebleu().metrics
    several = len(texts) > 1
    bleu = metrics.BLEU(tokenize=words, force=True)  # the texts may well be tokenised already
    found = bleu.corpus_score(list(texts), [list(references)], n_bootstrap=_RESAMPLES if several else 1)
    chrf = metrics.CHRF().corpus_score(list(texts), [list(references)])
    values = {"bleu": found.score / 100, "chrf": chrf.score / 100}
    said = json.loads(found.format(width=6, signature=str(bleu.get_signature()), is_json=True))
    interval = None
    if "confidence_mean" in said:
        mean, half = said["confidence_mean"], said["confidence_var"]
        interval = (max(0.0, mean - half) / 100, min(100.0, mean + half) / 100)
    return Scores("bleu", values, interval)


def sacrebleu() -> Any:  # noqa: ANN401 (a module)
    """Return the library.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import sacrebleu
    except ImportError as error:
        raise MissingExtra("sacrebleu", "translate", "scoring a written text") from error
    return sacrebleu
