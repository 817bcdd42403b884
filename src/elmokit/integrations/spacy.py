"""ELMo in spaCy: the pipe `elmokit`, and the layer `elmokit.Tok2Vec.v1` for trainable pipes.

>>> nlp = spacy.blank("en")                                                       # doctest: +SKIP
>>> nlp.add_pipe("elmokit", config={"model": "path/to/model"})                    # doctest: +SKIP
>>> doc = nlp("The bank of the river. The bank raised its rates.")                # doctest: +SKIP
>>> doc[1].similarity(doc[7])                                                     # doctest: +SKIP

The tokens are spaCy's own, so nothing has to be aligned. Tokens of white space are left out of the sentence,
because no model was trained on them; their vectors are zero.

What spaCy saves contains the model. The path in the config is loaded at first use, and only if no model was
loaded from a saved pipeline: such a pipeline works on a machine without that path.

Shapes: T tokens of a document, P projection, L layers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.base import shown
from elmokit.embed import Embedder, Floats, load_elmo
from elmokit.errors import ConfigError, MissingExtra
from elmokit.formats import ModelBundle, load_model
from elmokit.integrations.storage import from_files, store, to_files
from elmokit.integrations.token_ids import lowercased

try:
    import srsly
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.tokens import Doc, Span, Token
    from spacy.util import minibatch, registry
    from thinc.api import Model
    from thinc.model import deserialize_attr, serialize_attr
except ImportError as error:
    raise MissingExtra("spaCy", "spacy", "elmokit.integrations.spacy") from error

Doc.set_extension("elmo", default=None, force=True)


class StoredElmo:
    """A model that is loaded at first use, and saved with the pipe or layer that uses it."""

    def __init__(self, model: str, precision: str) -> None:
        self._model = model
        self._precision = precision
        self._embedder: Embedder | None = None

    @property
    def embedder(self) -> Embedder:
        """Return the model, loaded at the first call."""
        if self._embedder is None:
            self._embedder = load_elmo(self._model, precision=self._precision)
        return self._embedder

    def layers(self, docs: Sequence[Doc], *, by_sentence: bool) -> list[Floats]:
        """Return (L+1, T, 2P) for each document, read by sentence if sentences are known, or as one."""
        elmo = self.embedder
        parts = [
            (number, [token.i for token in part if not token.is_space])
            for number, doc in enumerate(docs)
            for part in (doc.sents if by_sentence and doc.has_annotation("SENT_START") else [doc])
        ]
        spec = elmo.tokenizer_spec
        texts = [lowercased((docs[number][i].text for i in places), spec) for number, places in parts]
        layers = [np.zeros((elmo.num_layers, len(doc), elmo.dim), np.float32) for doc in docs]
        for (number, places), sentence in zip(parts, elmo.stream(texts), strict=True):
            layers[number][:, places] = sentence.layers
        return layers

    def to_bytes(self) -> bytes:
        """Return the model as bytes."""
        packed: bytes = srsly.msgpack_dumps(to_files(self.embedder.bundle))
        return packed

    def from_bytes(self, data: bytes) -> None:
        """Load the model from what `to_bytes` returned."""
        self.replace_by(from_files(srsly.msgpack_loads(data)))

    def replace_by(self, bundle: ModelBundle) -> None:
        """Use another model from now on."""
        self._embedder = Embedder(bundle, precision=self._precision)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model itself, for processes that are not forked."""
        return _from_pickle, (self._model, self._precision, self.to_bytes())


def _from_pickle(model: str, precision: str, data: bytes) -> StoredElmo:
    elmo = StoredElmo(model, precision)
    elmo.from_bytes(data)
    return elmo


class ElmoPipe(Pipe):  # type: ignore[misc]
    """Sets `doc.tensor` (T, 2P), the average of the layers, `doc._.elmo` (L+1, T, 2P), and the hooks.

    `vector` and `similarity` of documents, spans and tokens then use ELMo, even if the pipeline has other
    vectors. A document is read sentence by sentence if an earlier pipe has set the sentences.
    """

    def __init__(self, name: str, elmo: StoredElmo) -> None:
        self.name = name
        self.elmo = elmo

    def __call__(self, doc: Doc) -> Doc:
        """Embed one document."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Embed documents, `batch_size` of them together."""
        for docs in minibatch(stream, batch_size):
            try:
                self._annotate(docs)
            except Exception as error:  # noqa: BLE001 (spaCy's handlers get them all)
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def _annotate(self, docs: list[Doc]) -> None:
        for doc, layers in zip(docs, self.elmo.layers(docs, by_sentence=True), strict=True):
            doc.tensor = layers.mean(axis=0)
            doc._.elmo = layers
            set_hooks(doc)

    def initialize(self, get_examples: object, *, nlp: object = None) -> None:
        """Load the model, so that training fails at once if that is impossible."""
        _ = self.elmo.embedder

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into a folder of the pipeline."""
        store(self.elmo.embedder.bundle, path)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load the model from such a folder."""
        self.elmo.replace_by(load_model(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model as bytes."""
        return self.elmo.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoPipe":
        """Load the model from bytes."""
        self.elmo.from_bytes(data)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ElmoPipe, (self.name, self.elmo)


@Language.factory("elmokit", assigns=["doc.tensor", "doc._.elmo"], default_config={"precision": "float32"})  # type: ignore[untyped-decorator]
def make_pipe(nlp: Language, name: str, model: str, precision: str) -> ElmoPipe:
    """Make the pipe; `model` and `precision` are those of `elmokit.load`."""
    return ElmoPipe(name, StoredElmo(model, precision))


def set_hooks(doc: Doc) -> None:
    """Make `vector` and `similarity` of a document, its spans and tokens use `doc.tensor`.

    The pipe does that. Call this for documents that were stored or come from another process: spaCy does not
    keep their hooks.
    """
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks.update(vector=_vector, has_vector=_has_vector, similarity=_similarity)


def _vector(part: Doc | Span | Token) -> Floats:
    """Return the token's row, or the mean of the rows that are not white space."""
    if isinstance(part, Token):
        row: Floats = part.tensor
        return row
    words = [place for place, token in enumerate(part) if not token.is_space]
    mean: Floats = part.tensor[words].mean(axis=0) if words else np.zeros(part.tensor.shape[-1], np.float32)
    return mean


def _has_vector(part: Doc | Span | Token) -> bool:
    return bool(_vector(part).any())


def _similarity(part: Doc | Span | Token, other: Any) -> float:  # noqa: ANN401 (a Lexeme too)
    """Return the cosine. spaCy's own is 1 for words of equal spelling, whatever their context."""
    mine, theirs = part.vector, other.vector
    if mine.shape != theirs.shape:
        raise ConfigError(
            f"{shown(other)} has a vector of {theirs.size} numbers, expected {mine.size}; pass its text "
            "through the pipe 'elmokit' too"
        )
    norms = float(np.linalg.norm(mine) * np.linalg.norm(theirs))
    return float(mine @ theirs) / norms if norms else 0.0


@registry.architectures("elmokit.Tok2Vec.v1")  # type: ignore[untyped-decorator]
def make_tok2vec(model: str, precision: str = "float32") -> "Model[list[Doc], list[Any]]":
    """Make a layer that outputs γ · Σ_j softmax(w)_j · h_j; w and γ are trained, the model is not.

    A document is read as one sequence, because in most pipelines its sentences are known either in training
    or in use, but not in both. `model` and `precision` are those of `elmokit.load`.
    """
    return Model(
        "elmokit_tok2vec",
        _forward,
        init=_init,
        dims={"nO": None},
        params={"weights": None, "gamma": None},
        attrs={"elmo": StoredElmo(model, precision)},
    )


def _init(layer: Any, X: Sequence[Doc] | None = None, Y: object = None) -> None:  # noqa: ANN401 (no types)
    """Start with the average of the layers, and with γ so that the vectors of the sample X have variance 1.

    spaCy's learning rates are made for vectors of variance 1; ELMo's have a far smaller one.
    """
    elmo = layer.attrs["elmo"]
    layer.set_dim("nO", elmo.embedder.dim)
    layer.set_param("weights", layer.ops.alloc1f(elmo.embedder.num_layers))
    vectors = [one.mean(axis=0) for one in elmo.layers(X or [], by_sentence=False)]  # (T, 2P) each
    scale = float(np.concatenate(vectors).std()) if vectors else 0.0
    layer.set_param("gamma", layer.ops.alloc1f(1) + (1 / scale if scale else 1))


def _forward(
    layer: Any,  # noqa: ANN401
    docs: Sequence[Doc],
    is_train: bool,
) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    xp = layer.ops.xp
    layers = [layer.ops.asarray(one) for one in layer.attrs["elmo"].layers(docs, by_sentence=False)]
    share = layer.ops.softmax(layer.get_param("weights"))  # (L+1,)
    gamma = layer.get_param("gamma")  # (1,)

    def backprop(gradients: list[Any]) -> list[Any]:
        # each = ∂loss/∂(γ·share), (L+1,); the rest is the chain rule through γ and the softmax.
        pairs = zip(gradients, layers, strict=True)
        each = sum(xp.tensordot(one, gradient, axes=2) for gradient, one in pairs)
        total = (share * each).sum()
        layer.inc_grad("gamma", xp.asarray([total], dtype="f"))
        layer.inc_grad("weights", gamma * share * (each - total))
        return []

    return [gamma * xp.tensordot(share, one, axes=1) for one in layers], backprop


@serialize_attr.register(StoredElmo)  # type: ignore[untyped-decorator]
def _stored(_: StoredElmo, value: StoredElmo, name: str, layer: object) -> bytes:
    return value.to_bytes()


@deserialize_attr.register(StoredElmo)  # type: ignore[untyped-decorator]
def _restored(elmo: StoredElmo, value: bytes, name: str, layer: object) -> StoredElmo:
    elmo.from_bytes(value)
    return elmo
