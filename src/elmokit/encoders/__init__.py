"""One interface over sources of token vectors: ELMo, static vectors, BERT's family, characters, words."""

from pathlib import Path

from elmokit.encoders.base import (
    Encoder,
    LayeredModule,
    Sentences,
    TunableEncoder,
    fingerprint_of,
    weight_bytes,
)
from elmokit.encoders.bert_embedder import BertEmbedder, load
from elmokit.encoders.cache import CachedEncoder
from elmokit.encoders.elmo import ElmoEncoder
from elmokit.encoders.static import StaticEncoder
from elmokit.encoders.untrained import CharacterEncoder, WordEncoder
from elmokit.errors import ConfigError

__all__ = [
    "BertEmbedder", "CachedEncoder", "CharacterEncoder", "ElmoEncoder", "Encoder", "LayeredModule",
    "Sentences", "StaticEncoder", "TunableEncoder", "WordEncoder", "fingerprint_of", "load", "open_encoder",
    "open_encoders", "weight_bytes",
]  # fmt: skip

_STATIC = ("glove", "word2vec", "fasttext")


def open_encoder(spec: str, *, device: str = "cpu", precision: str = "float32") -> Encoder:
    """Open one encoder.

    Args:
        spec: "en" or whatever `elmokit.load` opens (also "elmo:…"); "glove:FILE" (also "word2vec:" and
            "fasttext:") for static vectors, text or binary; "bert:FOLDER" or "bert-mean:FOLDER" for a model
            of the BERT family, where a word is its first piece or the mean of its pieces; "chars" for
            characters alone or "words" for a vector of each token, both trained with the task.
        device: Where ELMo and BERT compute.
        precision: Of a frozen ELMo's products; see `elmokit.load`.

    Raises:
        ConfigError: There is no such kind.
        ElmoError: The file or folder cannot be opened.
    """
    kind, _, path = spec.partition(":")
    if spec == "chars":
        return CharacterEncoder()
    if spec == "words":
        return WordEncoder()
    if kind in _STATIC:
        return StaticEncoder.open(path)
    if kind in ("bert", "bert-mean"):
        from elmokit.encoders.bert import BertEncoder

        return BertEncoder.open(path, pooling="mean" if kind == "bert-mean" else "first", device=device)
    if path and kind != "elmo" and not Path(spec).exists():
        known = ", ".join(("elmo", *_STATIC, "bert", "bert-mean"))
        raise ConfigError(
            f"encoder {spec!r}: {kind!r} is no kind of encoder; expected one of {known}, chars, words"
        )
    return ElmoEncoder.open(path if kind == "elmo" else spec, device=device, precision=precision)


def open_encoders(spec: str, *, device: str = "cpu") -> list[Encoder]:
    """Open the encoders of a spec such as "glove:FILE+chars+en".

    Raises:
        ConfigError: A part is empty or occurs twice.
    """
    parts = spec.split("+")
    if not all(parts) or len(set(parts)) < len(parts):
        raise ConfigError(f"encoder {spec!r}: expected different parts joined by '+', such as glove:FILE+en")
    return [open_encoder(part, device=device) for part in parts]
