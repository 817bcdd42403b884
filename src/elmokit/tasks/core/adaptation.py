"""The encoder reads the text of a task before it is frozen (Peters et al. 2018, A.1)."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elmokit.base import check_number, locked, remove_folder, write_text
from elmokit.corpus import PrepareSettings
from elmokit.encoders import Encoder, open_encoder
from elmokit.errors import ConfigError
from elmokit.formats import UNRECORDED, load_model, save_model
from elmokit.pretraining import ADAPT, pretrain_bilm
from elmokit.text import TokenizerSpec, make_word_tokenizer, read_texts

Texts = Sequence[Sequence[str]]

_LEAST_STEPS = 10  # in a pass over the text


@dataclass(frozen=True)
class Adaptation:
    """How long the encoder reads, and what beside the training sentences.

    Attributes:
        minutes: how long; None for one pass over the text.
        files: further text, raw.
    """

    minutes: float | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, adapt: bool | float, files: Sequence[str | Path]) -> "Adaptation | None":
        """Return what the arguments of `train` ask for.

        Raises:
            ConfigError: there is text to read, but the encoder is not to be adapted.
        """
        if adapt is False:
            if files:
                raise ConfigError("adapt_text has no effect without adapt=True")
            return None
        if adapt is not True:
            check_number("adapt", adapt, above=0)
        named = [str(Path(file).resolve()) for file in files]
        return cls(None if adapt is True else float(adapt), tuple(named))


def adapted_encoders(
    encoders: Sequence[Encoder],
    adaptation: Adaptation,
    *,
    train: Texts,
    dev: Texts,
    tokenizer: TokenizerSpec,
    folder: Path,
    device: str,
    say: Callable[[str], None],
) -> list[Encoder]:
    """Return the encoders with each ELMo trained further, without labels; dev measures its perplexity.

    Args:
        encoders: of the task.
        adaptation: how long, and on what.
        train: the sentences of the training examples.
        dev: those of the dev examples.
        tokenizer: of the task, for the files.
        folder: keeps adapted models, by what they were made of.
        device: where to train.
        say: called with messages for people.

    Raises:
        ConfigError: none of the encoders is an ELMo.
    """
    if not any(encoder.adaptable for encoder in encoders):
        raise ConfigError(f"adapt: none of the encoders {', '.join(e.spec for e in encoders)} is an ELMo")
    more = [_tokenised(file, tokenizer) for file in adaptation.files]
    lines = [_lines(train) + "".join(map(_lines, more)), _lines(dev)]

    def adapted(encoder: Encoder) -> Encoder:
        made_of = repr((encoder.fingerprint(), adaptation.minutes, lines)).encode()
        kept = folder / f"adapted-{hashlib.sha256(made_of).hexdigest()[:16]}"
        with locked(kept, parents=True):
            if not (kept / "config.json").exists():
                _adapt(encoder, lines, adaptation.minutes, kept, device, say)
        return open_encoder(str(kept), device=device)

    return [adapted(one) if one.adaptable else one for one in encoders]


def _adapt(
    encoder: Encoder,
    lines: Sequence[str],
    minutes: float | None,
    kept: Path,
    device: str,
    say: Callable[[str], None],
) -> None:
    work = kept.with_name(f"{kept.name}-run")
    files, out = [work / "train.txt", work / "dev.txt"], work / "model"
    work.mkdir(parents=True, exist_ok=True)
    for file, text in zip(files, lines, strict=True):
        write_text(file, text)
    original = encoder.tokenizer or UNRECORDED
    preparation = PrepareSettings(
        tokenizer=TokenizerSpec(name="whitespace", lowercase=original.lowercase),
        split_sentences=False,
        min_tokens=1,
        heldout=[files[1]] if lines[1] else [],
    )
    say(f"{encoder.spec} reads the training text before it is frozen")
    try:
        changes = pretrain_bilm(
            files[0],
            out=out,
            recipe="adapt",
            changes={"batch": _batch(lines[0])},
            preparation=preparation,
            minutes=minutes,
            start=encoder.spec,
            workers=1,
            device=device,
            resume=(out / "training").exists(),
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "interrupted while the encoder was adapted; the same call with resume=True continues"
        ) from None
    for change in changes[:1]:
        before = "" if change.before is None else f"{change.before.mean:.1f} → "
        say(f"{encoder.spec}: perplexity of dev {before}{change.after.mean:.1f}")
    # The run has read tokens; the model keeps the tokenizer of the one that it comes from.
    save_model(replace(load_model(out), tokenizer=original), kept)
    remove_folder(work)


def _batch(text: str) -> int:
    """Return the rows of a batch: fewer for a text that would otherwise be over after a few steps."""
    return max(1, min(ADAPT.batch, len(text.split()) // (_LEAST_STEPS * ADAPT.unroll)))


def _tokenised(file: str, tokenizer: TokenizerSpec) -> Iterator[list[str]]:
    tokenize = make_word_tokenizer(tokenizer)
    for text in read_texts(file, split=tokenizer.language):
        yield tokenize(text) if isinstance(text, str) else text


def _lines(texts: Texts | Iterator[list[str]]) -> str:
    return "".join(" ".join(text) + "\n" for text in texts if text)
