"""What comes before training: labels, tags of one scheme, class weights, cached vectors."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from elmokit.base import StartStep
from elmokit.encoders import CachedEncoder, Encoder
from elmokit.errors import ConfigError, DataError
from elmokit.tasks.dataset import TaskData
from elmokit.tasks.examples import Example, Task, check_labels, kind_of, scheme_of
from elmokit.tasks.model import TaskConfig
from elmokit.tasks.schemes import OUTSIDE, find_spans, write_spans
from elmokit.tasks.settings import Settings
from elmokit.text import TokenizerSpec


def choose_tokenizer(given: str | TokenizerSpec | None, encoders: Iterable[Encoder]) -> TokenizerSpec:
    """The one that was asked for, else the first that an encoder wants, else general rules."""
    if isinstance(given, str):
        return TokenizerSpec.parse(given)
    wanted = (encoder.tokenizer for encoder in encoders)
    return given or next((spec for spec in wanted if spec is not None), TokenizerSpec(name="rules"))


def make_config(
    task: Task, data: TaskData, settings: Settings, tokenizer: TokenizerSpec, *, allow_unseen: bool = False
) -> tuple[TaskConfig, TaskData]:
    """Look at the data: what is to be learnt, and the examples with their tags in the scheme that is learnt.

    Raises:
        DataError: tag schemes are mixed, or dev has a label that the training data do not have.
        ConfigError: a text has several labels and the settings say one.
    """
    if settings.head.multi_label and task != "classifier":
        raise ConfigError(f"multi_label is for a classifier; leave it out for a {task}")
    config = TaskConfig(task=task, settings=settings, tokenizer=tokenizer)
    if task != "classifier":
        config = replace(config, scheme=scheme_of(data.train))
        data = TaskData(_converted(data.train, config), learnt_tags(data.dev, config))
        config = replace(config, tags=_by_frequency(tag for example in data.train for tag in example.tags))
    if task != "tagger":
        config = replace(config, labels=_by_frequency(label for e in data.train for label in e.labels))
        if not config.labels:
            raise DataError(f"{data.train[0].where}: neither this nor any other training text has a label")
        if not settings.head.multi_label:
            expect_one_label([*data.train, *data.dev])
    if not allow_unseen:
        check_known(data.dev, config)
    if settings.training.class_weights and task != "classifier" and settings.head.crf:
        raise ConfigError(
            "class_weights are for single decisions, a CRF scores whole sequences; set head.crf=false"
        )
    return config, data.share(settings.training.share)


def learnt_tags(examples: Sequence[Example], config: TaskConfig) -> list[Example]:
    """The examples with their tags in the scheme that is learnt.

    Raises:
        DataError: the tags are not of the training data's scheme.
    """
    if config.task == "classifier":
        return list(examples)
    scheme_of(examples, config.scheme)
    return _converted(examples, config)


def check_known(examples: Sequence[Example], config: TaskConfig) -> None:
    """See that the examples (tags as they are learnt) have no label that the training data do not have."""
    scheme = config.learnt_scheme
    if config.task != "classifier":
        kinds = [OUTSIDE, *(kind_of(tag, scheme) for tag in config.tags)]
        check_labels(examples, kinds, lambda example: (kind_of(tag, scheme) for tag in example.tags))
    if config.task != "tagger":
        check_labels(examples, config.labels, lambda example: example.labels)


def expect_one_label(examples: Iterable[Example]) -> None:
    """Raise a DataError if a text has no label, or more than one."""
    for example in examples:
        if not example.labels:
            raise DataError(
                f"{example.where}: found no label for the text; label the line or remove it, or say that a "
                "text may have any number of labels: --multi-label"
            )
        if len(example.labels) > 1:
            raise DataError(
                f"{example.where}: found the labels {', '.join(example.labels)}, expected one; "
                "say that a text may have several: --multi-label"
            )


def class_weights(examples: Sequence[Example], config: TaskConfig) -> dict[str, float] | None:
    """How much each label counts, the rarer the more: n / (K · n_k); None if all count alike."""
    if not config.settings.training.class_weights:
        return None
    weights: dict[str, float] = {}
    for names, found in (
        (config.tags, Counter(tag for example in examples for tag in example.tags)),
        (config.labels, Counter(label for example in examples for label in example.labels)),
    ):
        total = sum(found.values())
        weights |= {name: total / (len(names) * max(1, found[name])) for name in names}
    return weights


def cache_encoders(
    encoders: Sequence[Encoder], data: TaskData, settings: Settings, folder: Path, start: StartStep
) -> list[Encoder]:
    """Compute the vectors of frozen contextual encoders once, for all epochs."""
    if settings.encoder.tune_from is not None:
        return list(encoders)
    sentences = [example.tokens for example in (*data.train, *data.dev)]
    cached: list[Encoder] = []
    for encoder in encoders:
        if encoder.contextual:
            kept = CachedEncoder(encoder, folder)
            kept.fill(sentences, start("vectors", len(sentences)))
            encoder = kept
        cached.append(encoder)
    return cached


def _converted(examples: Sequence[Example], config: TaskConfig) -> list[Example]:
    """Also where the scheme stays: slips in it are written as conlleval reads them."""
    if config.scheme == "plain":
        return list(examples)
    scheme = config.learnt_scheme
    return [replace(e, tags=tuple(write_spans(find_spans(e.tags), len(e.tags), scheme))) for e in examples]


def _by_frequency(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, the most frequent first, those of one frequency by the alphabet."""
    counts = Counter(names)
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))
